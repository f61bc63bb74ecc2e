"""What do all calculated lines make together, and what does each peak make of its own?

Lines are evaluated in chunks of some thousand points: value and derivatives of one chunk stay in the processor's cache,
and only their sums are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.shapes import Templates, Windows, chunks, templates

__all__ = ["Curves", "LineArrays", "Totals", "evaluate"]

IntArray = NDArray[np.int64]

_CHUNK = 12_288
"""Elements (line times channel) that are evaluated at a time."""


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


def evaluate(x: FloatArray, lines: LineArrays, windows: Windows, peaks: Windows) -> Curves:
    """Evaluate all lines.

    Args:
        x: abscissa, shape (n,).
        lines: shape (m,).
        windows: one for each line, on which it is evaluated.
        peaks: one for each peak, on which it is fitted.
    """
    line_value = np.empty(windows.point.size)
    totals = np.zeros((6, x.size))
    own = np.zeros((4, peaks.point.size))
    length = windows.high - windows.low
    for part in chunks(windows.start, length, _CHUNK):
        first = int(windows.start[part.start])
        elements = slice(first, first + int(length[part].sum()))
        if elements.start == elements.stop:
            continue
        point, count = windows.point[elements], length[part]
        shapes = templates(
            x[point],
            count,
            position=lines.position[part],
            fwhm=lines.fwhm[part],
            eta=lines.eta[part],
            area=lines.area[part],
        )
        line_value[elements] = shapes.value
        _add_totals(totals, x, point, np.repeat(lines.position[part], count), shapes)
        _add_own(own, point, np.repeat(lines.peak[part], count), shapes, peaks)
    return Curves(line_value, Totals(*totals), own)


def _add_totals(totals: FloatArray, x: FloatArray, point: IntArray, position: FloatArray, shapes: Templates) -> None:
    begin = int(point.min())
    local = point - begin
    low = (x[point] < position) * shapes.mixing
    rows = (shapes.value, shapes.shift, shapes.width, shapes.skew, low, shapes.mixing - low)
    _add(totals, begin, local, rows)


def _add_own(own: FloatArray, point: IntArray, peak: IntArray, shapes: Templates, peaks: Windows) -> None:
    """Add the elements that lie in the window of their line's peak."""
    if not peaks.low.size:
        return
    low, high = peaks.low[peak], peaks.high[peak]
    chosen = np.flatnonzero((peak >= 0) & (point >= low) & (point < high))
    if not chosen.size:
        return
    at = (peaks.start[peak] + point - low)[chosen]
    begin = int(at.min())
    at -= begin
    _add(own, begin, at, [row[chosen] for row in (shapes.value, shapes.shift, shapes.width, shapes.skew)])


def _add(out: FloatArray, begin: int, local: IntArray, rows: Sequence[FloatArray]) -> None:
    """Add elements to rows of ``out`` from column ``begin`` on; only the columns of this chunk are touched."""
    size = int(local.max()) + 1
    for row, values in zip(out, rows, strict=True):
        row[begin : begin + size] += np.bincount(local, values, minlength=size)
