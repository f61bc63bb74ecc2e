"""What does the search for unknown peaks read? A fit's residual and what bears on it, in steps no finer than needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import median
from autoxrd.science.curves import Totals
from autoxrd.science.doublet import PeakShape, peak_shape
from autoxrd.science.frame import Frame
from autoxrd.science.inputs import MeasureContext
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import windows_between

__all__ = ["AREA_OVER_HEIGHT", "CHANGES", "Field", "field_of"]

CHANGES = 6
"""Of the lines near a place: scale, position, ln width, skew, Lorentzian fraction of the low and of the high side."""
AREA_OVER_HEIGHT = 1.1
"""Of a line, in FWHM: 1.06 for a Gaussian."""
_BINS = 12
_FALLBACK_STEPS = 6.0
_FEWEST = 1000


@dataclass(frozen=True)
class Field:
    """Arrays of shape (n,), n at most the number of channels.

    Args:
        x: places, unit of the axis.
        residual, net_obs, net_calc: means over the channels of a place.
        variance: of the residual; ``weight`` is its inverse.
        step: length of axis that a place stands for.
        widths: width of calculated lines around there, unit of the axis.
        covered: within max(0.5 FWHM, 2 steps) of a calculated line.
        near: in the reach of a calculated line.
        count_factor: variance per count of a place, 0 where the variance is not that of counts.
        shape: what a peak of an unknown reflection looks like.
        totals: derivatives of the calculated pattern at every channel.
        channels: that make a place.
    """

    x: FloatArray
    residual: FloatArray
    net_obs: FloatArray
    net_calc: FloatArray
    variance: FloatArray
    weight: FloatArray
    step: FloatArray
    widths: FloatArray
    covered: NDArray[np.bool_]
    near: NDArray[np.bool_]
    count_factor: float
    shape: PeakShape
    totals: Totals
    channels: int

    @cached_property
    def changes(self) -> FloatArray:
        """Return derivatives of the calculated pattern by common changes of its lines, shape (6, n)."""
        t = self.totals
        columns = (t.value, t.shift, t.width, t.skew, t.tail_low, t.tail_high)
        return np.stack([_binned(column, self.channels) for column in columns])

    @property
    def span(self) -> float:
        """Return the length of the axis."""
        return float(self.step.sum())

    def at(self, position: FloatArray) -> NDArray[np.int64]:
        """Return the place next above each position."""
        return np.clip(np.searchsorted(self.x, position), 0, self.x.size - 1)


def field_of(frame: Frame, context: MeasureContext) -> Field:
    """Return the field of an aligned frame."""
    settings = context.settings.unexplained
    widths = _local_fwhm(frame)
    size = _places(frame, widths, settings)
    near = np.zeros(frame.x.size)
    near[frame.line_windows.point] = 1.0
    variance = _binned(frame.variance, size) / size
    eta = median(frame.lines.eta) if frame.lines.eta.size else settings.eta
    return Field(
        x=_binned(frame.x, size),
        residual=_binned(frame.residual, size),
        net_obs=_binned(frame.net_obs, size),
        net_calc=_binned(frame.net_calc, size),
        variance=variance,
        weight=1.0 / variance,
        step=_binned(frame.step, size) * size,
        widths=_binned(widths, size),
        covered=_binned(_covered(frame, settings), size) > 0.0,
        near=_binned(near, size) > 0.0,
        count_factor=frame.count_factor / size,
        shape=peak_shape(context, angular=frame.angular, eta=eta),
        totals=frame.totals,
        channels=size,
    )


def _local_fwhm(frame: Frame) -> FloatArray:
    """Return the width of calculated lines at every channel, shape (n,): medians of ranges, interpolated."""
    position, fwhm = frame.lines.position, frame.lines.fwhm
    if position.size == 0:
        return np.full_like(frame.x, _FALLBACK_STEPS * float(np.median(frame.step)))
    parts = np.array_split(np.arange(position.size), min(_BINS, position.size))
    centres = [median(position[part]) for part in parts]
    return np.asarray(np.interp(frame.x, centres, [median(fwhm[part]) for part in parts]))


def _places(frame: Frame, widths: FloatArray, settings: UnexplainedSettings) -> int:
    """Return how many channels make a place, so that a peak keeps enough of them, and the pattern too."""
    finest = float(np.min(widths / np.maximum(frame.step, 1e-300)))
    return max(int(min(finest / settings.steps_per_fwhm, frame.x.size / _FEWEST)), 1)


def _binned(values: FloatArray, size: int) -> FloatArray:
    """Return means of ``size`` values each; what is left at the end makes none."""
    if size == 1:
        return values
    end = values.size // size * size
    # numpy is slow at means over a short axis
    total = values[0:end:size].copy()
    for first in range(1, size):
        total += values[first:end:size]
    return np.asarray(total / size)


def _covered(frame: Frame, settings: UnexplainedSettings) -> FloatArray:
    """Return 1 for channels within max(0.5 FWHM, 2 steps) of any calculated line, whatever its intensity, else 0."""
    lines, size = frame.lines, frame.x.size
    step = frame.step[np.clip(np.searchsorted(frame.x, lines.position), 0, size - 1)]
    zone = np.maximum(settings.exclusion_fwhm * lines.fwhm, settings.exclusion_steps * step)
    windows = windows_between(frame.x, lines.position - zone, lines.position + zone)
    depth = np.bincount(windows.low, minlength=size + 1) - np.bincount(windows.high, minlength=size + 1)
    return np.asarray(np.cumsum(depth)[:size] > 0, dtype=np.float64)
