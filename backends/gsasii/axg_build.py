"""From our description of a phase to what GSAS-II is told of it; whatever it would misread is refused here."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from axg_state import PhaseModel
from axg_symmetry import origin_shift, space_group
from axr_wire import Refused
from GSASII import atmdata

__all__ = ["DEFAULT_RADIUS_MM", "build_phase", "start_values"]

DEFAULT_B = 0.5
"""Angstrom^2, where the structure gives no displacement parameter: usual for inorganic solids at room temperature."""
DEFAULT_RADIUS_MM = {"bragg_brentano": 217.5, "debye_scherrer": 200.0}
"""Where the goniometer radius is not known: positions tell the ratio of an offset to it only."""
SAME_SITE = 1e-3
"""Largest difference of fractional coordinates of atoms on one site."""
_SPECIES = re.compile(r"([A-Z][a-z]?)(?:(\d*)([+-])|([+-])(\d*))?")

Notices = list[tuple[str, str]]


def build_phase(data: dict[str, Any], *, form_factors: str, neutron: bool, notices: Notices) -> PhaseModel:
    """Return the phase.

    Args:
        data: our structure as JSON.
        form_factors: ``neutral`` (scattering factors of neutral atoms) or ``as_given``.
        neutron: True for neutron scattering lengths.
        notices: filled with what a person should know.

    Raises:
        Refused: GSAS-II cannot represent the phase.
    """
    group = space_group(data["space_group"])
    shift = origin_shift(data["space_group"], list(data["operations"]), group)
    _check_cell(data, group)
    anisotropic = [atom["label"] for atom in data["atoms"] if atom["u_aniso"] is not None]
    if anisotropic:
        text = f"the anisotropic displacement parameters of {len(anisotropic)} atoms are used as isotropic equivalents."
        notices.append(("adp_isotropic", f"Phase {data['name']}: {text}"))
    missing = [atom for atom in data["atoms"] if atom["u_iso"] is None and atom["u_aniso"] is None]
    if missing:
        start = DEFAULT_B / (8.0 * math.pi**2)
        text = f"{len(missing)} atoms have no displacement parameter; they start at Uiso = {start:.4f} angstrom^2."
        notices.append(("uiso_assumed", f"Phase {data['name']}: {text}"))
    types = [_scatterer(atom, data["name"], form_factors, neutron, notices) for atom in data["atoms"]]
    return PhaseModel(data, data["space_group"], shift, tuple(types), _shared_sites(data["atoms"]))


def _check_cell(data: dict[str, Any], group: dict[str, Any]) -> None:
    """Refuse a cell that its space group does not allow: GSAS-II takes it unchanged and goes on."""
    a, b, c, alpha, beta, gamma = data["cell"]
    laue = group["SGLaue"]
    equal = {"m3": "abc", "m3m": "abc", "3R": "abc", "3mR": "abc"}.get(
        laue, "" if laue in ("-1", "2/m", "mmm") else "ab"
    )
    lengths = {"a": a, "b": b, "c": c}
    same = all(math.isclose(lengths[name], a, rel_tol=1e-4) for name in equal)
    right = laue not in ("-1", "2/m", "3R", "3mR")
    wanted = (90.0, 90.0, 120.0 if laue in ("3", "3m1", "31m", "6/m", "6/mmm") else 90.0)
    fits = all(abs(angle - target) < 0.01 for angle, target in zip((alpha, beta, gamma), wanted, strict=True))
    if laue == "2/m":
        angles = dict(zip("abc", (alpha, beta, gamma), strict=True))
        right, fits = True, all(abs(angles[k] - 90.0) < 0.01 for k in angles if k != group["SGUniq"])
    if laue in ("3R", "3mR"):
        right, fits = True, abs(alpha - beta) < 0.01 and abs(alpha - gamma) < 0.01
    if min(a, b, c) <= 0.0 or not same or (right and not fits):
        text = f"Phase {data['name']}: the cell {data['cell']} does not fit the space group {data['space_group']}."
        raise Refused("input", "cell_not_of_group", text)


def _scatterer(atom: dict[str, Any], phase: str, form_factors: str, neutron: bool, notices: Notices) -> str:
    """Return GSAS-II's name of a scatterer; an unknown one it would turn into another element in silence."""
    element = atom["element"]
    match = _SPECIES.fullmatch(atom["species"])
    if not neutron:
        element = "H" if element == "D" else element
        if form_factors == "as_given" and match and (match[3] or match[4]):
            sign, number = match[3] or match[4], match[2] or match[5] or "1"
            ion = f"{match[1]}{sign}{number}"
            if ion in atmdata.XrayFF:
                return ion
            if number != "0":
                text = f"no scattering factor for {atom['species']} ({atom['label']}); neutral {element} is used."
                notices.append(("species_neutral", f"Phase {phase}: {text}"))
    known = f"{element}_" in atmdata.AtmBlens if neutron else element in atmdata.XrayFF
    # its table of atoms is needed in either case: masses, radii
    if not known or (element != "D" and element not in atmdata.XrayFF):
        text = f"Phase {phase}: GSAS-II has no scattering factor for {element} (atom {atom['label']})."
        raise Refused("input", "element_unknown", text)
    return str(element)


