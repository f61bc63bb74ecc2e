"""Changes of the model that are not the release of a parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from axg_additions import add_debye_term, add_peak, fix_background
from axg_anisotropy import set_anisotropic, set_broadening, set_harmonics
from axg_background import FUNCTIONS, NESTED, TIMELESS, Background, fit_rows, function_rows
from axg_model import build_model
from axg_names import build_catalog
from axg_phases import add_phase, phase_index, remove_phase
from axg_prepare import MINIMUM_POINTS, MOST_TERMS
from axg_restraints import restrain_distances
from axg_state import State
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
    """Change function or number of terms, and keep the curve as far as the new ones can follow it."""
    old_kind, old_terms = state.background
    kind, terms = str(values.get("function", old_kind)), int(values.get("terms", old_terms))
    if kind not in FUNCTIONS:
        raise ValueError(f"GSAS-II's background functions are {', '.join(FUNCTIONS)}")
    if state.flight is not None and kind not in TIMELESS:
        raise ValueError(f"over the time of flight the background is one of {', '.join(TIMELESS)}")
    if not 1 <= terms <= MOST_TERMS:
        raise ValueError(f"the number of background terms must be between 1 and {MOST_TERMS}")
    x = state.x[state.used()]
    if kind == old_kind and kind in NESTED and terms >= old_terms:
        old = np.array([state.values[f"background.{k}"] for k in range(old_terms)])
        return _with_background(state, kind, np.concatenate([old, np.zeros(terms - old_terms)]))
    return _with_background(state, kind, _followed(state, kind, terms, x, _curve(state, x)))


def _curve(state: State, x: np.ndarray) -> np.ndarray:
    """Return the curve of the function's terms on the used points."""
    return Background(state, x).terms(state.values)


def _followed(state: State, kind: str, terms: int, x: np.ndarray, curve: np.ndarray) -> np.ndarray:
    return fit_rows(function_rows(kind, x, terms, state.wavelength), curve)


def _with_background(state: State, kind: str, coefficients: np.ndarray) -> State:
    gone = {f"background.{number}" for number in range(state.background[1])}
    kept = {name: value for name, value in state.values.items() if name not in gone}
    added = {f"background.{number}": float(value) for number, value in enumerate(coefficients)}
    return replace(state, values=added | kept, background=(kind, len(coefficients)))


def _on_other_points(state: State, changed: State) -> State:
    """Carry the background curve to another set of points: its functions live on the used range."""
    x_old, x_new = state.x[state.used()], changed.x[changed.used()]
    if x_new.size < MINIMUM_POINTS:
        raise ValueError(f"fewer than {MINIMUM_POINTS} points would remain")
    kind, terms = state.background
    inside = x_new[(x_new >= x_old[0]) & (x_new <= x_old[-1])]
    if inside.size < terms:
        return changed
    # beyond the old range the curve is carried level: a polynomial must not be extrapolated
    curve = np.interp(x_new, x_old, _curve(state, x_old))
    return _with_background(changed, kind, _followed(state, kind, terms, x_new, curve))


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
    index = phase_index(state, values["phase"])
    phases = list(state.phases)
    phases[index] = replace(phases[index], axis=(a, b, c), harmonics=())
    name = f"phase.{phases[index].name}.preferred_orientation"
    kept = {key: value for key, value in state.values.items() if not key.startswith(f"{name}.")}
    return replace(state, phases=tuple(phases), values={**kept, name: 1.0})


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


def _stretch(state: State, values: dict[str, Any]) -> State:
    """Change the lengths of a cell in one proportion."""
    names = [f"phase.{values['phase']}.cell.{key}" for key in "abc"]
    if not set(names) <= set(state.values):
        raise ValueError(f"there is no phase {values['phase']}")
    return state.with_values({name: state.values[name] * (1.0 + float(values["strain"])) for name in names})


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


EDITS: dict[str, Callable[[State, dict[str, Any]], State]] = {
    "background": _background,
    "background_peak": add_peak,
    "background_debye": add_debye_term,
    "background_fixed": fix_background,
    "broadening": set_broadening,
    "harmonics": set_harmonics,
    "anisotropic": set_anisotropic,
    "restrain_distances": restrain_distances,
    "range": _range,
    "exclude": _exclude,
    "texture": _texture,
    "add_phase": add_phase,
    "remove_phase": remove_phase,
    "value": _value,
    "neutral": _neutral,
    "equal_uiso": _equal_uiso,
    "apart_uiso": _apart_uiso,
    "stretch": _stretch,
}
