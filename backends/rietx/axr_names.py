"""Our engine-neutral names and units against rietx's dot paths: one table, both directions.

Names are those of DESIGN section 5 and of the parameter list in the engine contract. A selector
stands for one or several parameters; which of them can move is asked of rietx's own table, so that
symmetry, shared sites and held origins have one authority.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from axr_stephens import stephens_columns

__all__ = ["B_TO_U", "SELECTORS", "Catalog", "Mapped", "build_catalog", "is_term", "map_path"]

B_TO_U = 1.0 / (8.0 * math.pi**2)
"""B = 8 pi^2 U (International Tables for Crystallography D, section 1.9)."""

SELECTORS = (
    "phase.P.scale",
    "background",
    "background.N",
    "background.fixed",
    "background.peakN_KEY",
    "instrument.zero",
    "instrument.wavelength",
    "instrument.ka2_ratio",
    "sample.displacement",
    "sample.transparency",
    "sample.roughness",
    "sample.offset",
    "sample.offset_along",
    "sample.offset_across",
    "profile.U",
    "profile.V",
    "profile.W",
    "profile.X",
    "profile.Y",
    "profile.SH/L",
    "phase.P.cell",
    "phase.P.size",
    "phase.P.strain",
    "phase.P.size_gauss",
    "phase.P.strain_gauss",
    "phase.P.preferred_orientation",
    "phase.P.extinction",
    "phase.P.uiso",
    "phase.P.atom.LABEL.position",
    "phase.P.atom.LABEL.uiso",
    "phase.P.atom.LABEL.occupancy",
)

_INSTRUMENT = {
    "instrument.background.scale": ("background.fixed", ""),
    "instrument.zero_shift": ("instrument.zero", "deg"),
    "instrument.source.lines.0.wavelength": ("instrument.wavelength", "angstrom"),
    "instrument.source.lines.1.weight": ("instrument.ka2_ratio", ""),
    "instrument.geometry.sample_displacement": ("sample.displacement", "mm"),
    "instrument.geometry.sample_transparency": ("sample.transparency", ""),
    "instrument.geometry.surface_roughness.b": ("sample.roughness", ""),
    "instrument.geometry.capillary_offset_along_beam": ("sample.offset_along", "mm"),
    "instrument.geometry.capillary_offset_across_beam": ("sample.offset_across", "mm"),
    "instrument.geometry.axial_sl": ("profile.S/L", ""),
    "instrument.geometry.axial_hl": ("profile.H/L", ""),
    "instrument.profile.u": ("profile.U", "deg^2"),
    "instrument.profile.v": ("profile.V", "deg^2"),
    "instrument.profile.w": ("profile.W", "deg^2"),
    "instrument.profile.x": ("profile.X", "deg"),
    "instrument.profile.y": ("profile.Y", "deg"),
}
_PHASE = {
    "scale": ("scale", ""),
    "lor_size": ("size", "deg"),
    "lor_strain": ("strain", "deg"),
    "gauss_size": ("size_gauss", "deg^2"),
    "gauss_strain": ("strain_gauss", "deg^2"),
    "preferred_orientation.r": ("preferred_orientation", ""),
    "extinction": ("extinction", "um^2"),
}
_CELL_UNIT = {"a": "angstrom", "b": "angstrom", "c": "angstrom", "alpha": "deg", "beta": "deg", "gamma": "deg"}
_PHASE_PATH = re.compile(r"phases\.(\d+)\.(.+)")
_ATOM_PATH = re.compile(r"atoms\.(\d+)\.(x|y|z|occ|biso)")
_STEPHENS = "microstrain.dof."
_HUMP_PATH = re.compile(r"instrument\.extra_components\.(\d+)\.(position|height|fwhm)")
_HUMP = {"position": ("position", "deg"), "height": ("height", "intensity"), "fwhm": ("gauss", "deg")}
_BACKGROUND_PATH = re.compile(r"instrument\.background\.c(\d+)")


@dataclass(frozen=True)
class Mapped:
    """One of our parameters: ``value = factor * (value at path)``."""

    name: str
    path: str
    factor: float = 1.0
    unit: str = ""


def is_term(path: str) -> bool:
    """Return whether a rietx path is a coefficient of the background's polynomial."""
    return _BACKGROUND_PATH.fullmatch(path) is not None


