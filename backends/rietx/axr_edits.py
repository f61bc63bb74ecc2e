"""Changes of the model that are not the release of a parameter."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import rietx as rx
from axr_curves import chebyshev_rows, fit_chebyshev
from axr_fixed import curve_of, estimate_of
from axr_names import map_path
from axr_phases import add_phase, phase_index, remove_phase
from axr_private import table_of
from axr_seeds import background_model, chebyshev_of
from axr_state import State
from axr_strain import set_broadening
from axr_wire import Refused

__all__ = ["EDITS", "apply_edits"]

MOST_TERMS = 36

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


def _background(state: State, values: dict[str, Any]) -> State:
    """Change the number of terms and keep the curve as far as the new terms can follow it."""
    if set(values) - {"terms"}:
        raise ValueError("the background is a Chebyshev polynomial, only the number of its terms can change")
    terms = int(values["terms"])
    _require_terms(terms)
    old = _coefficients(state)
    if terms >= old.size:
        return _with_background(state, np.concatenate([old, np.zeros(terms - old.size)]))
    x, curve = _curve(state)
    return _with_background(state, fit_chebyshev(x, curve, terms))


def _require_terms(terms: int) -> None:
    if not 1 <= terms <= MOST_TERMS:
        raise ValueError(f"the number of background terms must be between 1 and {MOST_TERMS}")


def _coefficients(state: State) -> np.ndarray:
    return np.array([item.value for item in chebyshev_of(state.instrument.background).coefficients])


def _fixed(state: State, values: dict[str, Any]) -> State:
    """Put a measured or estimated curve under everything; the polynomial then stands for what it leaves.

    Args:
        state: where to.
        values: ``x_deg`` and ``y``, equally long, x rising; empty ones take the curve away. ``terms``: number of the
            polynomial's terms from then on; ``parameters``, ``wave_deg``: of a curve estimated from the data.

    Raises:
        ValueError: it is no curve.
    """
    x, y = curve_of(values)
    terms = int(values.get("terms", _coefficients(state).size))
    _require_terms(terms)
    points, curve = _curve(state)
    curve = curve + _fixed_part(state, points)
    instrument = state.instrument.model_copy(deep=True)
    instrument.background = background_model(np.zeros(terms))
    if x.size:
        # rietx refuses points beyond a curve's ends: it goes on level there, as in GSAS-II
        below, above = state.x[:1][state.x[:1] < x[0]], state.x[-1:][state.x[-1:] > x[-1]]
        instrument.background = rx.BackgroundFixedPlusChebyshev(
            fixed_two_theta=np.concatenate([below, x, above]).tolist(),
            fixed_intensity=np.concatenate([y[:1][: below.size], y, y[-1:][: above.size]]).tolist(),
            chebyshev=instrument.background,
        )
    changed = replace(state.with_models(state.structure, instrument), fixed_estimate=estimate_of(values))
    return _with_background(changed, fit_chebyshev(points, curve - _fixed_part(changed, points), terms))


def _fixed_part(state: State, x: np.ndarray) -> np.ndarray:
    background = state.instrument.background
    if not isinstance(background, rx.BackgroundFixedPlusChebyshev):
        return np.zeros_like(x)
    curve = np.interp(x, background.fixed_two_theta, background.fixed_intensity)
    return np.asarray(background.scale.value * curve)


def _curve(state: State) -> tuple[np.ndarray, np.ndarray]:
    """Return the polynomial on the used points; a fixed curve is no part of it."""
    x, coefficients = state.x[state.used()], _coefficients(state)
    return x, chebyshev_rows(x, coefficients.size, float(x[0]), float(x[-1])).T @ coefficients


def _with_background(state: State, coefficients: np.ndarray) -> State:
    instrument = state.instrument.model_copy(deep=True)
    instrument.background = background_model(coefficients, state.instrument.background)
    return state.with_models(state.structure, instrument)


def _on_other_points(state: State, changed: State) -> State:
    """Carry the background curve to another set of points: its polynomials live on the used range."""
    x_old, curve = _curve(state)
    x_new = changed.x[changed.used()]
    if x_new.size < 50:
        raise ValueError("fewer than 50 points would remain")
    terms = _coefficients(state).size
    inside = x_new[(x_new >= x_old[0]) & (x_new <= x_old[-1])]
    target = chebyshev_rows(x_new, terms, float(x_new[0]), float(x_new[-1])).T
    if inside.size < terms:
        return changed
    # beyond the old range the curve is carried level: a polynomial must not be extrapolated
    return _with_background(changed, np.linalg.lstsq(target, np.interp(x_new, x_old, curve), rcond=None)[0])


def _range(state: State, values: dict[str, Any]) -> State:
    lower, upper = float(values["lower_deg"]), float(values["upper_deg"])
    if not lower < upper:
        raise ValueError("lower_deg must be below upper_deg")
    return _on_other_points(state, replace(state, limits=(lower, upper)))


def _exclude(state: State, values: dict[str, Any]) -> State:
    lower, upper = float(values["lower_deg"]), float(values["upper_deg"])
    if not lower < upper:
        raise ValueError("lower_deg must be below upper_deg")
    return _on_other_points(state, replace(state, excluded=(*state.excluded, (lower, upper))))


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
    "background": _background,
    "background_fixed": _fixed,
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
}
