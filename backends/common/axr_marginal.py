"""How uncertain is a parameter when what else acts on it is not known exactly? Linear algebra, and what is plausible.

A fit frees some of what shapes a pattern and holds the rest at values that nobody measured; its esds are conditional on
these. Here all are let go at once, each within what it plausibly is, and the covariance follows from the joint normal
equations with those prior variances: Bayesian marginalisation of nuisance parameters to first order (Sivia & Skilling
2006, Data Analysis, section 8.2). Where the data ask for a shift that the fit did not make, it is part of the
uncertainty. numpy only.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

__all__ = [
    "AXIAL_TRIALS",
    "PLAUSIBLE_AXIAL",
    "ROUGHNESS_TRIALS",
    "Held",
    "asked_for",
    "marginal_covariance",
    "plausible",
    "plausible_axial",
    "states_uncertainty",
    "wavelength_spread",
]

_KNOWN = 0.1
"""Relative standard deviation of a width of the instrument that was given."""
_PLAUSIBLE = (
    (r"instrument\.zero", 0.02, 0.0),
    (r"sample\.displacement", 0.1, 0.0),
    (r"sample\.transparency", 4e-4, 0.0),
    (r"sample\.offset_(along|across)", 0.05, 0.0),
    (r"phase\..*\.cell\.[abc]", 0.0, 5e-4),
    (r"phase\..*\.cell\.(alpha|beta|gamma)", 0.03, 0.0),
    (r"profile\.[UVW]", 0.003, _KNOWN),
    (r"profile\.[XY]", 0.01, _KNOWN),
    (r"phase\..*\.size", 0.05, 0.0),
    (r"phase\..*\.strain", 0.1, 0.0),
    (r"phase\..*\.uiso", 0.003, 0.0),
    (r"phase\..*\.[xyz]", 5e-4, 0.0),
)
"""Our names, with the standard deviation of what is held: as it is (degrees, mm, radians, square degrees, square
angstroms, fractions of a cell) and as a share of the value. Alignment of a goniometer and mounting of a specimen
(Jenkins & Snyder 1996, Introduction to X-ray Powder Diffractometry, sections 8.3 and 9.2); 1/(2 mu R) of a light oxide
powder; a published cell at another temperature or composition; widths of laboratory diffractometers (Louer & Langford
1988, doi:10.1107/S002188988800411X); displacement parameters and coordinates of published structures."""
_PLAUSIBLE_FLIGHT = (
    (r"instrument\.zero", 5.0, 0.0),
    (r"instrument\.dif[AB]", 1.0, 0.0),
    (r"profile\..*", 0.0, _KNOWN),
)
"""What takes their place over the time of flight: microseconds, with angstrom or its square. Judgement: after a
calibration a zero or a curvature of the law may be off by some 1e-4 of the time of a line at 2 angstrom."""
_FLIGHT_WIDTHS = {"size": 1.0 / 1800.0, "strain": 0.0017}
"""Of size (1/angstrom) and strain the same as above, times DIFC: microseconds per square angstrom and per angstrom."""
PLAUSIBLE_AXIAL = 0.03
"""S/L = H/L that a fit without it may lack (Finger, Cox & Jephcoat 1994, doi:10.1107/S0021889894004218)."""
AXIAL_TRIALS = (0.01, 0.02, 0.03, 0.045, 0.065)
"""S/L = H/L that are tried: from a synchrotron's to that of a diffractometer without Soller slits (Finger, Cox &
Jephcoat 1994, doi:10.1107/S0021889894004218)."""
ROUGHNESS_TRIALS = (0.02, 0.05, 0.1, 0.2)
"""Optical depths of a depleted surface layer that are tried; 0.1 takes a third off a line at 25 degrees."""
_ROUNDS = 6
_CELL = re.compile(r"phase\..*\.cell\.(a|b|c|alpha|beta|gamma)")


@dataclass(frozen=True)
class Held:
    """Something that a fit holds and that is not known exactly.

    Args:
        column: derivative of the weighted calculated pattern by it, shape (n,).
        spread: standard deviation of what it may be.
        way: +1 where it can only grow, -1 where it can only shrink, else 0.
    """

    column: np.ndarray
    spread: float
    way: int = 0


def plausible(name: str, value: float, dif_c: float | None = None) -> float | None:
    """Return the standard deviation of a number that is held, None where it is taken as exact.

    Args:
        name: our name of the parameter.
        value: what it is held at. An instrument's width of zero is one that nobody knows; another was given.
        dif_c: DIFC over the time of flight, microseconds per angstrom; None for constant wavelength.
    """
    if dif_c is not None and name.rpartition(".")[2] in _FLIGHT_WIDTHS:
        return _FLIGHT_WIDTHS[name.rpartition(".")[2]] * dif_c
    for pattern, absolute, share in (*(() if dif_c is None else _PLAUSIBLE_FLIGHT), *_PLAUSIBLE):
        if re.fullmatch(pattern, name):
            return share * abs(value) if share > 0.0 and value != 0.0 else absolute or None
    return None


def states_uncertainty(name: str, *, refined: bool) -> bool:
    """Return whether a reader wants to know how uncertain a parameter is.

    Args:
        name: our name.
        refined: whether it has an esd. All that were refined but the background's, and of the others the cell, which a
            reader takes for measured.
    """
    return not name.startswith("background") if refined else _CELL.fullmatch(name) is not None


def marginal_covariance(
    free: np.ndarray, esds: np.ndarray, residual: np.ndarray, held: list[Held], white: float = 1.0
) -> np.ndarray:
    """Return the covariance of the free parameters and of what was held, when the latter is let go.

    Args:
        free: derivatives of the weighted calculated pattern by the free parameters, shape (n, k).
        esds: theirs in the fit, which say how much to trust a point, shape (k,); zero where there is none.
        residual: calculated minus observed over sigma, shape (n,).
        held: what is let go, each within what it plausibly is.
        white: by how much the esds raise a variance where there is nothing but noise.

    Returns:
        Shape (k + m, k + m): no variance of a free parameter is less than the square of its esd; those of the held ones
        tell how far they may be from where they are held after the data have spoken.
    """
    k, spreads = free.shape[1], np.array([item.spread for item in held])
    stated = esds > 0.0
    if not stated.any():
        return np.diag(np.concatenate((np.zeros(k), spreads**2)))
    fit = _let_go(free, esds, residual, held, white)
    together = fit.inverse + np.outer(fit.shift, fit.shift)
    spread = np.sqrt(np.diag(together)[:k])
    wider = np.where(stated, esds * np.sqrt(np.maximum(spread**2 / (fit.alone * fit.weight), 1.0)), 0.0)
    spread[spread == 0.0] = 1.0
    unit = np.concatenate((wider / spread, spreads))
    return np.asarray(together * np.outer(unit, unit))


def asked_for(
    free: np.ndarray, esds: np.ndarray, residual: np.ndarray, held: list[Held], wanted: list[Held], white: float = 1.0
) -> list[tuple[float, float]]:
    """Return how far further parameters would go if they were let go beside all that is held, and how sure that is.

    Args:
        free: as for `marginal_covariance`.
        esds: as there.
        residual: as there.
        held: as there.
        white: as there.
        wanted: the further ones, with a spread far beyond what they will go.

    Returns:
        Of each shift and standard deviation; nothing where no esd says how much to trust a point.
    """
    if not np.any(esds > 0.0):
        return []
    fit = _let_go(free, esds, residual, [*held, *wanted], white, even=True)
    start, spreads = free.shape[1] + len(held), np.array([item.spread for item in wanted])
    shifts, deviations = fit.shift[start:] * spreads, np.sqrt(np.diag(fit.inverse)[start:]) * spreads
    return [(float(shift), float(sure)) for shift, sure in zip(shifts, deviations, strict=True)]


@dataclass(frozen=True)
class _LetGo:
    """The joint least squares of what is free and what is let go, each in its own unit.

    Args:
        inverse: of the normal equations with the priors, shape (k + m, k + m).
        shift: where it goes, shape (k + m,).
        alone: variances of the free ones when the others are held, shape (k,).
        weight: the square of how much less a point tells than its sigma says: misfit and serial correlation.
    """

    inverse: np.ndarray
    shift: np.ndarray
    alone: np.ndarray
    weight: float


def _let_go(
    free: np.ndarray, esds: np.ndarray, residual: np.ndarray, held: list[Held], white: float, *, even: bool = False
) -> _LetGo:
    """Solve the joint least squares.

    Args:
        free: as for `marginal_covariance`.
        esds: as there.
        residual: as there.
        held: as there.
        white: as there.
        even: bring all columns to one length first: something with hardly a prior that the data cannot tell from what
            is free is else cut off with the rounding errors.
    """
    k, scale = free.shape[1], np.linalg.norm(free, axis=0)
    scale[scale == 0.0] = 1.0
    spreads = np.array([item.spread for item in held])
    loose = np.stack([item.column for item in held], axis=1) * spreads if held else np.zeros((len(residual), 0))
    columns = np.concatenate((free / scale, loose), axis=1)
    normal = columns.T @ columns
    alone = np.diag(np.linalg.pinv(normal[:k, :k], hermitian=True))
    stated = esds > 0.0
    weight = max(float(np.median((esds[stated] * scale[stated]) ** 2 / alone[stated])) / white, 1.0)
    normal /= weight
    normal[np.arange(k, len(normal)), np.arange(k, len(normal))] += 1.0
    length = np.sqrt(np.diag(normal)) if even else np.ones(len(normal))
    normal /= np.outer(length, length)
    inverse = np.linalg.pinv(normal, hermitian=True)
    ways = np.array([0] * k + [item.way for item in held])
    shift = _shift(normal, inverse, columns.T @ residual / weight / length, ways) / length
    return _LetGo(inverse / np.outer(length, length), shift, alone, weight)


def _shift(normal: np.ndarray, inverse: np.ndarray, gradient: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """Return where the joint fit would go; what could only go the forbidden way stays."""
    shift: np.ndarray = -inverse @ gradient
    moving = np.ones(len(gradient), dtype=bool)
    for _ in range(_ROUNDS - 1):
        wrong = moving & (ways * shift < 0.0)
        if not wrong.any():
            break
        moving &= ~wrong
        shift = np.zeros(len(gradient))
        shift[moving] = -np.linalg.pinv(normal[np.ix_(moving, moving)], hermitian=True) @ gradient[moving]
    return shift


def wavelength_spread(wavelength: float) -> float:
    """Return the relative standard deviation of a wavelength that is right to half of its last digit."""
    digits = len(repr(float(wavelength)).partition(".")[2])
    return 0.5 * 10.0**-digits / math.sqrt(3.0) / float(wavelength)


def plausible_axial() -> int:
    """Return which of the trials stands for the axial divergence that a fit without it may lack."""
    return int(np.argmin(np.abs(np.array(AXIAL_TRIALS) - PLAUSIBLE_AXIAL)))
