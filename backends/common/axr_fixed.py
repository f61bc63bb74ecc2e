"""A curve or a peak that lies under a pattern: what an edit says of it, and what is told of a curve that was estimated.

numpy only. The curve itself is made by whoever asks for the edit: both engines are given the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from axr_rows import derived_row

__all__ = ["Estimate", "curve_notices", "curve_of", "curve_rows", "estimate_of", "place_of"]

Estimate = tuple[float, float]
"""Effective number of parameters of an estimated curve, and the shortest wave that it follows, degrees."""


def curve_of(values: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return abscissa and intensity of the curve of an edit, shape (k,) each; empty ones take a curve away.

    Raises:
        ValueError: it is no curve.
    """
    x, y = (np.asarray(values[key], dtype=np.float64) for key in ("x_deg", "y"))
    if x.shape != y.shape or x.ndim != 1 or not (np.all(np.isfinite(x)) and np.all(np.isfinite(y))):
        raise ValueError("a fixed background has equally many finite angles and intensities")
    if x.size and (x.size < 2 or np.any(np.diff(x) <= 0.0)):
        raise ValueError("a fixed background has at least two points, at rising angles")
    return x, y


def estimate_of(values: dict[str, Any]) -> Estimate | None:
    """Return what an edit says of how its curve was estimated, None where it was measured.

    Raises:
        ValueError: that makes no sense.
    """
    if "parameters" not in values:
        return None
    parameters, wave = float(values["parameters"]), float(values["wave_deg"])
    if not (0.0 <= parameters < np.inf and 0.0 < wave < np.inf):
        raise ValueError("an estimated background has a number of parameters and a shortest wave")
    return parameters, wave


def curve_rows(estimate: Estimate | None) -> list[dict[str, Any]]:
    """Return the derived quantities of an estimated curve."""
    if estimate is None:
        return []
    parameters, wave = estimate
    return [
        derived_row("background.estimate_parameters", parameters, None, ""),
        derived_row("background.estimate_wave", wave, None, "deg"),
    ]


def curve_notices(estimate: Estimate | None) -> list[tuple[str, str]]:
    """Return what is to be said of an estimated curve."""
    if estimate is None:
        return []
    parameters, wave = estimate
    text = f"A curve estimated from the pattern lies under it and is held: it follows waves from {wave:.3g} deg on"
    return [("background_estimated", f"{text}, and counts as {parameters:.1f} parameters.")]


def place_of(values: dict[str, Any], x: np.ndarray) -> tuple[float, float]:
    """Return position and width at half height of a single peak of the background, as an edit gives them.

    Args:
        values: ``position_deg``, ``width_deg``.
        x: abscissa that is used, rising.

    Raises:
        ValueError: it lies outside the range, or is broader than it.
    """
    position, width = float(values["position_deg"]), float(values["width_deg"])
    if not x[0] <= position <= x[-1]:
        raise ValueError(f"a peak at {position:g} deg lies outside the range {x[0]:g} to {x[-1]:g}")
    if not 0.0 < width <= float(x[-1] - x[0]):
        raise ValueError("the width of a peak is positive and no larger than the range")
    return position, width