def _shared_sites(atoms: list[dict[str, Any]]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of atoms (indices) that sit on the same position."""
    groups: list[list[int]] = []
    for number, atom in enumerate(atoms):
        here = np.array([atom[axis] for axis in "xyz"])
        for group in groups:
            there = np.array([atoms[group[0]][axis] for axis in "xyz"])
            if np.all(np.abs((here - there + 0.5) % 1.0 - 0.5) < SAME_SITE):
                group.append(number)
                break
        else:
            groups.append([number])
    return tuple(tuple(group) for group in groups if len(group) > 1)


def start_values(phase: PhaseModel) -> dict[str, float]:
    """Return every refinable number of a phase as its description gives it."""
    prefix = f"phase.{phase.name}"
    found = {f"{prefix}.{key}": 0.0 for key in ("size", "strain", "extinction")}
    found[f"{prefix}.scale"] = 1.0
    for key, value in zip(("a", "b", "c", "alpha", "beta", "gamma"), phase.domain["cell"], strict=True):
        found[f"{prefix}.cell.{key}"] = float(value)
    for atom in phase.domain["atoms"]:
        base = f"{prefix}.atom.{atom['label']}"
        found |= {f"{base}.{axis}": float(atom[axis]) for axis in "xyz"}
        found[f"{base}.occupancy"] = float(atom["occupancy"])
        found[f"{base}.uiso"] = _isotropic(atom, phase.domain["cell"])
    return found


def _isotropic(atom: dict[str, Any], cell: list[float]) -> float:
    """Return Uiso, or Ueq = 1/3 sum_ij U_ij a*_i a*_j a_i.a_j (Fischer & Tillmanns 1988, 10.1107/S0108270187012745)."""
    if atom["u_iso"] is not None:
        return float(atom["u_iso"])
    if atom["u_aniso"] is None:
        return DEFAULT_B / (8.0 * math.pi**2)
    cosines = np.cos(np.radians(cell[3:]))
    angles = np.array([[1.0, cosines[2], cosines[1]], [cosines[2], 1.0, cosines[0]], [cosines[1], cosines[0], 1.0]])
    metric = angles * np.outer(cell[:3], cell[:3])
    stars = np.sqrt(np.diag(np.linalg.inv(metric)))
    u11, u22, u33, u12, u13, u23 = atom["u_aniso"]
    tensor = np.array([[u11, u12, u13], [u12, u22, u23], [u13, u23, u33]])
    return float(np.sum(tensor * np.outer(stars, stars) * metric)) / 3.0
