"""Changes of the model that are not the release of a parameter."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import rietx as rx
from axr_background import add_peak, fix_background, on_other_points, set_terms
from axr_names import map_path
from axr_phases import add_phase, phase_index, remove_phase
from axr_private import table_of
from axr_state import State
from axr_strain import set_broadening
from axr_wire import Refused

__all__ = ["EDITS", "apply_edits"]


_COORDINATE = re.compile(r"phases\.(\d+)\.atoms\.(\d+)\.([xyz])")


def apply_edits(state: State, edits: list[dict[str, Any]]) -> State:
    """Return the state after the edits, in order.

    Raises:
        Refused: an edit is unknown or cannot be made.
    """
    for edit in edits:
        if edit["kind"] not in EDITS:
            raise Refused("input", "edit_unknown", f"Unknown edit {edit['kind']!r}; known are {sorted(EDITS)}.")
        try:
            state = EDITS[edit["kind"]](state, edit["values"])
        except (KeyError, TypeError, ValueError) as error:
            raise Refused("input", "edit_invalid", f"The edit {edit['kind']} cannot be made: {error}") from error
    return replace(state, last={}) if edits else state


def _range(state: State, values: dict[str, Any]) -> State:
    lower, upper = float(values["lower_deg"]), float(values["upper_deg"])
    if not lower < upper:
        raise ValueError("lower_deg must be below upper_deg")
    return on_other_points(state, replace(state, limits=(lower, upper)))


def _exclude(state: State, values: dict[str, Any]) -> State:
    lower, upper = float(values["lower_deg"]), float(values["upper_deg"])
    if not lower < upper:
        raise ValueError("lower_deg must be below upper_deg")
    return on_other_points(state, replace(state, excluded=(*state.excluded, (lower, upper))))


def _texture(state: State, values: dict[str, Any]) -> State:
    axis = tuple(round(float(value)) for value in values["axis"])
    structure = state.structure.model_copy(deep=True)
    phase = structure.phases[phase_index(state, values["phase"])]
    phase.preferred_orientation = rx.PreferredOrientation(axis=axis)
    return state.with_models(structure, state.instrument)


def _equal_uiso(state: State, values: dict[str, Any]) -> State:
    """Let the atoms of phases share one displacement parameter, in the proportions they have."""
    names = [str(name) for name in values["phases"]]
    for name in names:
        phase_index(state, name)
    return replace(state, equal_uiso=tuple(sorted({*state.equal_uiso, *names})))


def _apart_uiso(state: State, values: dict[str, Any]) -> State:
    """Give the atoms of phases displacement parameters of their own again, from where they are."""
    names = {str(name) for name in values["phases"]}
    if not names or not names <= set(state.equal_uiso):
        raise ValueError("only atoms that share a displacement parameter can be parted")
    return replace(state, equal_uiso=tuple(name for name in state.equal_uiso if name not in names))


def _value(state: State, values: dict[str, Any]) -> State:
    """Set one parameter of ours; a coordinate moves as given, a symmetry-bound value is refused."""
    name, value = str(values["selector"]), float(values["value"])
    structure, instrument = state.structure.model_copy(deep=True), state.instrument.model_copy(deep=True)
    table = table_of(structure, instrument)
    for entry in table.entries:
        mapped = map_path(entry.path, structure)
        if mapped is None or mapped.name != name:
            continue
        coordinate = _COORDINATE.fullmatch(entry.path)
        if entry.locked or (entry.tie is not None and not coordinate):
            raise ValueError(f"{name} is fixed by symmetry or follows another parameter")
        if coordinate:
            phase, atom, axis = coordinate.groups()
            getattr(structure.phases[int(phase)].atoms[int(atom)], axis).value = value
        else:
            entry.value = value / mapped.factor
            table.refresh_ties()
            table.apply_to_models(structure, instrument)
        return state.with_models(structure, instrument)
    raise ValueError(f"there is no parameter {name}")


def _stretch(state: State, values: dict[str, Any]) -> State:
    """Change the lengths of a cell in one proportion."""
    structure = state.structure.model_copy(deep=True)
    cell = structure.phases[phase_index(state, values["phase"])].cell
    for key in "abc":
        getattr(cell, key).value *= 1.0 + float(values["strain"])
    return state.with_models(structure, state.instrument)


def _neutral(state: State, values: dict[str, Any]) -> State:
    """Take effects out of the model; a zero point and a displacement start where the other moved the lines to."""
    gone, successors = [str(name) for name in values["selectors"]], [str(name) for name in values["successors"]]
    structure, instrument = state.structure.model_copy(deep=True), state.instrument.model_copy(deep=True)
    shift = _mean_shift(state)
    table = table_of(structure, instrument)
    done = set()
    for entry in table.entries:
        mapped = map_path(entry.path, structure)
        names = () if mapped is None else _names(mapped.name)
        for name in set(gone).intersection(names):
            entry.value = 0.0
            done.add(name)
    if done != set(gone):
        raise ValueError(f"there is no {', '.join(sorted(set(gone) - done))} to take out")
    table.refresh_ties()
    table.apply_to_models(structure, instrument)
    geometry = instrument.geometry
    if "instrument.zero" in successors and "sample.displacement" in gone:
        instrument.zero_shift.value = shift
    if "sample.displacement" in successors and "instrument.zero" in gone:
        geometry.sample_displacement.value = -shift / _degrees_per_mm(state)
    return state.with_models(structure, instrument)


def _names(name: str) -> tuple[str, ...]:
    """Return the selectors that stand for a parameter: S/L and H/L are freed as one."""
    return (name, "profile.SH/L") if name in ("profile.S/L", "profile.H/L") else (name,)


def _mean_shift(state: State) -> float:
    """Return by how much zero point and displacement move the lines in the middle of the range, degrees 2theta."""
    instrument = state.instrument
    displaced = float(instrument.geometry.sample_displacement.value)
    return float(instrument.zero_shift.value) - displaced * _degrees_per_mm(state)


def _degrees_per_mm(state: State) -> float:
    """Return the shift of a line towards low angles per mm of displacement: 2 cos(theta) / R (Wilson 1963)."""
    x = state.x[state.used()]
    middle = np.radians(0.25 * (x[0] + x[-1]))
    return float(np.degrees(2.0 * np.cos(middle) / state.instrument.geometry.goniometer_radius_mm))


EDITS: dict[str, Callable[[State, dict[str, Any]], State]] = {
    "background": set_terms,
    "background_fixed": fix_background,
    "background_peak": add_peak,
    "range": _range,
    "exclude": _exclude,
    "texture": _texture,
    "add_phase": add_phase,
    "remove_phase": remove_phase,
    "value": _value,
    "neutral": _neutral,
    "equal_uiso": _equal_uiso,
    "broadening": set_broadening,
    "apart_uiso": _apart_uiso,
    "stretch": _stretch,
}
