"""A straight line through measured points that outliers do not bend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import median, small_inverse

__all__ = ["Trend", "robust_fit", "robust_line"]

_CYCLES = 5
_HUBER = 2.5
_SETTLED = 0.02


@dataclass(frozen=True, slots=True)
class Trend:
    """``value = intercept + slope * x``; esds scaled by the root of the reduced chi2 where that is > 1."""

    intercept: float
    slope: float
    intercept_esd: float
    slope_esd: float
    chi2_reduced: float
    chi2_gain: float
    """Scaled chi2 that the line takes away from zero everywhere."""
    n_used: int


@dataclass(frozen=True, slots=True)
class RobustFit:
    """Coefficients with scaled covariance, the reduced chi2 (robust), the scaled chi2 gained over zero."""

    coefficient: FloatArray
    covariance: FloatArray
    chi2_reduced: float
    chi2_gain: float
    weights: FloatArray


def robust_fit(columns: FloatArray, values: FloatArray, esds: FloatArray) -> RobustFit:
    """Fit values by columns with weights 1/esd^2 and Huber's bounded influence (doi:10.1214/aoms/1177703732).

    Args:
        columns: shape (n, c), n >= c.
        values: shape (n,).
        esds: shape (n,), > 0.
    """
    scaled, target = columns / esds[:, None], values / esds
    dof = target.size - columns.shape[1]
    # with few degrees of freedom the median of |left| is small by construction
    shrunk = float(np.sqrt(target.size / max(dof, 1)))
    weights, weighted, cycles = np.ones_like(target), scaled.T, 0
    while True:
        inverse = small_inverse(weighted @ scaled)
        coefficient = inverse @ (weighted @ target)
        left = target - scaled @ coefficient
        size = np.abs(left)
        reach = _HUBER * max(1.0, 1.4826 * median(size) * shrunk)
        cycles += 1
        if cycles == 1 and float(size.max()) <= reach:
            break  # no outlier: every weight stays 1
        new = np.minimum(1.0, reach / np.maximum(size, 1e-12))
        if cycles == _CYCLES or float(np.abs(new - weights).max()) < _SETTLED:
            break
        weights, weighted = new, scaled.T * new
    chi2 = float(np.dot(weights, left * left))
    scale = max(1.0, chi2 / dof) if dof > 0 else 1.0
    return RobustFit(
        coefficient=coefficient,
        covariance=inverse * scale,
        chi2_reduced=chi2 / dof if dof > 0 else 1.0,
        chi2_gain=max(float(np.dot(weights, target * target)) - chi2, 0.0) / scale,
        weights=weights,
    )


def robust_line(x: FloatArray, values: FloatArray, esds: FloatArray) -> Trend | None:
    """Return the robust line through points, None for fewer than three."""
    if x.size < 3:
        return None
    fit = robust_fit(np.array((np.ones_like(x), x)).T, values, esds)
    return Trend(
        intercept=float(fit.coefficient[0]),
        slope=float(fit.coefficient[1]),
        intercept_esd=float(np.sqrt(fit.covariance[0, 0])),
        slope_esd=float(np.sqrt(fit.covariance[1, 1])),
        chi2_reduced=fit.chi2_reduced,
        chi2_gain=fit.chi2_gain,
        n_used=int(x.size),
    )
