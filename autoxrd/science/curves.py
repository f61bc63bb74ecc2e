"""What do all calculated lines make together, and what does each peak make of its own?

Lines are evaluated in chunks of some thousand points: value and derivatives of one chunk stay in the processor's cache,
and only their sums are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.shapes import ROWS, SCRATCH_ROWS, LineShapes, Windows, chunks, templates

__all__ = ["Curves", "LineArrays", "Totals", "evaluate"]

IntArray = NDArray[np.int64]

_OWN = 4
"""Value, shift, width and skew are wanted of each peak's own lines; the tails only of all together."""
_TOTALS = _OWN + 2


class LineArrays(Protocol):
    """Calculated lines in order of position, arrays of shape (m,) (``frame.Lines``)."""

    @property
    def position(self) -> FloatArray:
        """Position on the axis."""

    @property
    def fwhm(self) -> FloatArray:
        """Full width at half maximum."""

    @property
    def eta(self) -> FloatArray:
        """Lorentzian fraction."""

    @property
    def area(self) -> FloatArray:
        """Area."""

    @property
    def peak(self) -> IntArray:
        """Index of the peak that the line belongs to, -1 none."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Derivatives of the whole calculated pattern, each of shape (n,), for one change common to all lines.

    Args:
        value: the lines themselves, as pseudo-Voigts.
        shift: of the position.
        width: of ln(FWHM).
        skew: of the skewness.
        tail_low: of the Lorentzian fraction on the low side of each line.
        tail_high: the same on the high side.
    """

    value: FloatArray
    shift: FloatArray
    width: FloatArray
    skew: FloatArray
    tail_low: FloatArray
    tail_high: FloatArray


@dataclass(frozen=True, slots=True)
class Curves:
    """What the lines of a model make.

    Args:
        line_value: each line on its own window, shape (elements of the lines' windows,).
        totals: all lines together.
        own: of each peak's own lines on the peak's window value, shift, width and skew, shape (4, elements of the
            peaks' windows).
    """

    line_value: FloatArray
    totals: Totals
    own: FloatArray


def evaluate(x: FloatArray, lines: LineArrays, windows: Windows, peaks: Windows, room: FloatArray) -> Curves:
    """Evaluate all lines.

    Args:
        x: abscissa, shape (n,).
        lines: shape (m,).
        windows: one for each line, on which it is evaluated.
        peaks: one for each peak, on which it is fitted.
        room: memory to work in.
    """
    line_value = np.empty(windows.size)
    totals, own = np.zeros((_TOTALS, x.size)), np.zeros((_OWN, peaks.size))
    common = _common(lines.peak, windows, peaks)
    for part, scratch in chunks(windows, room, SCRATCH_ROWS):
        run, first = windows.run(part), int(windows.start[part.start])
        point = run.point
        shapes = LineShapes(lines.position[part], lines.fwhm[part], lines.eta[part], lines.area[part])
        rows = templates(x[point], run.length, shapes, scratch)
        line_value[first : first + point.size] = rows[0]
        point -= (begin := int(run.low.min()))
        _add_totals(totals[:, begin : int(run.high.max())], point, rows)
        _add_own(own, common, part, first, rows)
    return Curves(line_value, Totals(*totals), own)


def _add_totals(totals: FloatArray, point: IntArray, rows: FloatArray) -> None:
    """Add a chunk of lines to the columns that it reaches, shape (6, columns)."""
    size = totals.shape[1]
    for total, values in zip(totals, rows[:_OWN], strict=False):
        total += np.bincount(point, values, minlength=size)
    # low and high side of each line in one go: the high side goes behind the low one
    point += np.multiply(rows[ROWS] >= 0.0, size)
    totals[_OWN:] += np.bincount(point, rows[_OWN], minlength=2 * size).reshape(2, size)


@dataclass(frozen=True, slots=True)
class _Common:
    """What each line's window has in common with its peak's, arrays of shape (m,).

    Args:
        count: number of channels.
        source: first of them among the elements of the lines' windows.
        target: the same among the elements of the peaks' windows.
    """

    count: IntArray
    source: IntArray
    target: IntArray


def _common(peak: IntArray, windows: Windows, peaks: Windows) -> _Common:
    if peaks.low.size == 0:
        nothing = np.zeros_like(peak)
        return _Common(nothing, nothing, nothing)
    low = np.maximum(windows.low, peaks.low[peak])
    count = np.where(peak >= 0, np.maximum(np.minimum(windows.high, peaks.high[peak]) - low, 0), 0)
    return _Common(count, windows.start + low - windows.low, peaks.start[peak] + low - peaks.low[peak])


def _add_own(own: FloatArray, common: _Common, part: slice, first: int, rows: FloatArray) -> None:
    """Add the elements that lie in the window of their line's peak."""
    count = common.count[part]
    size = int(count.sum())
    if size == 0:
        return
    before = np.cumsum(count) - count
    at, target = np.arange(size), np.arange(size)
    at += (common.source[part] - first - before).repeat(count)
    target += (common.target[part] - before).repeat(count)
    target -= (begin := int(target.min()))
    columns = own[:, begin : begin + int(target.max()) + 1]
    for total, values in zip(columns, rows[:_OWN], strict=True):
        total += np.bincount(target, values[at], minlength=total.size)
