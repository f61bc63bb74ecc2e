"""What does a calculated line and its derivatives look like? Pseudo-Voigts on ragged windows, all lines at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray

__all__ = ["FWHM_PER_SIGMA", "Templates", "Windows", "chunks", "pseudo_voigt", "templates", "windows_between"]

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


@dataclass(frozen=True, slots=True)
class Templates:
    """A line and its derivatives on its window, arrays of shape (n_elements,).

    Args:
        value: area * pV(x).
        shift: derivative with respect to the position, per unit of x.
        width: derivative with respect to ln(FWHM).
        skew: change per unit of skewness, -(sigma^3/6) d3/dx3 with sigma = FWHM / 2.3548 (Gram-Charlier).
        mixing: derivative with respect to the Lorentzian fraction.
    """

    value: FloatArray
    shift: FloatArray
    width: FloatArray
    skew: FloatArray
    mixing: FloatArray


def pseudo_voigt(x: FloatArray, position: FloatArray, fwhm: FloatArray, eta: FloatArray) -> FloatArray:
    """Return the unit-area pseudo-Voigt; arguments broadcast."""
    z2 = np.square(2.0 * (x - position) / fwhm)
    shape = eta * _LORENTZ / (1.0 + z2) + (1.0 - eta) * _GAUSS * np.exp(-_LN2 * z2)
    return np.asarray(shape / fwhm)


def templates(
    x: FloatArray, count: IntArray, *, position: FloatArray, fwhm: FloatArray, eta: FloatArray, area: FloatArray
) -> Templates:
    """Evaluate lines on their windows, laid end to end.

    Args:
        x: abscissa of every element, shape (n_elements,).
        count: elements of each line, shape (m,).
        position: of each line, shape (m,); likewise ``fwhm``, ``eta``, ``area``.
    """
    inverse = np.repeat(2.0 / fwhm, count)
    height = area / fwhm
    z = x - np.repeat(position, count)
    z *= inverse
    z2 = z * z
    lorentz = 1.0 + z2
    np.divide(1.0, lorentz, out=lorentz)
    gauss = np.multiply(z2, -_LN2)
    np.exp(gauss, out=gauss)
    whole = np.repeat(height, count)
    mixing = np.multiply(lorentz, _LORENTZ)
    mixing -= _GAUSS * gauss
    mixing *= whole
    gauss *= np.repeat(height * (1.0 - eta) * _GAUSS, count)
    l2 = lorentz * lorentz
    tall = l2 * np.repeat(height * eta * _LORENTZ, count)  # l^2 times the height
    value = tall * (1.0 + z2)
    value += gauss
    # -2 z (l^2 h + ln2 g) is the derivative in z
    width = np.multiply(gauss, _LN2)
    width += tall
    width *= z
    width *= 2.0
    shift = width * inverse
    width *= z
    width -= value
    return Templates(value=value, shift=shift, width=width, skew=_skew(z, z2, tall, l2, gauss), mixing=mixing)


def _skew(z: FloatArray, z2: FloatArray, tall: FloatArray, l2: FloatArray, gauss: FloatArray) -> FloatArray:
    """Return -(sigma^3/6) d3/dx3: of the Lorentzian -24 z (z^2 - 1) l^4 h, of the Gaussian z (12 ln2^2 - 8 ln2^3 z^2) g."""
    third = 1.0 - z2
    third *= tall
    third *= l2
    third *= 24.0
    bell = np.multiply(z2, -8.0 * _LN2**3)
    bell += 12.0 * _LN2**2
    bell *= gauss
    third += bell
    third *= z
    third *= -_SKEW
    return third
