"""Where, and how surely, does a residual contain a peak of known shape? A matched filter with the noise it must beat.

The area that fits best at each place, and its esd, are weighted sums over the peak (all lines of the doublet). Their
ratio is a Gaussian process on noise; how often that rises above a level is known (Rice 1945,
doi:10.1002/j.1538-7305.1945.tb00453.x), so that a threshold follows from the false alarms one will have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.unexplained.field import Field
from autoxrd.science.unexplained.residual import Slow

__all__ = ["MatchedFilter", "matched_filter"]

_LEFT = 0.8
"""Least share of a place's variance that is left beside the slow part: a peak is a small part of a piece of that."""


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
        skew: skewness of a fitted area's noise, shape (n,).
        level_area: area that a constant residual of 1 fits, shape (n,).
        rate: pure noise has ``rate z exp(-z^2 / 2)`` maxima per unit of z and of the axis, shape (n,).
    """

    parts: tuple[_Part, ...]
    reach: int
    weight: FloatArray
    esd: FloatArray
    skew: FloatArray
    level_area: FloatArray
    rate: FloatArray

    def area(self, residual: FloatArray) -> FloatArray:
        """Return the area that fits best at each place, shape (n,)."""
        return _filtered(self.parts, self.reach, residual * self.weight, 1) * np.square(self.esd)

    def variance(self, slow: Slow, apart: NDArray[np.bool_]) -> FloatArray:
        """Return the variance of the area when a slow part is off, shape (n,).

        Where the slow part comes from the same data it took a share of the noise with it, and what is left is that of a
        peak beside a constant; places ``apart`` gave nothing to it and bear its noise too. The level at a place is
        interpolated between pieces, so that no more than a small share can be known to be gone.
        """
        noise = np.where(apart, 1.0, -1.0) * np.square(slow.noise)
        own = np.square(self.esd)
        return np.asarray(np.maximum(own + (np.square(slow.bend) + noise) * np.square(self.level_area), _LEFT * own))

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
    edges = np.linspace(0, size, min(settings.filter_parts, max(size // 64, 1)) + 1).astype(np.int64)
    parts = _parts(field, edges, settings)
    reach = max(max(part.before, part.kernel.size - part.before) for part in parts)
    esd = 1.0 / np.sqrt(np.maximum(_filtered(parts, reach, field.weight, 2), 1e-300))
    first, second, third = (np.array([np.sum(part.kernel**k) for part in parts]) for k in (1, 2, 3))
    slope = np.array([np.sum(np.square(np.diff(part.kernel))) for part in parts]) / second
    length, step = np.diff(edges), np.diff(field.x[np.append(edges[:-1], size - 1)]) / np.diff(edges)
    return MatchedFilter(
        parts=parts,
        reach=reach,
        weight=field.weight,
        esd=esd,
        # for a variance that changes little within a peak
        skew=field.count_factor * np.sqrt(field.weight) * np.repeat(third / second**1.5, length),
        level_area=np.repeat(first / second, length),
        rate=np.repeat(np.sqrt(slope) / (2.0 * math.pi * step), length),
    )


def _parts(field: Field, edges: NDArray[np.int64], settings: UnexplainedSettings) -> tuple[_Part, ...]:
    """Return the kernels of ranges of places, evaluated in one go."""
    middle, length = (edges[:-1] + edges[1:]) // 2, np.diff(edges)
    step = (field.x[edges[1:] - 1] - field.x[edges[:-1]]) / np.maximum(length - 1, 1)
    at, width = field.x[middle], field.widths[middle]
    before = np.minimum((settings.filter_fwhm * width / step).astype(np.int64) + 1, length)
    split = field.shape.second(at) - at
    after = np.minimum(((settings.filter_fwhm * width + split) / step).astype(np.int64) + 1, 2 * length)
    count = before + after + 1
    owner = np.repeat(np.arange(at.size), count)
    number = np.arange(owner.size) - np.repeat(np.cumsum(count) - count + before, count)
    value = field.shape.at(at[owner] + number * step[owner], at, width, owner)
    kernels = np.split(value, np.cumsum(count)[:-1])
    rows = zip(edges[:-1].tolist(), edges[1:].tolist(), before.tolist(), kernels, strict=True)
    return tuple(_Part(*row) for row in rows)


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
