"""Where does the residual bulge? Its slow part, and the local maxima of its significance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import piece_medians, sum_by
from autoxrd.science.field import Field
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import windows_between

__all__ = ["Bumps", "Slow", "around", "local_maxima", "slow_part"]

_CLIP = 2.5
_CLIP_CYCLES = 3
_BEND_NOISE = 6.0
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
    """The slowly varying part of a residual, and by how much it may be off; shape (n,)."""

    level: FloatArray
    spread: FloatArray


def slow_part(field: Field, residual: FloatArray, settings: UnexplainedSettings) -> Slow:
    """Return the slowly varying part of a residual: clipped means of pieces, interpolated.

    Pieces are many peak widths long, so that a peak is clipped out of its piece and not taken for background. Its
    spread is the esd of a mean, and a quarter of the bend from piece to piece beyond that: what a line from one centre
    to the next misses.
    """
    x = field.x
    size = int(max(settings.baseline_fwhm * float(np.median(field.widths)) * x.size / field.span, 24))
    count = max(x.size // size, 1)
    length = x.size // count
    piece = np.minimum(np.arange(x.size) // length, count - 1)
    level = piece_medians(residual, count)
    weight = np.minimum(1.0, field.weight * float(np.median(field.variance)))
    limit = _CLIP * np.sqrt(field.variance)
    for _ in range(_CLIP_CYCLES):
        kept = np.where(np.abs(residual - level[piece]) < limit, weight, 0.0)
        total = sum_by(piece, kept, count)
        safe = np.maximum(total, 1e-300)
        level = np.where(total > 0, sum_by(piece, kept * residual, count) / safe, level)
    variance = sum_by(piece, np.square(kept) * field.variance, count) / np.square(safe)
    bend = np.zeros(count)
    if count > 2:
        bend[1:-1] = level[:-2] - 2.0 * level[1:-1] + level[2:]
        bend[0], bend[-1] = bend[1], bend[-2]
    spread = np.sqrt(variance + np.maximum(np.square(bend) - _BEND_NOISE * variance, 0.0) / _BEND_SHARE**2)
    first = np.arange(count) * length
    last = np.append(first[1:], x.size) - 1
    centre = 0.5 * (x[first] + x[last])
    return Slow(_interpolated(x, centre, level), np.asarray(np.interp(x, centre, spread)))


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
