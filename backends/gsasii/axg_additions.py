"""What can be put into the background beside its function: single peaks, Debye terms, a fixed curve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from axg_background import DEBYE, PEAK, Background, fit_rows, function_rows
from axg_model import build_model
from axg_pattern import NARROW, Engine
from axg_prepare import MOST_TERMS
from axg_quantities import QUANTITIES
from axg_state import State
from axr_fixed import curve_of, estimate_of, place_of

__all__ = ["add_debye_term", "add_peak", "fix_background"]

MOST_PEAKS = 40
MOST_DEBYE = 20
SHARE = 0.6
"""Gaussian and Lorentzian parts of a new peak start at this share of its width each."""
LEAST_AREA = 0.01
NO_WIDTH = QUANTITIES["peak_lorentz"][1]
"""Degrees: below it GSAS-II clips in silence."""
DEBYE_UISO = 0.05
"""Angstrom^2: start of the spread of a distance in a glass, 0.2 angstrom."""


def add_peak(state: State, values: dict[str, Any]) -> State:
    """Put a single peak into the background.

    Args:
        state: where to.
        values: ``position_deg``, ``width_deg`` (at half height, to start with), ``shape``: ``pseudo-voigt`` where
            nothing is said, or ``gauss``: its Lorentzian width then stays nothing unless it is freed by name.

    Raises:
        ValueError: it lies outside the range, or there are too many.
    """
    if state.flight is not None:
        raise ValueError("over the time of flight there are no single peaks in the background")
    x = state.x[state.used()]
    position, width = place_of(values, x)
    number = state.background_peaks + 1
    if number > MOST_PEAKS:
        raise ValueError(f"there are {MOST_PEAKS} single peaks already")
    gauss, lorentz = (width, NO_WIDTH) if values.get("shape") == "gauss" else (SHARE * width, SHARE * width)
    start = dict(zip(PEAK, (position, 1.0, gauss, lorentz), strict=True))
    grown = replace(
        state.with_values({f"background.peak{number}_{key}": value for key, value in start.items()}),
        background_peaks=number,
    )
    name = f"background.peak{number}_intensity"
    near = np.abs(x - position) <= width
    return grown.with_values({name: max(_matched(state, grown, name, near), LEAST_AREA)})


def add_debye_term(state: State, values: dict[str, Any]) -> State:
    """Put a Debye term into the background: diffuse scattering of pairs at a distance.

    Args:
        state: where to.
        values: ``distance_angstrom``.

    Raises:
        ValueError: the distance makes no sense, or there are too many.
    """
    if state.flight is not None:
        raise ValueError("over the time of flight there are no Debye terms")
    distance = float(values["distance_angstrom"])
    if not 0.5 <= distance <= 50.0:
        raise ValueError("a distance of a Debye term is between 0.5 and 50 angstrom")
    number = state.background_debye + 1
    if number > MOST_DEBYE:
        raise ValueError(f"there are {MOST_DEBYE} Debye terms already")
    start = dict(zip(DEBYE, (1.0, distance, DEBYE_UISO), strict=True))
    grown = replace(
        state.with_values({f"background.debye{number}_{key}": value for key, value in start.items()}),
        background_debye=number,
    )
    name = f"background.debye{number}_amplitude"
    return grown.with_values({name: _matched(state, grown, name, slice(None))})


def _matched(before: State, after: State, name: str, where: Any) -> float:
    """Return the factor of a new part that what the model leaves asks for, in least squares."""
    engine = Engine(build_model(before), NARROW)
    model = engine.model
    rest = (model.y - engine.compute(before.values).y)[where] / model.sigma[where]
    part = Background(after, model.x).compute(after.values).slopes[name][where] / model.sigma[where]
    power = float(part @ part)
    return float(rest @ part) / power if power > 0.0 else 0.0


def fix_background(state: State, values: dict[str, Any]) -> State:
    """Put a measured or estimated curve under everything; the function's terms then stand for what it leaves.

    Args:
        state: where to.
        values: ``x_deg`` and ``y``, equally long, x rising; empty ones take the curve away. ``terms``: number of
            the function's terms from then on; ``parameters``, ``wave_deg``: of a curve estimated from the data.

    Raises:
        ValueError: it is no curve.
    """
    x, y = curve_of(values)
    kind, terms = state.background[0], int(values.get("terms", state.background[1]))
    if not 1 <= terms <= MOST_TERMS:
        raise ValueError(f"the number of background terms must be between 1 and {MOST_TERMS}")
    points = state.x[state.used()]
    before = Background(state, points).compute(state.values).y
    old = {"background.fixed", *(f"background.{k}" for k in range(state.background[1]))}
    kept = {f"background.{k}": 0.0 for k in range(terms)}
    kept |= {name: value for name, value in state.values.items() if name not in old}
    if x.size:
        kept["background.fixed"] = 1.0
    curve = tuple(zip(x.tolist(), y.tolist(), strict=True))
    changed = replace(
        state, values=kept, background=(kind, terms), fixed_background=curve, fixed_estimate=estimate_of(values)
    )
    rest = before - Background(changed, points).compute(changed.values).y
    extra = fit_rows(function_rows(kind, points, terms, state.wavelength), rest)
    return changed.with_values({f"background.{k}": float(value) for k, value in enumerate(extra)})
