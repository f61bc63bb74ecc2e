"""What can be released, and which numbers move when it is: selectors, columns and their symmetry.

A column is one free parameter: a number of ours with all that symmetry, a shared site or a constant sum makes
follow it linearly. GSAS-II's own constraints are not used.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from axg_adp import COMPONENTS, allowed_tensors, equivalent_weights
from axg_background import names_of
from axg_model import Model, cell_of
from axg_quantities import FLIGHT_POSITION, FLIGHT_SHAPE, quantity_of, row_of
from axg_state import PhaseModel, State
from axg_symmetry import free_directions, polar_space

__all__ = ["SELECTORS", "Catalog", "Column", "build_catalog"]

SELECTORS = (
    "phase.P.scale",
    "background",
    "background.N",
    "background.peakN_KEY",
    "background.debyeN_KEY",
    "background.fixed",
    "instrument.zero",
    "instrument.wavelength",
    "instrument.ka2_ratio",
    "instrument.difC",
    "instrument.difA",
    "instrument.difB",
    "sample.displacement",
    "sample.transparency",
    "sample.roughness",
    "sample.offset",
    "sample.offset_along",
    "sample.offset_across",
    "absorption",
    "profile.U",
    "profile.V",
    "profile.W",
    "profile.X",
    "profile.Y",
    "profile.Z",
    "profile.SH/L",
    "profile.alpha",
    "profile.beta-0",
    "profile.beta-1",
    "profile.beta-q",
    "profile.sig-0",
    "profile.sig-1",
    "profile.sig-2",
    "profile.sig-q",
    "phase.P.cell",
    "phase.P.strain_hydrostatic",
    "phase.P.size",
    "phase.P.strain",
    "phase.P.preferred_orientation",
    "phase.P.extinction",
    "phase.P.uiso",
    "phase.P.atom.LABEL.position",
    "phase.P.atom.LABEL.uiso",
    "phase.P.atom.LABEL.occupancy",
)

_ATOMIC = ("occupancy", "uiso", "x", "y", "z", *COMPONENTS)
_INTENSITY = ("scale", "preferred_orientation", "harmonic", "extinction", "absorption", "roughness", *_ATOMIC)
"""What a profile match cannot tell: intensities stand for it."""
_EQUAL_LENGTHS = {"m3": "abc", "m3m": "abc", "3R": "abc", "3mR": "abc", "-1": "", "2/m": "", "mmm": ""}
_FREE_ANGLES = {"-1": ("alpha", "beta", "gamma"), "3R": ("alpha",), "3mR": ("alpha",)}


@dataclass(frozen=True)
class Column:
    """One free parameter.

    Args:
        name: the number of ours that stands for it.
        moves: every number that moves with it, by how much for one unit.
        lower, upper: limits of that number.
        step: of a difference, in its unit; negative: relative to the value.
    """

    name: str
    moves: tuple[tuple[str, float], ...]
    lower: float
    upper: float
    step: float

    @cached_property
    def phases(self) -> frozenset[str]:
        """Names of the phases whose numbers move."""
        return frozenset(key.split(".")[1] for key, _ in self.moves if key.startswith("phase."))

    @property
    def axial(self) -> bool:
        """True for the axial divergence, whose derivative the peak shape gives."""
        return self.name == "profile.S/L"

    def concerns(self, phase: str) -> bool:
        """Return whether it changes the Bragg pattern of a phase."""
        return phase in self.phases if self.phases else not self.name.startswith("background.")

    def moved(self, values: dict[str, float], shift: float) -> dict[str, float]:
        """Return the values after a shift."""
        return {**values, **{key: values[key] + weight * shift for key, weight in self.moves}}

    def around(self, values: dict[str, float]) -> tuple[dict[str, float], dict[str, float], float]:
        """Return values above and below, and their distance; below is here where the lower limit is."""
        step = self.step if self.step > 0 else -self.step * max(abs(values[self.name]), 1e-12)
        below = 0.0 if values[self.name] - step < self.lower else step
        return self.moved(values, step), self.moved(values, -below), step + below


@dataclass(frozen=True)
class Catalog:
    """What can be released in one model.

    Args:
        selectors: concrete selector -> names of the columns it frees; empty where nothing can move.
        columns: every column by name, in a fixed order.
        flight: True over the time of flight.
    """

    selectors: dict[str, tuple[str, ...]]
    columns: dict[str, Column] = field(default_factory=dict)
    flight: bool = False

    def match(self, pattern: str) -> list[str]:
        """Return the concrete selectors that a pattern names, in table order."""
        if pattern in self.selectors:
            return [pattern]
        if pattern.endswith(".*") and pattern[:-2] in self.selectors:
            return [pattern[:-2]]
        return [name for name in self.selectors if fnmatch.fnmatchcase(name, pattern)]

    def freed(self, patterns: Iterable[str]) -> list[Column]:
        """Return the columns that patterns name, without repeats, in table order."""
        wanted = {column for pattern in patterns for name in self.match(pattern) for column in self.selectors[name]}
        return [column for name, column in self.columns.items() if name in wanted]


def build_catalog(model: Model) -> Catalog:
    """Return the catalogue of a model."""
    state = model.state
    catalog = Catalog({}, {}, state.flight is not None)
    for phase in state.phases:
        _phase(catalog, phase, model)
        if phase.name in state.equal_uiso:
            _share_uiso(catalog, phase.name, state.values)
    for number in range(state.background[1]):
        _add(catalog, f"background.{number}", [(f"background.{number}", 1.0)], [f"background.{number}", "background"])
    for part in ("peak", "debye"):
        for name in names_of(state, part):
            # a peak without a Lorentzian part is a Gaussian: in what all of the background frees it stays one
            gone = quantity_of(name) == "peak_lorentz" and state.values[name] <= row_of(name, flight=catalog.flight)[1]
            _add(catalog, name, [(name, 1.0)], [name] if gone else [name, "background"])
    if state.fixed_background:
        _add(catalog, "background.fixed", [("background.fixed", 1.0)], ["background.fixed"])
    for name in _instrument_names(state):
        _add(catalog, name, [(name, 1.0)], [name])
    if state.flight is None:
        _add(catalog, "profile.S/L", [("profile.S/L", 1.0), ("profile.H/L", 1.0)], ["profile.SH/L"])
    if state.geometry == "debye_scherrer" and state.flight is None:
        catalog.selectors["sample.offset"] = ("sample.offset_along", "sample.offset_across")
    if state.mode == "lebail":
        for name, columns in catalog.selectors.items():
            catalog.selectors[name] = tuple(c for c in columns if quantity_of(c) not in _INTENSITY)
    return catalog


def _instrument_names(state: State) -> list[str]:
    if state.flight is not None:
        places = [f"instrument.{key}" for key in ("zero", *FLIGHT_POSITION)]
        return [*places, "absorption", *(f"profile.{key}" for key in FLIGHT_SHAPE)]
    names = ["instrument.zero", "instrument.wavelength"]
    names += ["instrument.ka2_ratio"] if state.second_line is not None else []
    if state.geometry == "bragg_brentano":
        names += ["sample.displacement", "sample.transparency"]
        names += ["sample.roughness"] if "sample.roughness" in state.values else []
    else:
        names += ["sample.offset_along", "sample.offset_across", "absorption"]
    return names + [f"profile.{key}" for key in "UVWXYZ"]


def _add(catalog: Catalog, name: str, moves: list[tuple[str, float]], selectors: list[str]) -> None:
    _, lower, upper, step = row_of(name, flight=catalog.flight)
    catalog.columns.setdefault(name, Column(name, tuple(moves), lower, upper, step))
    for selector in selectors:
        catalog.selectors[selector] = (*catalog.selectors.get(selector, ()), name)


def _phase(catalog: Catalog, phase: PhaseModel, model: Model) -> None:
    prefix = f"phase.{phase.name}"
    for key, parts in _parts(phase).items():
        for name in (f"{prefix}.{part}" for part in parts):
            _add(catalog, name, [(name, 1.0)], list(dict.fromkeys((name, f"{prefix}.{key}"))))
    group = model.phases[phase.name]["General"]["SGData"]
    for moved in _cell_moves(group):
        keys = [(f"{prefix}.cell.{key}", 1.0) for key in moved]
        _add(catalog, keys[0][0], keys, [f"{prefix}.cell"])
    catalog.selectors[f"{prefix}.uiso"] = ()
    held = _held_atom(phase, model)
    for number, atom in enumerate(phase.domain["atoms"]):
        site = next((group for group in phase.shared if number in group), (number,))
        base = f"{prefix}.atom.{atom['label']}"
        for quantity in ("position", "uiso", "occupancy"):
            catalog.selectors[f"{base}.{quantity}"] = ()
        _atom(catalog, phase, number, site, model, polar=number == held)


def _parts(phase: PhaseModel) -> dict[str, list[str]]:
    """Return what each quantity of a phase's lines consists of: itself, or what its anisotropic form has."""
    axial = ["size"] + (["size.axial"] if phase.size_axis is not None else [])
    strain = ["strain"] + (["strain.axial"] if phase.strain_axis is not None else [])
    if phase.stephens:
        strain = [f"strain.{name}" for name in phase.stephens]
    found = {"scale": ["scale"], "size": axial, "strain": strain, "extinction": ["extinction"]}
    texture = ["preferred_orientation"] if phase.axis is not None else []
    texture += [f"preferred_orientation.{name}" for name in phase.harmonics]
    return found | ({"preferred_orientation": texture} if texture else {})


