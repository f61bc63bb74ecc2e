"""From our description of phases and instrument to rietx's models."""

from __future__ import annotations

import warnings
from typing import Any

import gemmi
import rietx as rx
from axr_names import B_TO_U
from axr_wire import Refused
from rietx.schemas.structure import lebail_scaffold

__all__ = ["DEFAULT_RADIUS_MM", "build_instrument", "build_phase", "shared_sites"]

DEFAULT_B = 0.5
"""Angstrom^2, where the structure gives no displacement parameter: usual for inorganic solids at room temperature."""

DEFAULT_RADIUS_MM = {"bragg_brentano": 217.5, "debye_scherrer": 200.0}
"""Where the goniometer radius is not known: the defaults of rietx and of GSAS-II. Positions tell their ratio only."""

SAME_SITE = 1e-3
"""Largest difference of fractional coordinates of atoms on one site."""

Notices = list[tuple[str, str]]


def build_phase(data: dict[str, Any], *, form_factors: str, neutron: bool, notices: Notices) -> Any:
    """Return one rietx phase.

    Args:
        data: our structure as JSON.
        form_factors: ``neutral`` (scattering factors of neutral atoms) or ``as_given``.
        neutron: True for neutron scattering lengths.
        notices: filled with what a person should know.

    Raises:
        Refused: rietx cannot represent the phase.
    """
    cell = dict(zip(("a", "b", "c", "alpha", "beta", "gamma"), data["cell"], strict=True))
    symbol, operations = _symmetry(data)
    anisotropic = [atom["label"] for atom in data["atoms"] if atom["u_aniso"] is not None]
    if anisotropic:
        notices.append(
            (
                "adp_isotropic",
                f"Phase {data['name']}: the anisotropic displacement parameters of "
                f"{len(anisotropic)} atoms are used as their isotropic equivalents.",
            )
        )
    missing = [atom["label"] for atom in data["atoms"] if atom["u_iso"] is None and atom["u_aniso"] is None]
    if missing:
        notices.append(
            (
                "uiso_assumed",
                f"Phase {data['name']}: {len(missing)} atoms have no displacement parameter; "
                f"they start at Uiso = {DEFAULT_B * B_TO_U:.4f} angstrom^2.",
            )
        )
    atoms = [_atom(atom, data, form_factors=form_factors, neutron=neutron, notices=notices) for atom in data["atoms"]]
    if not atoms:  # only a profile match can be made of it, which looks at none; rietx takes no phase without one
        atoms = list(lebail_scaffold(symbol, data["cell"]).phases[0].atoms)
    try:
        return rx.Phase(
            name=data["name"],
            space_group=symbol,
            symmetry_operations=operations,
            atoms=atoms,
            cell=rx.Cell(**{key: rx.Parameter(value=value) for key, value in cell.items()}),
        )
    except ValueError as error:
        raise Refused(
            "input", "structure_not_representable", f"Phase {data['name']} cannot be built: {str(error)[:400]}"
        ) from error


def _symmetry(data: dict[str, Any]) -> tuple[str, list[str] | None]:
    """Return a symbol that generates exactly the phase's operations, or a label and the list itself."""
    operations = list(data["operations"])
    wanted = {_key(gemmi.Op(triplet)) for triplet in operations}
    for candidate in (data["space_group"], str(data["space_group_number"])):
        group = gemmi.find_spacegroup_by_name(candidate)
        if group is not None and (not operations or {_key(op) for op in group.operations()} == wanted):
            return group.xhm(), None
    return f"{data['space_group']} [as given]", operations


def _key(operation: Any) -> tuple[Any, ...]:
    return tuple(tuple(row) for row in operation.rot), tuple(value % operation.DEN for value in operation.tran)


def _atom(atom: dict[str, Any], data: dict[str, Any], *, form_factors: str, neutron: bool, notices: Notices) -> Any:
    element = atom["element"]
    species = element if neutron or form_factors == "neutral" else atom["species"]
    if not neutron and species == "D":
        species = "H"
    try:
        known = _knows(species, neutron)
    except KeyError:
        known = False
    if not known:
        if species != element and _knows(element, neutron):
            notices.append(
                (
                    "species_neutral",
                    f"Phase {data['name']}: no scattering factor for {species} "
                    f"({atom['label']}); the neutral atom {element} is used.",
                )
            )
            species = element
        else:
            raise Refused(
                "input",
                "element_unknown",
                f"Phase {data['name']}: no scattering factor for {species} (atom {atom['label']}).",
            )
    u_iso = atom["u_iso"]
    if u_iso is None and atom["u_aniso"] is not None:
        u_iso = _equivalent(atom["u_aniso"], data["cell"])
    b_iso = DEFAULT_B if u_iso is None else u_iso / B_TO_U
    return rx.Atom(
        label=atom["label"],
        species=species,
        x=rx.Parameter(value=atom["x"]),
        y=rx.Parameter(value=atom["y"]),
        z=rx.Parameter(value=atom["z"]),
        occ=rx.Parameter(value=atom["occupancy"], min=0.0),
        biso=rx.Parameter(value=b_iso),
    )


