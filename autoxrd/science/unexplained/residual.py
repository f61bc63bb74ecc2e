"""Where does the residual bulge? Its slow part, and the local maxima of its significance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import median, piece_medians
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import windows_between
from autoxrd.science.unexplained.field import Field

__all__ = ["Bumps", "Slow", "around", "local_maxima", "slow_part"]

_CLIP = 2.5
_CLIP_CYCLES = 3
_LEAST_KEPT = 0.1
_BEND_NOISE = 24.0
_BEND_SHARE = 4.0


@dataclass(frozen=True, slots=True)
class Bumps:
    """Candidate peaks of a residual, arrays of shape (c,).

    Args:
        position: unit of the axis.
        fwhm: local peak width.
        significance: of the filtered residual.
    """

    position: FloatArray
    fwhm: FloatArray
    significance: FloatArray

    @classmethod
    def none(cls) -> Bumps:
        """Return no bumps."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0))

    def where(self, mask: NDArray[np.bool_]) -> Bumps:
        """Return those under a mask, shape (c,)."""
        return Bumps(self.position[mask], self.fwhm[mask], self.significance[mask])

    def joined(self, other: Bumps) -> Bumps:
        """Return both in order of position."""
        position = np.concatenate((self.position, other.position))
        order = np.argsort(position, kind="stable")
        return Bumps(
            position[order],
            np.concatenate((self.fwhm, other.fwhm))[order],
            np.concatenate((self.significance, other.significance))[order],
        )


@dataclass(frozen=True, slots=True)
class Slow:
    """The slowly varying part of a residual, shape (n,).

    Args:
        level: its value.
        noise: esd of the mean that it comes from; part of the noise of the residual has gone into it.
        bend: by how much more it may be off, because it bends within a piece.
    """

    level: FloatArray
    noise: FloatArray
    bend: FloatArray

    @property
    def spread(self) -> FloatArray:
        """Return by how much the level may be off where it does not come from the data that are looked at."""
        return np.hypot(self.noise, self.bend)


def slow_part(
    field: Field, residual: FloatArray, settings: UnexplainedSettings, apart: NDArray[np.bool_] | None = None
) -> Slow:
    """Return the slowly varying part of a residual: clipped means of pieces, interpolated.

    Pieces are many peak widths long, so that a peak is clipped out of its piece and not taken for background. Its
    spread is the esd of a mean, and a quarter of the bend from piece to piece beyond that: what a line from one centre
    to the next misses.

    Args:
        field: the field.
        residual: shape (n,).
        settings: length of pieces.
        apart: places that are left out, shape (n,).
    """
    x = field.x
    size = int(max(settings.baseline_fwhm * median(field.widths) * x.size / field.span, 24))
    count = max(x.size // size, 1)
    length = x.size // count
    first = np.arange(count) * length
    sizes = np.diff(np.append(first, x.size))
    level = piece_medians(residual, count)
    weight = np.minimum(1.0, field.weight * median(field.variance))
    if apart is not None:
        weight[apart] = 0.0
    limit = _CLIP * np.sqrt(field.variance)
    for _ in range(_CLIP_CYCLES):
        kept = np.where(np.abs(residual - np.repeat(level, sizes)) < limit, weight, 0.0)
        total = np.add.reduceat(kept, first)
        safe = np.maximum(total, 1e-30)
        level = np.where(total > 0, np.add.reduceat(kept * residual, first) / safe, level)
    variance = np.add.reduceat(np.square(kept) * field.variance, first) / np.square(safe)
    known = np.add.reduceat((kept > 0).astype(np.float64), first) > _LEAST_KEPT * length
    if not known.any():
        known[:] = True
    centre = (0.5 * (x[first] + x[first + sizes - 1]))[known]
    level, variance = level[known], variance[known]
    bend = np.zeros(level.size)
    if level.size > 2:
        bend[1:-1] = level[:-2] - 2.0 * level[1:-1] + level[2:]
        bend[0], bend[-1] = bend[1], bend[-2]
    bend = np.sqrt(np.maximum(np.square(bend) - _BEND_NOISE * variance, 0.0)) / _BEND_SHARE
    noise = np.asarray(np.interp(x, centre, np.sqrt(variance)))
    return Slow(_interpolated(x, centre, level), noise, np.asarray(np.interp(x, centre, bend)))


def _interpolated(x: FloatArray, centre: FloatArray, level: FloatArray) -> FloatArray:
    """Interpolate, and extend the first and the last line to the ends."""
    out = np.interp(x, centre, level)
    for first, second, end in ((0, 1, x < centre[0]), (-1, -2, x > centre[-1])):
        if centre.size > 1:
            slope = (level[second] - level[first]) / (centre[second] - centre[first])
            out[end] += slope * (x[end] - centre[first])
    return np.asarray(out)


def around(field: Field, position: FloatArray, reach: FloatArray) -> NDArray[np.bool_]:
    """Return which places lie within ``reach`` of any position, shape (n,)."""
    windows = windows_between(field.x, position - reach, position + reach)
    depth = np.bincount(windows.low, minlength=field.x.size + 1) - np.bincount(windows.high, minlength=field.x.size + 1)
    return np.asarray(np.cumsum(depth)[: field.x.size] > 0)


def local_maxima(
    field: Field, score: FloatArray, allowed: NDArray[np.bool_], least: float, settings: UnexplainedSettings
) -> Bumps:
    """Return the local maxima of a significance above ``least``, the strongest of those that lie close together.

    Args:
        field: places.
        score: significance at each place, shape (n,).
        allowed: places where a maximum counts, shape (n,).
        least: smallest significance.
        settings: closest distance, largest number.
    """
    peak = np.zeros(score.size, dtype=bool)
    peak[1:-1] = (score[1:-1] >= score[:-2]) & (score[1:-1] > score[2:])
    found = np.flatnonzero(peak & allowed & (score > least))
    at = _separated(field, found, score, settings)
    left, middle, right = score[at - 1], score[at], score[at + 1]
    bend = np.maximum(2.0 * middle - left - right, 1e-300)
    offset = np.clip(0.5 * (right - left) / bend, -0.5, 0.5)
    return Bumps(field.x[at] + offset * field.step[at], field.widths[at], middle)


def _separated(
    field: Field, found: NDArray[np.int64], score: FloatArray, settings: UnexplainedSettings
) -> NDArray[np.int64]:
    """Keep the strongest of those closer than the separation, at most as many as are worth a fit."""
    order = found[np.argsort(-score[found], kind="stable")]
    apart = settings.separation_fwhm * field.widths[order]
    low = np.searchsorted(field.x, field.x[order] - apart)
    high = np.searchsorted(field.x, field.x[order] + apart)
    kept: list[int] = []
    taken = np.zeros(field.x.size, dtype=bool)
    for index, begin, end in zip(order.tolist(), low.tolist(), high.tolist(), strict=True):
        if not taken[index]:
            kept.append(index)
            taken[begin:end] = True
    return np.sort(np.asarray(kept[: settings.max_peaks], dtype=np.int64))