def _share_uiso(catalog: Catalog, phase: str, values: dict[str, float]) -> None:
    """Let the atoms of a phase share one displacement parameter: theirs keep their proportions."""
    every = catalog.selectors[f"phase.{phase}.uiso"]
    own = [name for name in every if name.endswith(".uiso") and values[name] > 0.0]
    if len(own) < 2:
        return
    first = own[0]
    moves = [(key, w * values[name] / values[first]) for name in own for key, w in catalog.columns[name].moves]
    catalog.columns[first] = replace(catalog.columns[first], moves=tuple(moves))
    for name in own[1:]:
        del catalog.columns[name]
    for selector, names in catalog.selectors.items():
        kept = dict.fromkeys(first if name in own else name for name in names)
        catalog.selectors[selector] = tuple(kept)


def _cell_moves(group: dict[str, object]) -> list[tuple[str, ...]]:
    """Return groups of cell edges and angles that are one parameter."""
    laue = str(group["SGLaue"])
    together = _EQUAL_LENGTHS.get(laue, "ab")
    lengths = ([tuple(together)] if together else []) + [(key,) for key in "abc" if key not in together]
    angles: list[tuple[str, ...]] = [(key,) for key in _FREE_ANGLES.get(laue, ())]
    if laue in ("3R", "3mR"):
        angles = [("alpha", "beta", "gamma")]
    if laue == "2/m":
        angles = [({"a": "alpha", "b": "beta", "c": "gamma"}[str(group["SGUniq"])],)]
    return lengths + angles


