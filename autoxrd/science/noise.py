"""How uncertain is a channel, and how significant is a figure? Shared by all local measures."""

from __future__ import annotations

import math

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import quantiles

__all__ = ["chi2_to_z", "moving_mean", "projection_variance"]

_CLIP_SIGMAS = 4.0
_POISSON_SPREAD = 0.25


def moving_mean(y: FloatArray, width: int) -> FloatArray:
    """Return the mean over ``width`` channels centred on each, shorter at the ends; shape (n,)."""
    half = width // 2
    total = np.concatenate(([0.0], np.cumsum(y)))
    index = np.arange(y.size)
    low = np.maximum(index - half, 0)
    high = np.minimum(index + half + 1, y.size)
    return np.asarray((total[high] - total[low]) / (high - low))


def projection_variance(y: FloatArray, sigma: FloatArray, y_calc: FloatArray) -> FloatArray:
    """Return the variance of each channel for use as a weight in a projection, shape (n,).

    A sigma^2 that follows the observed count makes low channels heavy and pulls every projection down by about one
    count per channel (Mighell 1999, doi:10.1086/307253). Where sigma^2 is proportional to the count (its factor
    spreads by less than a quarter between the quartiles), the count is replaced by the calculated one, held within
    4 sigma of the observed so that a wrong model does not set its own weights. Otherwise sigma^2 is taken as it is.
    """
    variance = np.square(sigma)
    counts = np.maximum(y, 1.0)
    factor = variance / counts
    low, middle, high = quantiles(factor, (0.25, 0.5, 0.75))
    if middle <= 0 or (high - low) > _POISSON_SPREAD * middle:
        return np.asarray(variance)
    expected = np.clip(y_calc, y - _CLIP_SIGMAS * sigma, y + _CLIP_SIGMAS * sigma)
    return np.asarray(factor * np.maximum(expected, 1.0))


def chi2_to_z(chi2: float, dof: float) -> float:
    """Return the standard normal deviate with the same tail as chi2 on dof degrees of freedom.

    Wilson & Hilferty (1931), doi:10.1073/pnas.17.12.684; exact enough from dof = 1 on.
    """
    if dof <= 0:
        return 0.0
    ninth = 2.0 / (9.0 * dof)
    cube_root: float = (max(chi2, 0.0) / dof) ** (1.0 / 3.0)
    return (cube_root - (1.0 - ninth)) / math.sqrt(ninth)
