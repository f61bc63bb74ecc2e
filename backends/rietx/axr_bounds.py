"""Limits of a command, put where rietx's least squares can honour them: on the free columns themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from axr_names import Catalog, Mapped
from axr_private import build_table, table_of
from axr_state import State

__all__ = ["Limits", "column_bounds", "follow"]

Limits = dict[str, tuple[float, float]]


def column_bounds(ref: Any, catalog: Catalog, bounds: list[dict[str, Any]]) -> Limits:
    """Return limits by rietx path: of the parameters named, and of the displacements that move coordinates.

    Args:
        ref: the refinement object, ties applied.
        catalog: its catalogue.
        bounds: ``selector``, ``lower``, ``upper`` in our units; a selector is a parameter's name or
            stands for all that it frees.
    """
    entries = {entry.path: entry for entry in build_table(ref).entries}
    found: Limits = {}
    for bound in bounds:
        for mapped in _bounded(catalog, bound["selector"]):
            lower, upper = bound["lower"] / mapped.factor, bound["upper"] / mapped.factor
            for path, (low, high) in _limits_of(entries, mapped, lower, upper).items():
                old = found.get(path, (-math.inf, math.inf))
                found[path] = (max(old[0], low), min(old[1], high))
    return found


def _bounded(catalog: Catalog, selector: str) -> list[Mapped]:
    known = catalog.representatives
    named = [mapped for mapped in known.values() if mapped.name == selector]
    if named:
        return named
    # the limits of a strain without direction are not those of coefficients
    freed = [path for path in catalog.columns([selector]) if ".microstrain." not in path]
    return [known[path] for path in freed if path in known]


def _limits_of(entries: dict[str, Any], mapped: Mapped, lower: float, upper: float) -> Limits:
    entry = entries[mapped.path]
    found = {mapped.path: (lower, upper)}
    if entry.tie is not None and len(entry.tie.terms) == 1:
        # a coordinate: its column is a displacement from where it stands now
        source, coefficient = entry.tie.terms[0]
        ends = sorted(((lower - entry.value) / coefficient, (upper - entry.value) / coefficient))
        found[source] = (ends[0], ends[1])
    return found


def follow(bounds: Limits, old: State, new: State) -> Limits:
    """Return the limits after a pass: displacements are measured anew from where each atom then stands."""
    followed = dict(bounds)
    for path, (lower, upper) in bounds.items():
        if ".atoms." in path and ".dof." in path:
            _, phase, _, atom, _, number = path.split(".")
            shift = _displacement(old, new, int(phase), int(atom), int(number))
            followed[path] = (lower - shift, upper - shift)
    return followed


def _displacement(old: State, new: State, phase: int, atom: int, number: int) -> float:
    """Return how far a site moved along one of its free directions."""
    entries = {entry.path: entry for entry in table_of(old.structure, old.instrument).entries}
    base = f"phases.{phase}.atoms.{atom}"
    before, after = old.structure.phases[phase].atoms[atom], new.structure.phases[phase].atoms[atom]
    names = sorted(path for path in entries if path.startswith(f"{base}.dof."))
    weights = np.zeros((3, len(names)))
    for row, axis in enumerate("xyz"):
        tie = entries[f"{base}.{axis}"].tie
        for source, coefficient in tie.terms if tie is not None else ():
            weights[row, names.index(source)] = coefficient
    step = np.array([getattr(after, axis).value - getattr(before, axis).value for axis in "xyz"])
    return float(np.linalg.lstsq(weights, step, rcond=None)[0][names.index(f"{base}.dof.{number}")])