def _held_atom(phase: PhaseModel, model: Model) -> int | None:
    """Return the strongest scatterer of a polar group: one atom holds the origin."""
    if not phase.domain["atoms"] or not len(polar_space(model.phases[phase.name]["General"]["SGData"])):
        return None
    rows = model.phases[phase.name]["Atoms"]
    table = model.controls["BLtables" if model.state.radiation == "neutron" else "FFtables"]

    def strength(number: int) -> float:
        row = rows[number]
        entry = table[row[1]]
        power = abs(entry[1]["SL"][0]) if model.state.radiation == "neutron" else float(entry["Z"])
        return power * float(row[6]) * float(row[8])

    return max(range(len(rows)), key=strength)


def _atom(
    catalog: Catalog, phase: PhaseModel, number: int, site: tuple[int, ...], model: Model, *, polar: bool
) -> None:
    """Add an atom's columns; those of a shared site belong to its first atom, the last one's share is the rest."""
    group = model.phases[phase.name]["General"]["SGData"]
    labels = [phase.domain["atoms"][k]["label"] for k in site]
    bases = [f"phase.{phase.name}.atom.{label}" for label in labels]
    base, first = f"phase.{phase.name}.atom.{phase.domain['atoms'][number]['label']}", bases[0]
    position = np.array(model.phases[phase.name]["Atoms"][number][3:6], dtype=float)
    for direction in free_directions(position, group):
        if (polar or any(k == _held_atom(phase, model) for k in site)) and _along_polar(direction, group):
            continue
        lead = "xyz"[int(np.flatnonzero(direction)[0])]
        moves = [(f"{b}.{axis}", float(w)) for b in bases for axis, w in zip("xyz", direction, strict=True) if w]
        _add(catalog, f"{first}.{lead}", moves, [f"{base}.position"])
    moving = _displacements(phase, number, bases, position, model)
    for name, moves in moving.items():
        _add(catalog, name, moves, [f"{base}.uiso"])
    if number == site[0]:
        catalog.selectors[f"phase.{phase.name}.uiso"] += tuple(moving)
    if len(site) == 1:
        _add(catalog, f"{base}.occupancy", [(f"{base}.occupancy", 1.0)], [f"{base}.occupancy"])
    elif number != site[-1]:
        moves = [(f"{base}.occupancy", 1.0), (f"{bases[-1]}.occupancy", -1.0)]
        _add(catalog, f"{base}.occupancy", moves, [f"{base}.occupancy"])
    else:
        catalog.selectors[f"{base}.occupancy"] = tuple(f"{b}.occupancy" for b in bases[:-1])


def _displacements(
    phase: PhaseModel, number: int, bases: list[str], position: np.ndarray, model: Model
) -> dict[str, list[tuple[str, float]]]:
    """Return the displacement parameters of a site by their names, each with what moves along."""
    if number not in phase.anisotropic:
        return {f"{bases[0]}.uiso": [(f"{b}.uiso", 1.0) for b in bases]}
    cell = cell_of(phase, model.state.values)
    weights, found = equivalent_weights(cell), {}
    for tensor in allowed_tensors(position, model.phases[phase.name]["General"]["SGData"], cell):
        equivalent = sum(weights[key] * value for key, value in tensor.items())
        moves = [(f"{b}.{key}", value) for b in bases for key, value in tensor.items()]
        moves += [(f"{b}.uiso", equivalent) for b in bases]
        found[f"{bases[0]}.{next(iter(tensor))}"] = moves
    return found


def _along_polar(direction: np.ndarray, group: dict[str, object]) -> bool:
    axes = polar_space(group)
    return bool(len(axes)) and bool(np.any(np.abs(axes @ direction) > 1e-6))
