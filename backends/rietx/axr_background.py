"""Changes of the background's form: terms of its polynomial, a fixed curve under it, broad peaks beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import rietx as rx
from axr_curves import chebyshev_rows, fit_chebyshev
from axr_fixed import curve_of, estimate_of, place_of
from axr_private import COARSE_AREA, compiled, table_of
from axr_seeds import background_model, chebyshev_of
from axr_state import State

__all__ = ["add_peak", "fix_background", "on_other_points", "set_terms"]

MOST_TERMS = 36
MOST_PEAKS = 40
LEAST_HEIGHT = 1e-3
"""Of the highest point: a peak starts no lower, as at nothing its place and width have no gradient."""
MINIMUM_POINTS = 50


def set_terms(state: State, values: dict[str, Any]) -> State:
    """Change the number of terms and keep the curve as far as the new terms can follow it.

    Raises:
        ValueError: it cannot be.
    """
    if set(values) - {"terms"}:
        raise ValueError("the background is a Chebyshev polynomial, only the number of its terms can change")
    terms = int(values["terms"])
    _require_terms(terms)
    old = _coefficients(state)
    if terms >= old.size:
        return _with_coefficients(state, np.concatenate([old, np.zeros(terms - old.size)]))
    x, curve = _polynomial(state)
    return _with_coefficients(state, fit_chebyshev(x, curve, terms))


def fix_background(state: State, values: dict[str, Any]) -> State:
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
    points, polynomial = _polynomial(state)
    curve = polynomial + _fixed_part(state, points)
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
    return _with_coefficients(changed, fit_chebyshev(points, curve - _fixed_part(changed, points), terms))


def add_peak(state: State, values: dict[str, Any]) -> State:
    """Put a single peak into the background: a Gaussian, whose height the residual around it gives.

    Args:
        state: where to.
        values: ``position_deg``, ``width_deg`` (at half height, to start with), ``shape``: ``gauss``.

    Raises:
        ValueError: it lies outside the range, or there are too many.
    """
    if values.get("shape", "gauss") != "gauss":
        raise ValueError("a single peak of rietx's background is a Gaussian")
    position, width = place_of(values, state.x[state.used()])
    if len(state.instrument.extra_components) >= MOST_PEAKS:
        raise ValueError(f"there are {MOST_PEAKS} single peaks already")
    hump = rx.HumpComponent(
        position=rx.Parameter(value=position),
        height=rx.Parameter(value=_height(state, position, width), min=0.0),
        fwhm=rx.Parameter(value=width, min=rx.HumpComponent().fwhm.min),
    )
    instrument = state.instrument.model_copy(deep=True)
    instrument.extra_components = [*instrument.extra_components, hump]
    return state.with_models(state.structure, instrument)


def _height(state: State, position: float, width: float) -> float:
    """Return the height that the residual within a width of the place asks for, in least squares."""
    model = compiled(
        state.structure, state.instrument, state.pattern(), mode="rietveld", limits=state.limits, area=COARSE_AREA
    )
    table = table_of(state.structure, state.instrument)
    near = np.abs(model.tt - position) <= width
    rest = ((model.y_obs - model.evaluate(table.decode(table.x0()))) / model.sigma)[near]
    shape = np.exp(-4.0 * np.log(2.0) * ((model.tt[near] - position) / width) ** 2) / model.sigma[near]
    power = float(shape @ shape)
    return max(float(rest @ shape) / power if power > 0.0 else 0.0, LEAST_HEIGHT * float(np.max(model.y_obs)))


def on_other_points(state: State, changed: State) -> State:
    """Carry the background curve to another set of points: its polynomials live on the used range.

    Raises:
        ValueError: too few points would remain.
    """
    x_old, curve = _polynomial(state)
    x_new = changed.x[changed.used()]
    if x_new.size < MINIMUM_POINTS:
        raise ValueError(f"fewer than {MINIMUM_POINTS} points would remain")
    terms = _coefficients(state).size
    inside = x_new[(x_new >= x_old[0]) & (x_new <= x_old[-1])]
    target = chebyshev_rows(x_new, terms, float(x_new[0]), float(x_new[-1])).T
    if inside.size < terms:
        return changed
    # beyond the old range the curve is carried level: a polynomial must not be extrapolated
    return _with_coefficients(changed, np.linalg.lstsq(target, np.interp(x_new, x_old, curve), rcond=None)[0])


def _require_terms(terms: int) -> None:
    if not 1 <= terms <= MOST_TERMS:
        raise ValueError(f"the number of background terms must be between 1 and {MOST_TERMS}")


def _coefficients(state: State) -> np.ndarray:
    return np.array([item.value for item in chebyshev_of(state.instrument.background).coefficients])


def _polynomial(state: State) -> tuple[np.ndarray, np.ndarray]:
    """Return the polynomial on the used points; a fixed curve and peaks are no part of it."""
    x, coefficients = state.x[state.used()], _coefficients(state)
    return x, chebyshev_rows(x, coefficients.size, float(x[0]), float(x[-1])).T @ coefficients


def _with_coefficients(state: State, coefficients: np.ndarray) -> State:
    instrument = state.instrument.model_copy(deep=True)
    instrument.background = background_model(coefficients, state.instrument.background)
    return state.with_models(state.structure, instrument)


def _fixed_part(state: State, x: np.ndarray) -> np.ndarray:
    background = state.instrument.background
    if not isinstance(background, rx.BackgroundFixedPlusChebyshev):
        return np.zeros_like(x)
    curve = np.interp(x, background.fixed_two_theta, background.fixed_intensity)
    return np.asarray(background.scale.value * curve)
