"""How uncertain is a parameter when what else acts on it is not known exactly? Linear algebra, and what is plausible.

A fit frees some of what moves lines and holds the rest at values that nobody measured; its esds are conditional on
these. Here all are let go at once, each within what it plausibly is, and the esd follows from the joint normal
equations with those prior variances: Bayesian marginalisation of nuisance parameters to first order (Sivia & Skilling
2006, Data Analysis, section 8.2). numpy only.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["AXIAL_TRIALS", "PLAUSIBLE", "PLAUSIBLE_AXIAL", "marginal_esds", "plausible_axial", "wavelength_spread"]

PLAUSIBLE = {
    "instrument.zero": 0.02,
    "sample.displacement": 0.1,
    "sample.transparency": 4e-4,
    "sample.offset_along": 0.05,
    "sample.offset_across": 0.05,
}
"""Standard deviations, in degrees, mm and radians: alignment of a goniometer and mounting of a specimen (Jenkins &
Snyder 1996, Introduction to X-ray Powder Diffractometry, sections 8.3 and 9.2); 1/(2 mu R) of a light oxide powder."""
PLAUSIBLE_AXIAL = 0.03
"""S/L = H/L that a fit without it may lack (Finger, Cox & Jephcoat 1994, doi:10.1107/S0021889894004218)."""
AXIAL_TRIALS = (0.01, 0.02, 0.03, 0.045, 0.065)
"""S/L = H/L that are tried: from a synchrotron's to that of a diffractometer without Soller slits (Finger, Cox &
Jephcoat 1994, doi:10.1107/S0021889894004218)."""


def marginal_esds(
    free: np.ndarray, where: list[int], esds: list[float], nuisance: np.ndarray, prior: np.ndarray
) -> list[float]:
    """Return the uncertainty of some free parameters with others let go within what they plausibly are.

    Args:
        free: derivatives of the weighted residual by the free parameters, shape (n, k).
        where: which of them are asked for.
        esds: theirs in the fit, which say how much to trust a point.
        nuisance: derivatives by what is held, shape (n, m).
        prior: standard deviations of these, shape (m,).

    Returns:
        Never less than the esd.
    """
    scale = np.linalg.norm(free, axis=0)
    scale[scale == 0.0] = 1.0
    alone = np.diag(np.linalg.pinv((free / scale).T @ (free / scale)))
    # the square of how much less a point tells than its sigma says: misfit and serial correlation
    trust = np.array([esd**2 / (alone[k] / scale[k] ** 2) for k, esd in zip(where, esds, strict=True)])
    weight = float(np.median(trust))
    columns = np.concatenate((free / scale, nuisance * prior), axis=1)
    normal = columns.T @ columns / weight
    normal[np.arange(len(scale), len(normal)), np.arange(len(scale), len(normal))] += 1.0
    together = np.diag(np.linalg.pinv(normal, hermitian=True))
    return [esd * math.sqrt(max(together[k] / (alone[k] * weight), 1.0)) for k, esd in zip(where, esds, strict=True)]


def wavelength_spread(wavelength: float) -> float:
    """Return the relative standard deviation of a wavelength that is right to half of its last digit."""
    digits = len(repr(float(wavelength)).partition(".")[2])
    return 0.5 * 10.0**-digits / math.sqrt(3.0) / float(wavelength)


def plausible_axial() -> int:
    """Return which of the trials stands for the axial divergence that a fit without it may lack."""
    return int(np.argmin(np.abs(np.array(AXIAL_TRIALS) - PLAUSIBLE_AXIAL)))
