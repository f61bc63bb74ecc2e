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
    """Ragged windows of points, laid end to end.

    Args:
        owner: which window an element belongs to, shape (n_elements,).
        point: index into the pattern, shape (n_elements,).
        start: first element of each window, shape (n_windows,).
        low, high: first point and one past the last of each window, shape (n_windows,).
    """

    owner: IntArray
    point: IntArray
    start: IntArray
    low: IntArray
    high: IntArray


def windows_between(x: FloatArray, lower: FloatArray, upper: FloatArray) -> Windows:
    """Return the windows of points with ``lower <= x <= upper``; empty ones are kept with no element."""
    low = np.searchsorted(x, lower, side="left").astype(np.int64)
    high = np.maximum(np.searchsorted(x, upper, side="right").astype(np.int64), low)
    length = high - low
    start = np.concatenate(([0], np.cumsum(length)[:-1])).astype(np.int64) if length.size else length
    owner = np.repeat(np.arange(length.size, dtype=np.int64), length)
    point = np.arange(owner.size, dtype=np.int64) - np.repeat(start - low, length)
    return Windows(owner, point, start, low, high)


def chunks(start: IntArray, length: IntArray, elements: int) -> Iterator[slice]:
    """Yield runs of consecutive windows that hold at most so many elements together, or are one large window."""
    ends = start + length
    first = 0
    while first < start.size:
        last = max(int(np.searchsorted(ends, start[first] + elements, side="right")), first + 1)
        yield slice(first, last)
        first = last


ROWS = 6
"""What :func:`templates` returns, by row: value, shift, width, skew, low tail, high tail."""
SCRATCH_ROWS = ROWS + 5


@dataclass(frozen=True, slots=True)
class LineShapes:
    """Lines, arrays of shape (m,): position, FWHM, Lorentzian fraction, area."""

    position: FloatArray
    fwhm: FloatArray
    eta: FloatArray
    area: FloatArray


def pseudo_voigt(x: FloatArray, position: FloatArray, fwhm: FloatArray, eta: FloatArray) -> FloatArray:
    """Return the unit-area pseudo-Voigt; arguments broadcast."""
    z2 = np.square(2.0 * (x - position) / fwhm)
    shape = eta * _LORENTZ / (1.0 + z2) + (1.0 - eta) * _GAUSS * np.exp(-_LN2 * z2)
    return np.asarray(shape / fwhm)


def templates(x: FloatArray, owner: IntArray, lines: LineShapes, scratch: FloatArray) -> FloatArray:
    """Evaluate lines and their derivatives, shape (ROWS, n_elements), in memory that is used again and again.

    The rows are: value, area * pV(x); derivative with respect to the position; with respect to ln(FWHM); change per
    unit of skewness, -(sigma^3/6) d3/dx3 with sigma = FWHM / 2.3548 (Gram-Charlier); derivative with respect to the
    Lorentzian fraction on the low side of the line; the same on the high side.

    Args:
        x: abscissa of every element, shape (n_elements,).
        owner: line of every element, shape (n_elements,).
        lines: the lines.
        scratch: shape (SCRATCH_ROWS, n_elements); the result is its first rows.
    """
    value, shift, width, skew, low, high, z, z2, lorentz, gauss, other = scratch

    def each(values: FloatArray, out: FloatArray) -> FloatArray:
        return np.take(values, owner, out=out, mode="clip")

    np.subtract(x, each(lines.position, other), out=z)
    z *= each(2.0 / lines.fwhm, other)
    np.multiply(z, z, out=z2)
    np.add(z2, 1.0, out=lorentz)
    np.divide(1.0, lorentz, out=lorentz)
    np.multiply(z2, -_LN2, out=gauss)
    np.exp(gauss, out=gauss)
    height = lines.area / lines.fwhm
    np.multiply(lorentz, _LORENTZ, out=high)
    high -= np.multiply(gauss, _GAUSS, out=other)
    high *= each(height, other)
    np.multiply(high, z < 0.0, out=low)
    high -= low
    gauss *= each(height * (1.0 - lines.eta) * _GAUSS, other)
    each(height * lines.eta * _LORENTZ, value)
    np.multiply(lorentz, lorentz, out=other)  # l^2
    np.multiply(value, other, out=shift)  # l^2 times the height
    _skew(z, z2, shift, other, gauss, out=skew, scratch=width)
    value *= lorentz
    value += gauss
    # -2 z (l^2 h + ln2 g) is the derivative in z
    np.multiply(gauss, _LN2, out=width)
    width += shift
    width *= z
    width *= 2.0
    np.multiply(width, each(2.0 / lines.fwhm, other), out=shift)
    width *= z
    width -= value
    return scratch[:ROWS]


def _skew(
    z: FloatArray,
    z2: FloatArray,
    tall: FloatArray,
    l2: FloatArray,
    gauss: FloatArray,
    *,
    out: FloatArray,
    scratch: FloatArray,
) -> None:
    """Fill ``out`` with -(sigma^3/6) d3/dx3: of the Lorentzian, in z, 24 z (1 - z^2) l^4 h, of the Gaussian z (12 ln2^2 - 8 ln2^3 z^2) g."""
    np.subtract(1.0, z2, out=out)
    out *= tall
    out *= l2
    out *= 24.0
    np.multiply(z2, -8.0 * _LN2**3, out=scratch)
    scratch += 12.0 * _LN2**2
    scratch *= gauss
    out += scratch
    out *= z
    out *= -_SKEW
