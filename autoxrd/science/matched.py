"""Where, and how surely, does a residual contain a peak of known shape? A matched filter with the noise it must beat.

The area that fits best at each place, and its esd, are weighted sums over the peak (all lines of the doublet). Their
ratio is a Gaussian process on noise; how often that rises above a level is known (Rice 1945,
doi:10.1002/j.1538-7305.1945.tb00453.x), so that a threshold follows from the false alarms one will have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.field import Field
from autoxrd.science.settings import UnexplainedSettings

__all__ = ["MatchedFilter", "matched_filter"]


@dataclass(frozen=True, slots=True)
class _Part:
    """A range of places [low, high) with one kernel, which begins ``before`` places ahead of the peak's."""

    low: int
    high: int
    before: int
    kernel: FloatArray


@dataclass(frozen=True, slots=True)
class MatchedFilter:
    """The filter of a field.

    Args:
        esd: of a fitted area at each place, shape (n,).
        level_area: area that a constant residual of 1 fits, shape (n,).
        rate: mean number of maxima of pure noise per unit of the axis is ``rate * z * exp(-z^2 / 2)`` in dz, shape (n,).
    """

    parts: tuple[_Part, ...]
    reach: int
    weight: FloatArray
    esd: FloatArray
    level_area: FloatArray
    rate: FloatArray

    def area(self, residual: FloatArray) -> FloatArray:
        """Return the area that fits best at each place, shape (n,)."""
        return _filtered(self.parts, self.reach, residual * self.weight, 1) * np.square(self.esd)

    def threshold(self, places: FloatArray, false_alarms: float) -> float:
        """Return the significance that noise passes ``false_alarms`` times on average.

        Args:
            places: length of axis of each place that is searched, shape (n,).
            false_alarms: mean number in the whole search.
        """
        expected = float(np.dot(self.rate, places))
        return math.sqrt(2.0 * math.log(max(expected / false_alarms, 1.0)))


def matched_filter(field: Field, settings: UnexplainedSettings) -> MatchedFilter:
    """Return the filter for the peak shape of a field."""
    size = field.x.size
    edges = np.linspace(0, size, min(settings.filter_parts, max(size // 64, 1)) + 1).astype(int).tolist()
    parts, rate = [], np.empty(size)
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        part, curvature = _part(field, low, high, settings)
        parts.append(part)
        rate[low:high] = math.sqrt(curvature) / (2.0 * math.pi)
    reach = max(max(part.before, part.kernel.size - part.before) for part in parts)
    bottom = _filtered(tuple(parts), reach, field.weight, 2)
    esd = 1.0 / np.sqrt(np.maximum(bottom, 1e-300))
    level_area = _filtered(tuple(parts), reach, field.weight, 1) * np.square(esd)
    return MatchedFilter(tuple(parts), reach, field.weight, esd, level_area, rate)


def _part(field: Field, low: int, high: int, settings: UnexplainedSettings) -> tuple[_Part, float]:
    """Return a part and the mean square slope of its kernel over its mean square, per unit of the axis squared."""
    middle = (low + high) // 2
    step = float(field.x[high - 1] - field.x[low]) / max(high - 1 - low, 1)
    width, at = float(field.widths[middle]), field.x[middle : middle + 1]
    reach = settings.filter_fwhm * width
    before = min(int(reach / step) + 1, high - low)
    after = min(int((reach + float((field.shape.second(at) - at)[0])) / step) + 1, 2 * (high - low))
    offset = step * np.arange(-before, after + 1)
    kernel = field.shape.at(at + offset, np.broadcast_to(at, offset.shape), np.full(offset.shape, width))
    slope = np.diff(kernel) / step
    return _Part(low, high, before, kernel), float(np.sum(np.square(slope)) / np.sum(np.square(kernel)))


def _filtered(parts: tuple[_Part, ...], reach: int, values: FloatArray, power: int) -> FloatArray:
    """Return the sums of ``values`` times the kernels' ``power`` at each place, shape (n,)."""
    padded = np.zeros(values.size + 2 * reach)
    padded[reach : reach + values.size] = values
    out = np.empty(values.size)
    for part in parts:
        first = part.low + reach - part.before
        piece = padded[first : first + part.high - part.low + part.kernel.size - 1]
        out[part.low : part.high] = np.correlate(piece, part.kernel**power, "valid")
    return out
