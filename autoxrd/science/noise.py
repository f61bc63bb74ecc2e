"""How uncertain is a channel, and how significant is a figure? Shared by all local measures."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import quantiles

__all__ = ["chi2_to_z", "count_factor", "larger_sigma", "moving_mean", "projection_variance", "symmetric"]

_CLIP_SIGMAS = 4.0
_POISSON_SPREAD = 0.25
_ASKED = 2048
_TINY = 1e-290
_SETTLED = 1e-13
_MOST_TERMS = 10_000


def moving_mean(y: FloatArray, width: int) -> FloatArray:
    """Return the mean over ``width`` channels centred on each, shorter at the ends; shape (n,)."""
    half = width // 2
    total = np.concatenate(([0.0], np.cumsum(y)))
    index = np.arange(y.size)
    low = np.maximum(index - half, 0)
    high = np.minimum(index + half + 1, y.size)
    return np.asarray((total[high] - total[low]) / (high - low))


def count_factor(y: FloatArray, sigma: FloatArray) -> float:
    """Return sigma^2 over the count where that is one number (spread below a quarter between the quartiles), else 0.

    1 for counts, the scale where they were divided by a time or a monitor. Some thousand channels are asked.
    """
    some = slice(None, None, y.size // _ASKED + 1)
    low, middle, high = quantiles(np.square(sigma[some]) / np.maximum(y[some], 1.0), (0.25, 0.5, 0.75))
    return middle if middle > 0 and high - low <= _POISSON_SPREAD * middle else 0.0


def larger_sigma(y: FloatArray, sigma: FloatArray, y_calc: FloatArray) -> FloatArray:
    """Return the counting esd of observed or calculated counts, whichever is larger, shape (n,); else ``sigma``.

    A channel that happens to have no counts has an esd of 1 by itself, and any expectation would be refuted by it.
    """
    if count_factor(y, sigma) == 0.0:
        return sigma
    counts = np.maximum(y, 1.0)
    return np.asarray(sigma * np.sqrt(np.maximum(y_calc, counts) / counts))


def symmetric(z: FloatArray, skew: FloatArray) -> FloatArray:
    """Return a normal deviate for a deviation z of a sum of counts, which has the skewness ``skew``.

    To first order z - skew z^2 / 6, as the power 2/3 gives that makes a Poisson variable symmetric (Anscombe 1953,
    doi:10.1111/j.2517-6161.1953.tb00142.x), in a form that stays monotonic.
    """
    return np.asarray(z / (1.0 + np.maximum(skew * z, -3.0) / 6.0))


def projection_variance(y: FloatArray, sigma: FloatArray, y_calc: FloatArray, factor: float) -> FloatArray:
    """Return the variance of each channel for use as a weight in a projection, shape (n,).

    A sigma^2 that follows the observed count makes low channels heavy and pulls every projection down by about one
    count per channel (Mighell 1999, doi:10.1086/307253). Where sigma^2 is proportional to the count (``factor``, of
    :func:`count_factor`, is not 0), the count is replaced by the calculated one, held within 4 sigma of the observed so
    that a wrong model does not set its own weights. Otherwise sigma^2 is taken as it is.
    """
    variance = np.square(sigma)
    if factor == 0.0:
        return np.asarray(variance)
    reach = _CLIP_SIGMAS * sigma
    expected = np.minimum(np.maximum(y_calc, y - reach), y + reach)
    return np.asarray(variance / np.maximum(y, 1.0) * np.maximum(expected, 1.0))


def chi2_to_z(chi2: float, dof: float) -> float:
    """Return the standard normal deviate with the same tail as chi2 on dof degrees of freedom.

    From the logarithm of the tail, so that it is right where the tail itself is too small for a number: on one degree
    of freedom z tends to sqrt(chi2), as it should.
    """
    if dof <= 0:
        return 0.0
    shape, half = 0.5 * dof, 0.5 * max(chi2, 0.0)
    if half <= shape:
        return float(special.ndtri(special.gammainc(shape, half)))
    return -float(special.ndtri_exp(_log_upper_gamma(shape, half)))


def _log_upper_gamma(shape: float, x: float) -> float:
    """Return ln Q(shape, x) for x > shape."""
    direct = float(special.gammaincc(shape, x))
    if direct > _TINY:
        return math.log(direct)
    # Legendre's continued fraction (DLMF 8.9.2) from its front, which so far out takes a few terms
    below = x + 1.0 - shape
    ahead, behind = 1.0 / below, 1.0 / _TINY
    fraction = ahead
    for k in range(1, _MOST_TERMS):
        numerator = k * (shape - k)
        below += 2.0
        ahead = 1.0 / (numerator * ahead + below)
        behind = numerator / behind + below
        fraction *= ahead * behind
        if abs(ahead * behind - 1.0) < _SETTLED:
            break
    return shape * math.log(x) - x - math.lgamma(shape) + math.log(fraction)
