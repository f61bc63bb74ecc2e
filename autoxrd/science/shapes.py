"""What does a calculated line and its derivatives look like? Pseudo-Voigts on ragged windows, all lines at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray

__all__ = [
    "FWHM_PER_SIGMA",
    "ROWS",
    "SCRATCH_ROWS",
    "LineShapes",
    "Windows",
    "chunks",
    "pseudo_voigt",
    "room_for_chunks",
    "templates",
    "windows_between",
]

IntArray = NDArray[np.int64]

FWHM_PER_SIGMA = 2.0 * np.sqrt(2.0 * np.log(2.0))
_LN2 = float(np.log(2.0))
_LORENTZ = 2.0 / np.pi
_GAUSS = 2.0 * float(np.sqrt(_LN2 / np.pi))
# -(sigma^3/6) d3/dx3 (Gram-Charlier) in z = 2 (x - x0) / FWHM:
_SKEW = 8.0 / (6.0 * float(FWHM_PER_SIGMA) ** 3)


@dataclass(frozen=True, slots=True)
class Windows:
    """Ragged windows of points, laid end to end. What has one entry per element is made when asked for.

    Args:
        low, high: first point and one past the last of each window, shape (n_windows,).
        start: first element of each window, shape (n_windows,).
    """

    low: IntArray
    high: IntArray
    start: IntArray

    @property
    def length(self) -> IntArray:
        """Number of elements of each window, shape (n_windows,)."""
        return self.high - self.low

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self.start[-1] + self.high[-1] - self.low[-1]) if self.start.size else 0

    @property
    def owner(self) -> IntArray:
        """Which window an element belongs to, shape (n_elements,)."""
        return np.arange(self.low.size).repeat(self.length)

    @property
    def point(self) -> IntArray:
        """Index into the pattern, shape (n_elements,)."""
        return np.arange(self.size) + (self.low - self.start).repeat(self.length)

    def run(self, part: slice) -> Windows:
        """Return some consecutive windows."""
        start = self.start[part]
        return Windows(self.low[part], self.high[part], start - start[0] if start.size else start)


def windows_between(x: FloatArray, lower: FloatArray, upper: FloatArray) -> Windows:
    """Return the windows of points with ``lower <= x <= upper``; empty ones are kept with no element."""
    low = x.searchsorted(lower, side="left")
    high = np.maximum(x.searchsorted(upper, side="right"), low)
    length = high - low
    return Windows(low, high, np.cumsum(length) - length)


def room_for_chunks() -> FloatArray:
    """Return memory that :func:`chunks` of elements can be worked on in; fresh memory for each is what takes time."""
    return np.empty((_ROOM, _CHUNK))


def chunks(windows: Windows, room: FloatArray, rows: int) -> Iterator[tuple[slice, FloatArray]]:
    """Yield runs of consecutive windows with rows of the room, shape (rows, elements of the run).

    A window that is too large for the room comes alone and with memory of its own; runs without elements are left out.
    """
    ends = windows.start + windows.length
    first = 0
    while first < ends.size:
        begin = int(windows.start[first])
        last = max(int(ends.searchsorted(begin + room.shape[1], side="right")), first + 1)
        size = int(ends[last - 1]) - begin
        if size > 0:
            yield slice(first, last), room[:rows, :size] if size <= room.shape[1] else np.empty((rows, size))
        first = last


ROWS = 5
"""What :func:`templates` returns, by row: value, shift, width, skew, mixing; and z in one more."""
SCRATCH_ROWS = ROWS + 5
_CHUNK = 12_288
"""Elements (line or peak, times channel) that are worked on at a time: they stay in the processor's cache."""
_ROOM = SCRATCH_ROWS


@dataclass(frozen=True, slots=True)
class LineShapes:
    """Lines, arrays of shape (m,): position, FWHM, Lorentzian fraction, area."""

    position: FloatArray
    fwhm: FloatArray
    eta: FloatArray
    area: FloatArray


def pseudo_voigt(x: FloatArray, position: FloatArray, fwhm: FloatArray, eta: FloatArray | np.float64) -> FloatArray:
    """Return the unit-area pseudo-Voigt; arguments broadcast."""
    z2 = np.square(2.0 * (x - position) / fwhm)
    shape = eta * _LORENTZ / (1.0 + z2) + (1.0 - eta) * _GAUSS * np.exp(-_LN2 * z2)
    return np.asarray(shape / fwhm)


def templates(x: FloatArray, count: IntArray, lines: LineShapes, scratch: FloatArray) -> FloatArray:
    """Evaluate lines and their derivatives, shape (ROWS + 1, n_elements), in memory that is used again and again.

    The rows are: value, area * pV(x); derivative with respect to the position; with respect to ln(FWHM); change per
    unit of skewness, -(sigma^3/6) d3/dx3 with sigma = FWHM / 2.3548 (Gram-Charlier); derivative with respect to the
    Lorentzian fraction; and z = 2 (x - position) / FWHM.

    Args:
        x: abscissa of every element, shape (n_elements,).
        count: elements of each line, shape (m,).
        lines: the lines.
        scratch: shape (SCRATCH_ROWS, n_elements); the result is its first rows.
    """
    value, shift, width, skew, mixing, z, z2, lorentz, gauss, tall = scratch
    inverse, height = 2.0 / lines.fwhm, lines.area / lines.fwhm
    each_inverse, each_eta = inverse.repeat(count), lines.eta.repeat(count)
    np.subtract(x, lines.position.repeat(count), out=z)
    z *= each_inverse
    np.multiply(z, z, out=z2)
    np.add(z2, 1.0, out=lorentz)
    np.divide(1.0, lorentz, out=lorentz)
    np.multiply(z2, -_LN2, out=gauss)
    np.exp(gauss, out=gauss)
    np.multiply(lorentz, (height * _LORENTZ).repeat(count), out=tall)
    gauss *= (height * _GAUSS).repeat(count)
    np.subtract(tall, gauss, out=mixing)
    np.multiply(mixing, each_eta, out=value)
    value += gauss
    tall *= each_eta
    np.subtract(value, tall, out=gauss)  # the Gaussian part, with its share
    tall *= lorentz  # l^2, with the height of the Lorentzian part
    # -2 z (l^2 h + ln2 g) is the derivative in z
    np.multiply(gauss, _LN2, out=width)
    width += tall
    width *= z
    width += width
    np.multiply(width, each_inverse, out=shift)
    width *= z
    width -= value
    # the third derivative: 24 z (1 - z^2) l^4 h and z (12 ln2^2 - 8 ln2^3 z^2) g
    np.subtract(1.0, z2, out=skew)
    skew *= tall
    lorentz *= lorentz
    skew *= lorentz
    skew *= -24.0 * _SKEW
    z2 *= 8.0 * _LN2**3 * _SKEW
    z2 -= 12.0 * _LN2**2 * _SKEW
    z2 *= gauss
    skew += z2
    skew *= z
    return scratch[: ROWS + 1]