def _knows(species: str, neutron: bool) -> bool:
    from rietx.crystallography import neutron as lengths
    from rietx.crystallography import scattering

    try:
        if neutron:
            lengths.b_coh(species)
        else:
            name = scattering.normalize_species(species)
            # a charge that fell back to the neutral atom is not what was asked for
            return name[-1:] in "+-" or species[-1:] not in "+-"
    except KeyError:
        return False
    return True


def _equivalent(u_aniso: list[float], cell: list[float]) -> float:
    """Return Ueq = 1/3 sum_ij U_ij a*_i a*_j a_i.a_j (Fischer & Tillmanns 1988, doi:10.1107/S0108270187012745)."""
    u11, u22, u33, u12, u13, u23 = u_aniso
    unit = gemmi.UnitCell(*cell)
    return float(unit.calculate_u_eq(gemmi.SMat33d(u11, u22, u33, u12, u13, u23)))


def shared_sites(phase: Any) -> tuple[tuple[int, ...], ...]:
    """Return the groups of atoms (indices) that sit on the same position."""
    groups: list[list[int]] = []
    for number, atom in enumerate(phase.atoms):
        here = (atom.x.value, atom.y.value, atom.z.value)
        for group in groups:
            first = phase.atoms[group[0]]
            there = (first.x.value, first.y.value, first.z.value)
            if all(abs((p - q + 0.5) % 1.0 - 0.5) < SAME_SITE for p, q in zip(here, there, strict=True)):
                group.append(number)
                break
        else:
            groups.append([number])
    return tuple(tuple(group) for group in groups if len(group) > 1)


def build_instrument(data: dict[str, Any], notices: Notices) -> tuple[Any, bool]:
    """Return the rietx instrument and whether its goniometer radius is a default.

    Raises:
        Refused: the wavelength is missing or not positive.
    """
    lines = data["lines"]
    if not lines or any(line["wavelength_angstrom"] <= 0 for line in lines):
        raise Refused("input", "wavelength_missing", "The instrument has no wavelength.")
    kind, neutron = data["geometry"], data["radiation"] == "neutron"
    radius = data["goniometer_radius_mm"]
    assumed = radius is None
    if assumed:
        radius = DEFAULT_RADIUS_MM[kind]
        notices.append(
            (
                "goniometer_radius_assumed",
                f"The goniometer radius is not known; {radius:g} mm is assumed. "
                "A specimen displacement in mm scales with it, positions do not.",
            )
        )
    if neutron and len(lines) > 1:
        notices.append(("neutron_lines_ignored", "Only the first wavelength of a neutron beam is used."))
    profile = data["profile"] or {}
    geometry = rx.Geometry(
        kind=kind,
        goniometer_radius_mm=radius,
        axial_sl=rx.Parameter(value=profile.get("s_l", 0.0), min=0.0),
        axial_hl=rx.Parameter(value=profile.get("h_l", 0.0), min=0.0),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        instrument = rx.Instrument(
            source=_neutron(lines) if neutron else _xray(lines, data["polarization"]),
            geometry=geometry,
            zero_shift=rx.Parameter(value=data["zero_deg"]),
            background=rx.BackgroundChebyshev.with_terms(1, vary=False),
        )
    for key in ("u", "v", "w", "x", "y"):
        if profile:
            getattr(instrument.profile, key).value = max(profile[key], getattr(instrument.profile, key).min)
    return instrument, assumed


def _neutron(lines: list[dict[str, float]]) -> Any:
    return rx.NeutronSource(wavelength=rx.Parameter(value=lines[0]["wavelength_angstrom"]))


def _xray(lines: list[dict[str, float]], polarization: float) -> Any:
    emission = [
        rx.EmissionLine(
            wavelength=line["wavelength_angstrom"], weight=rx.Parameter(value=line["relative_intensity"], min=0.0)
        )
        for line in lines
    ]
    return rx.Source(lines=emission, polarization=rx.Parameter(value=polarization, min=0.0, max=1.0))