def map_path(path: str, structure: Any) -> Mapped | None:
    """Return our parameter for a rietx path, or None where it has none (displacement DOFs, polarization, ...)."""
    if path in _INSTRUMENT:
        name, unit = _INSTRUMENT[path]
        return Mapped(name, path, 1.0, unit)
    background = _BACKGROUND_PATH.fullmatch(path)
    if background:
        return Mapped(f"background.{background.group(1)}", path, 1.0, "intensity")
    hump = _HUMP_PATH.fullmatch(path)
    if hump:
        name, unit = _HUMP[hump.group(2)]
        return Mapped(f"background.peak{int(hump.group(1)) + 1}_{name}", path, 1.0, unit)
    match = _PHASE_PATH.fullmatch(path)
    if not match:
        return None
    phase = structure.phases[int(match.group(1))]
    return _map_in_phase(path, match.group(2), phase)


def _map_in_phase(path: str, rest: str, phase: Any) -> Mapped | None:
    prefix = f"phase.{phase.name}"
    if rest in _PHASE:
        name, unit = _PHASE[rest]
        return Mapped(f"{prefix}.{name}", path, 1.0, unit)
    if rest.startswith("cell.") and rest[5:] in _CELL_UNIT:
        return Mapped(f"{prefix}.{rest}", path, 1.0, _CELL_UNIT[rest[5:]])
    if rest.startswith(_STEPHENS):
        name, factor = stephens_columns(phase)[int(rest[len(_STEPHENS) :])]
        return Mapped(f"{prefix}.strain.{name}", path, factor, "1e-12/angstrom^4")
    atom = _ATOM_PATH.fullmatch(rest)
    if not atom:
        return None
    label = phase.atoms[int(atom.group(1))].label
    kind = atom.group(2)
    if kind == "biso":
        return Mapped(f"{prefix}.atom.{label}.uiso", path, B_TO_U, "angstrom^2")
    return Mapped(f"{prefix}.atom.{label}.{'occupancy' if kind == 'occ' else kind}", path, 1.0, "")


@dataclass(frozen=True)
class Catalog:
    """What can be released in one model.

    Args:
        selectors: concrete selector -> free columns (rietx paths) that it releases; empty where
            symmetry, a held origin or the geometry leaves nothing to move.
        representatives: free column -> the parameter of ours that stands for it in the covariance.
        order: all columns in rietx's order.
    """

    selectors: dict[str, tuple[str, ...]]
    representatives: dict[str, Mapped]
    order: tuple[str, ...]

    def match(self, pattern: str) -> list[str]:
        """Return the concrete selectors that a pattern names, in table order."""
        if pattern in self.selectors:
            return [pattern]
        if pattern.endswith(".*") and pattern[:-2] in self.selectors:
            return [pattern[:-2]]
        return [name for name in self.selectors if fnmatch.fnmatchcase(name, pattern)]

    def columns(self, patterns: Iterable[str]) -> list[str]:
        """Return the free columns that patterns name, without repeats, in rietx's order."""
        wanted = {path for pattern in patterns for name in self.match(pattern) for path in self.selectors[name]}
        return [path for path in self.order if path in wanted]


