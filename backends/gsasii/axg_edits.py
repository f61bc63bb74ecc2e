"""Changes of the model that are not the release of a parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from axg_model import build_model
from axg_names import build_catalog
from axg_prepare import MINIMUM_POINTS, MOST_TERMS
from axg_state import State
from axr_curves import chebyshev_rows, fit_chebyshev
from axr_wire import Refused

__all__ = ["EDITS", "apply_edits"]

_GROUPS = {"profile.SH/L": ("profile.S/L", "profile.H/L")}


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


def _background(state: State, values: dict[str, Any]) -> State:
    """Change the number of terms and keep the curve as far as the new terms can follow it."""
    terms = int(values["terms"])
    if not 1 <= terms <= MOST_TERMS:
        raise ValueError(f"the number of background terms must be between 1 and {MOST_TERMS}")
    old = _coefficients(state)
    if terms >= old.size:
        return _with_background(state, np.concatenate([old, np.zeros(terms - old.size)]))
    x, curve = _curve(state)
    return _with_background(state, fit_chebyshev(x, curve, terms))


def _coefficients(state: State) -> np.ndarray:
    return np.array([state.values[f"background.{k}"] for k in range(state.background[1])])


def _curve(state: State) -> tuple[np.ndarray, np.ndarray]:
    x, coefficients = state.x[state.used()], _coefficients(state)
    return x, chebyshev_rows(x, coefficients.size, float(x[0]), float(x[-1])).T @ coefficients


def _with_background(state: State, coefficients: np.ndarray) -> State:
    kept = {name: value for name, value in state.values.items() if not name.startswith("background.")}
    added = {f"background.{number}": float(value) for number, value in enumerate(coefficients)}
    return replace(state, values=added | kept, background=(state.background[0], len(coefficients)))


def _on_other_points(state: State, changed: State) -> State:
    """Carry the background curve to another set of points: its polynomials live on the used range."""
    x_old, curve = _curve(state)
    x_new = changed.x[changed.used()]
    if x_new.size < MINIMUM_POINTS:
        raise ValueError(f"fewer than {MINIMUM_POINTS} points would remain")
    terms = state.background[1]
    inside = x_new[(x_new >= x_old[0]) & (x_new <= x_old[-1])]
    if inside.size < terms:
        return changed
    # beyond the old range the curve is carried level: a polynomial must not be extrapolated
    return _with_background(changed, fit_chebyshev(x_new, np.interp(x_new, x_old, curve), terms))


def _ends(values: dict[str, Any]) -> tuple[float, float]:
    lower, upper = float(values["lower_deg"]), float(values["upper_deg"])
    if not lower < upper:
        raise ValueError("lower_deg must be below upper_deg")
    return lower, upper


def _range(state: State, values: dict[str, Any]) -> State:
    return _on_other_points(state, replace(state, limits=_ends(values)))


def _exclude(state: State, values: dict[str, Any]) -> State:
    return _on_other_points(state, replace(state, excluded=(*state.excluded, _ends(values))))


def _texture(state: State, values: dict[str, Any]) -> State:
    a, b, c = (round(float(value)) for value in values["axis"])
    if (a, b, c) == (0, 0, 0):
        raise ValueError("an axis has at least one index that is not zero")
    index = _phase_index(state, values["phase"])
    phases = list(state.phases)
    phases[index] = replace(phases[index], axis=(a, b, c))
    name = f"phase.{phases[index].name}.preferred_orientation"
    return replace(state, phases=tuple(phases)).with_values({name: 1.0})


def _remove_phase(state: State, values: dict[str, Any]) -> State:
    gone = _phase_index(state, values["phase"])
    if len(state.phases) == 1:
        raise ValueError("the only phase cannot be removed")
    prefix = f"phase.{state.phases[gone].name}."
    return replace(
        state,
        phases=tuple(phase for index, phase in enumerate(state.phases) if index != gone),
        values={name: value for name, value in state.values.items() if not name.startswith(prefix)},
        intensities=tuple(rows for index, rows in enumerate(state.intensities) if index != gone),
    )


def _value(state: State, values: dict[str, Any]) -> State:
    """Set one number of ours and all that follows it; a coordinate moves alone, a symmetry-bound value is refused."""
    name, value = str(values["selector"]), float(values["value"])
    if name not in state.values:
        raise ValueError(f"there is no parameter {name}")
    if name.endswith((".x", ".y", ".z")) and ".atom." in name:
        return state.with_values({name: value})
    column = build_catalog(build_model(state)).columns.get(name)
    if column is None:
        raise ValueError(f"{name} is fixed by symmetry or follows another parameter")
    return state.with_values(column.moved(state.values, value - state.values[name]))


def _neutral(state: State, values: dict[str, Any]) -> State:
    """Take effects out of the model; a zero point and a displacement start where the other moved the lines to."""
    gone, successors = [str(name) for name in values["selectors"]], [str(name) for name in values["successors"]]
    names = [name for selector in gone for name in _GROUPS.get(selector, (selector,))]
    missing = [name for name in names if name not in state.values]
    if missing:
        raise ValueError(f"there is no {', '.join(missing)} to take out")
    x = state.x[state.used()]
    # a line moves towards low angles by 2 cos(theta) / R per mm of displacement (Wilson 1963)
    slope = float(np.degrees(2.0 * np.cos(np.radians(0.25 * (x[0] + x[-1]))) / state.radius_mm))
    changed = dict.fromkeys(names, 0.0)
    if "instrument.zero" in successors and "sample.displacement" in gone:
        changed["instrument.zero"] = state.values["instrument.zero"] - slope * state.values["sample.displacement"]
    if "sample.displacement" in successors and "instrument.zero" in gone:
        changed["sample.displacement"] = state.values["sample.displacement"] - state.values["instrument.zero"] / slope
    return state.with_values(changed)


def _phase_index(state: State, name: object) -> int:
    for index, phase in enumerate(state.phases):
        if phase.name == name:
            return index
    raise ValueError(f"there is no phase {name}")


EDITS: dict[str, Callable[[State, dict[str, Any]], State]] = {
    "background": _background,
    "range": _range,
    "exclude": _exclude,
    "texture": _texture,
    "remove_phase": _remove_phase,
    "value": _value,
    "neutral": _neutral,
}
