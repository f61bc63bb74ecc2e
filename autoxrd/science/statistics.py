"""How well does the curve fit, over the whole pattern? R factors, autocorrelation, bias, structured share.

Definitions: DESIGN section 7; R factors after Toby (2006), doi:10.1154/1.2179804. Fractions, not percent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.noise import larger_sigma
from autoxrd.science.settings import StatisticsSettings

__all__ = ["FitStatistics", "fit_statistics", "significant_fraction", "structured_fraction", "weighted_profile_r"]


@dataclass(frozen=True, slots=True)
class FitStatistics:
    """Global figures of a fit; fractions."""

    rp: float
    rwp: float
    rexp: float
    gof: float
    chi2: float
    rwp_no_background: float
    abs_residual: float
    lag1: float
    durbin_watson: float
    bias_low: float
    bias_high: float
    structured_fraction: float
    structured_fraction_counting: float
    n_points: int
    n_parameters: int

    @property
    def chi2_reduced(self) -> float:
        """chi2 / (N - P)."""
        return self.chi2 / max(self.n_points - self.n_parameters, 1)


def _ratio(numerator: float, denominator: float) -> float:
    """Return a ratio that is zero over zero where nothing is left to divide by."""
    return numerator / denominator if denominator > 0 else 0.0 if numerator == 0 else float("inf")


def structured_fraction(z: FloatArray, settings: StatisticsSettings | None = None) -> float:
    """Return the share of points in contiguous same-sign runs with |z| at or above the threshold.

    Args:
        z: normalised residual, shape (n,), finite.
        settings: threshold and shortest run that counts.
    """
    chosen = settings or StatisticsSettings()
    if z.size == 0:
        return 0.0
    state = np.where(np.abs(z) >= chosen.structured_z, np.sign(z), 0.0)
    return float(_in_long_runs(state, chosen).mean())


def significant_fraction(z: FloatArray, settings: StatisticsSettings | None = None) -> float:
    """Return the share of points in contiguous same-sign runs that are significant: point by point, or as a whole.

    A run of n points with sum z / sqrt(n) at or above the least that a run counted by :func:`structured_fraction` has
    (two points of 5 sigma: 7.07) cannot be noise, though each of its points may be.

    Args:
        z: residual over its counting esd, shape (n,), finite.
        settings: threshold and shortest run that counts.
    """
    chosen = settings or StatisticsSettings()
    if z.size == 0:
        return 0.0
    counted = _in_long_runs(np.where(np.abs(z) >= chosen.structured_z, np.sign(z), 0.0), chosen)
    starts, lengths = _runs(np.sign(z))
    joint = np.abs(np.add.reduceat(z, starts)) / np.sqrt(lengths)
    least = chosen.structured_z * math.sqrt(chosen.structured_run)
    whole = (lengths >= chosen.structured_run) & (joint >= least)
    return float((counted | np.repeat(whole, lengths)).mean())


def _runs(state: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where runs of equal state start, and how long they are."""
    starts = np.concatenate(([0], np.flatnonzero(np.diff(state)) + 1))
    return starts, np.diff(np.append(starts, state.size))


def _in_long_runs(state: FloatArray, settings: StatisticsSettings) -> NDArray[np.bool_]:
    """Return which points lie in a run of one state other than zero that is long enough."""
    starts, lengths = _runs(state)
    return np.repeat((state[starts] != 0) & (lengths >= settings.structured_run), lengths)


def _robust_z(off: FloatArray, settings: StatisticsSettings) -> FloatArray:
    """Scale by the median absolute deviation."""
    scale = settings.mad_to_sigma * float(np.median(np.abs(off)))
    if scale > 0:
        return off / scale
    # more than half the points fit exactly: any other one stands out without limit
    return np.asarray(np.sign(off) * 2.0 * settings.structured_z)


def _lag1(centred: FloatArray) -> float:
    return _ratio(float(np.dot(centred[1:], centred[:-1])), float(np.dot(centred, centred)))


def _bias(x: FloatArray, y: FloatArray, e: FloatArray) -> tuple[float, float]:
    """mean(e)/mean(y) in the first and the last third of the range of x."""
    span = (x[-1] - x[0]) / 3.0
    low = x <= x[0] + span
    high = x >= x[-1] - span

    def one(mask: np.ndarray) -> float:
        mean = float(y[mask].mean())
        return float(e[mask].mean()) / mean if mean != 0 else 0.0

    return one(low), one(high)


def weighted_profile_r(y: FloatArray, sigma: FloatArray, y_calc: FloatArray) -> float:
    """Return Rwp = sqrt(sum w e^2 / sum w y^2) as a fraction (Toby 2006, doi:10.1154/1.2179804).

    Args:
        y: observed intensity, shape (n,).
        sigma: its standard uncertainty, shape (n,), > 0.
        y_calc: calculated intensity with background, shape (n,).
    """
    w, e = 1.0 / np.square(sigma), y - y_calc
    return math.sqrt(_ratio(float(np.dot(w, e * e)), float(np.dot(w, y * y))))


def fit_statistics(
    x: FloatArray,
    y: FloatArray,
    sigma: FloatArray,
    y_calc: FloatArray,
    background: FloatArray,
    *,
    n_parameters: int,
    settings: StatisticsSettings | None = None,
) -> FitStatistics:
    """Return the global figures of a fit.

    Args:
        x: abscissa, shape (n,), increasing.
        y: observed intensity, shape (n,).
        sigma: its standard uncertainty, shape (n,), > 0.
        y_calc: calculated intensity with background, shape (n,).
        background: calculated background, shape (n,).
        n_parameters: number of free parameters P.
        settings: thresholds.
    """
    chosen = settings or StatisticsSettings()
    e = y - y_calc
    w = 1.0 / np.square(sigma)
    chi2 = float(np.dot(w, e * e))
    weighted = float(np.dot(w, y * y))
    rwp = _ratio(chi2, weighted) ** 0.5
    rexp = _ratio(float(max(y.size - n_parameters, 1)), weighted) ** 0.5
    absolute = _ratio(float(np.abs(e).sum()), float(np.abs(y).sum()))
    centred = e - e.mean()
    low, high = _bias(x, y, e)
    off = e - np.median(e)
    return FitStatistics(
        rp=absolute,
        rwp=rwp,
        rexp=rexp,
        gof=rwp / rexp if rexp > 0 else float("inf"),
        chi2=chi2,
        rwp_no_background=_ratio(chi2, float(np.dot(w, np.square(y - background)))) ** 0.5,
        abs_residual=absolute,
        lag1=_lag1(centred),
        durbin_watson=_ratio(float(np.square(np.diff(e)).sum()), float(np.dot(e, e))),
        bias_low=low,
        bias_high=high,
        structured_fraction=structured_fraction(_robust_z(off, chosen), chosen),
        structured_fraction_counting=significant_fraction(e / larger_sigma(y, sigma, y_calc), chosen),
        n_points=int(y.size),
        n_parameters=n_parameters,
    )