class _Rows:
    """rietx's parameter rows, asked which free columns stand behind a path."""

    def __init__(self, table: Any) -> None:
        self.entries = {entry.path: entry for entry in table.entries}

    def sources(self, path: str) -> list[str]:
        entry = self.entries.get(path)
        if entry is None or entry.locked:
            return []
        if entry.tie is not None:
            return [leaf for source, _ in entry.tie.terms for leaf in self.sources(source)]
        return [] if entry.held else [path]

    def all_sources(self, paths: Iterable[str]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for path in paths:
            found.update(dict.fromkeys(self.sources(path)))
        return tuple(found)


def build_catalog(structure: Any, instrument: Any, table: Any) -> Catalog:
    """Return the catalogue of a model, from its parameter table with ties and holds applied."""
    rows = _Rows(table)
    selectors: dict[str, tuple[str, ...]] = {}
    for index, phase in enumerate(structure.phases):
        selectors.update(_phase_selectors(index, phase, rows))
    selectors.update(_instrument_selectors(instrument, rows))
    order = tuple(entry.path for entry in table.entries if rows.sources(entry.path) == [entry.path])
    representatives = {path: mapped for path in order if (mapped := map_path(path, structure)) is not None}
    for index, phase in enumerate(structure.phases):
        for atom in range(len(phase.atoms)):
            representatives.update(_coordinate_representatives(f"phases.{index}.atoms.{atom}", structure, rows))
    return Catalog(selectors, representatives, order)


def _phase_selectors(index: int, phase: Any, rows: _Rows) -> dict[str, tuple[str, ...]]:
    base, prefix = f"phases.{index}", f"phase.{phase.name}"
    found = {
        f"{prefix}.{name}": rows.all_sources([f"{base}.{rest}"])
        for rest, (name, _) in _PHASE.items()
        if f"{base}.{rest}" in rows.entries
    }
    directed = [path for path in rows.entries if path.startswith(f"{base}.{_STEPHENS}")]
    if directed:
        found[f"{prefix}.strain"] = rows.all_sources(directed)
        for path in directed:
            found[f"{prefix}.strain.{stephens_columns(phase)[int(path.rpartition('.')[2])][0]}"] = (path,)
    found[f"{prefix}.cell"] = rows.all_sources(f"{base}.cell.{key}" for key in _CELL_UNIT)
    for number, atom in enumerate(phase.atoms):
        here, name = f"{base}.atoms.{number}", f"{prefix}.atom.{atom.label}"
        found[f"{name}.position"] = rows.all_sources(f"{here}.{axis}" for axis in "xyz")
        found[f"{name}.uiso"] = rows.all_sources([f"{here}.biso"])
        found[f"{name}.occupancy"] = rows.all_sources([f"{here}.occ"])
    found[f"{prefix}.uiso"] = rows.all_sources(f"{base}.atoms.{n}.biso" for n in range(len(phase.atoms)))
    return found


def _instrument_selectors(instrument: Any, rows: _Rows) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    parts = [path for path in rows.entries if is_term(path) or _HUMP_PATH.fullmatch(path)]
    found["background"] = rows.all_sources(parts)
    for path in parts:
        mapped = map_path(path, None)
        assert mapped is not None
        found[mapped.name] = rows.all_sources([path])
    for path, (name, _) in _INSTRUMENT.items():
        if path in rows.entries and name not in ("profile.S/L", "profile.H/L"):
            found[name] = rows.all_sources([path])
    axial = ("instrument.geometry.axial_sl", "instrument.geometry.axial_hl")
    found["profile.SH/L"] = rows.all_sources(path for path in axial if path in rows.entries)
    if instrument.geometry.kind == "debye_scherrer":
        found["sample.offset"] = found["sample.offset_along"] + found["sample.offset_across"]
        for name in ("sample.displacement", "sample.transparency"):
            found.pop(name, None)
    else:
        for name in ("sample.offset_along", "sample.offset_across"):
            found.pop(name, None)
        if instrument.source.kind == "xray_cw":
            # not in the model before it is asked for, as a texture
            found.setdefault("sample.roughness", ())
    return found


def _coordinate_representatives(base: str, structure: Any, rows: _Rows) -> dict[str, Mapped]:
    """Name each free displacement of a site after a coordinate that it moves, one coordinate each."""
    columns = list(rows.all_sources(f"{base}.{axis}" for axis in "xyz"))
    columns = [path for path in columns if path.startswith(f"{base}.dof.")]
    if not columns:
        return {}
    weights = np.zeros((3, len(columns)))
    for row, axis in enumerate("xyz"):
        entry = rows.entries[f"{base}.{axis}"]
        for source, coefficient in entry.tie.terms if entry.tie is not None else ():
            if source in columns:
                weights[row, columns.index(source)] = coefficient
    chosen: dict[str, Mapped] = {}
    taken: list[int] = []
    for column, path in enumerate(columns):
        pivot = _pivot(weights, taken, column)
        taken.append(pivot)
        mapped = map_path(f"{base}.{'xyz'[pivot]}", structure)
        assert mapped is not None
        chosen[path] = mapped
    return chosen


def _pivot(weights: np.ndarray, taken: list[int], column: int) -> int:
    """Return a coordinate that keeps the chosen ones independent of each other."""
    for axis in range(3):
        if axis not in taken and weights[axis, column] != 0:
            rows = [*taken, axis]
            if np.linalg.matrix_rank(weights[np.ix_(rows, range(column + 1))]) == len(rows):
                return axis
    return next(axis for axis in range(3) if axis not in taken)
