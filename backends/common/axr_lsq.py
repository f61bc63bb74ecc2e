"""Bounded least squares after Levenberg and Marquardt that says honestly how it ended. numpy and scipy only.

GSAS-II's own driver accepts rising sums of squares, clamps values after the fit and calls a stuck fit a success.
Here limits are part of every step, a step is taken when the sum falls, and convergence means that the full
Gauss-Newton step that is left is small against every esd. The normal matrix is scaled to a unit diagonal, so
that one cut-off serves all units (Marquardt 1963, 10.1137/0111030).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

__all__ = ["Fit", "Guard", "Problem", "Settings", "minimise", "normal_inverse", "without_hidden"]

Problem = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From free parameters (k,) to weighted residual (n,), observed minus calculated, and the model's Jacobian (k, n)."""


@dataclass(frozen=True)
class Settings:
    """When to stop.

    Args:
        cycles: most accepted steps.
        shift: largest |Gauss-Newton step|/esd of a converged fit (McCusker et al. 1999,
            10.1107/S0021889898009856, section 7: 0.1; half of it, as the step itself is not taken).
        drop: relative fall of the sum of squares, predicted, below which nothing is left to gain. Single-precision
            peak shapes leave a noise of about 1e-8.
        rank: eigenvalues of the scaled normal matrix below this count as zero. Single precision of the shapes gives
            1e-13; correlations that a person would still resolve (0.99999) give 1e-5.
        smallest, largest: range of the Marquardt factor.
    """

    cycles: int = 40
    shift: float = 0.05
    drop: float = 1e-8
    rank: float = 1e-10
    smallest: float = 1e-6
    largest: float = 1e6


@dataclass(frozen=True)
class Guard:
    """Sums of parameters with a limit from below: rows @ theta >= least.

    Where the start lies below, it stays no lower than it is.

    Args:
        rows: shape (m, k).
        least: shape (m,).
    """

    rows: np.ndarray
    least: np.ndarray

    def touched(self, theta: np.ndarray) -> np.ndarray:
        """Return which limits hold a sum, shape (m,), bool."""
        sums = self.rows @ theta
        return np.asarray(sums <= self.least + _TOUCH * np.maximum(np.abs(self.least), np.ptp(sums)))


_TOUCH = 1e-6


@dataclass(frozen=True)
class Fit:
    """How it ended.

    Args:
        theta: parameters, shape (k,).
        chi2: weighted sum of squares there.
        cycles: accepted steps.
        status: ``converged``, ``max_cycles``, ``stuck`` or ``timeout``.
        shift: largest |Gauss-Newton step|/esd that is left, over all free parameters that may still move.
        covariance: inverse normal matrix times chi2/(n - k), shape (k, k); zero for dropped parameters.
        dropped: indices that the data do not determine.
        held: indices that a limit holds.
        touched: rows of the guard that hold the fit.
    """

    theta: np.ndarray
    chi2: float
    cycles: int
    status: str
    shift: float
    covariance: np.ndarray
    dropped: tuple[int, ...]
    held: tuple[int, ...]
    touched: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Room:
    """Where parameters may go: limits of each, shape (k,), and of sums."""

    lower: np.ndarray
    upper: np.ndarray
    guard: Guard | None


@dataclass(frozen=True)
class _Point:
    theta: np.ndarray
    chi2: float
    normal: np.ndarray
    gradient: np.ndarray
    points: int


def minimise(
    problem: Problem,
    start: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    settings: Settings,
    deadline: float,
    guard: Guard | None = None,
) -> Fit:
    """Minimise a weighted sum of squares inside limits.

    Args:
        problem: residual and Jacobian.
        start: where to begin, shape (k,); put onto the limits where it lies outside.
        lower: limits from below, shape (k,).
        upper: limits from above, shape (k,).
        settings: when to stop.
        deadline: on ``time.monotonic``'s clock.
        guard: limits of sums of parameters.
    """
    room = _Room(lower, upper, guard)
    here = _at(problem, np.clip(start, lower, upper))
    factor, cycles, status = 1e-3, 0, ""
    while True:
        shift, drop = _left(here, room, settings)
        if shift <= settings.shift or drop <= settings.drop:
            status = "converged"
        elif cycles >= settings.cycles:
            status = "max_cycles"
        elif time.monotonic() > deadline:
            status = "timeout"
        if status:
            return _finished(here, room, settings, cycles, status)
        while True:
            there = _at(problem, here.theta + _step(here, room, factor, settings))
            if there.chi2 < here.chi2:
                here, factor, cycles = there, max(0.1 * factor, settings.smallest), cycles + 1
                break
            factor *= 10.0
            if factor > settings.largest or time.monotonic() > deadline:
                status = "timeout" if factor <= settings.largest else "stuck"
                return _finished(here, room, settings, cycles, status)


def _at(problem: Problem, theta: np.ndarray) -> _Point:
    residual, jacobian = problem(theta)
    chi2 = float(residual @ residual)
    if not np.isfinite(chi2):
        chi2 = np.inf
    return _Point(theta, chi2, jacobian @ jacobian.T, jacobian @ residual, residual.size)


def _held(point: _Point, room: _Room) -> np.ndarray:
    """Return the mask of parameters that sit on a limit which the gradient points out of."""
    down = (point.theta <= room.lower) & (point.gradient < 0.0)
    return np.asarray(down | ((point.theta >= room.upper) & (point.gradient > 0.0)))


def _step(point: _Point, room: _Room, factor: float, settings: Settings) -> np.ndarray:
    """Return a step that stays inside all limits."""
    step = _boxed(point, room, factor, settings)
    if room.guard is None or not point.theta.size:
        return step
    here = room.guard.rows @ point.theta
    reach = np.minimum(room.guard.least - here, 0.0)
    if np.all(room.guard.rows @ step >= reach):
        return step
    try:
        return _guarded(point, room, reach, factor, settings)
    except RuntimeError:  # its dual did not end: a shorter step is tried
        return np.zeros_like(step)


def _boxed(point: _Point, room: _Room, factor: float, settings: Settings) -> np.ndarray:
    """Return a step inside each parameter's limits; one that would leave stops there, the others are solved anew."""
    step = np.zeros_like(point.theta)
    free = ~_held(point, room)
    while np.any(free):
        fixed = ~free
        right = point.gradient[free] - point.normal[np.ix_(free, fixed)] @ step[fixed]
        step[free] = normal_inverse(point.normal[np.ix_(free, free)], factor, settings.rank)[0] @ right
        target = point.theta + step
        outside = free & ((target < room.lower) | (target > room.upper))
        if not np.any(outside):
            break
        step[outside] = np.clip(target, room.lower, room.upper)[outside] - point.theta[outside]
        free = free & ~outside
    return step


def _guarded(point: _Point, room: _Room, reach: np.ndarray, factor: float, settings: Settings) -> np.ndarray:
    """Return the best step inside limits of parameters and of sums.

    A least-distance problem in the eigenvectors of the normal matrix, solved by its dual in non-negative least squares
    (Lawson & Hanson 1974, Solving Least Squares Problems, chapter 23). No step at all is always inside.

    Args:
        point: where it starts.
        room: limits.
        reach: how far each sum may fall, shape (m,), none above zero.
        factor: Marquardt's.
        settings: for the rank.
    """
    assert room.guard is not None
    root = _inverse_root(point.normal, factor, settings.rank)
    best = root.T @ point.gradient
    length = float(np.linalg.norm(best))
    unit = np.eye(point.theta.size)
    low, high = np.isfinite(room.lower), np.isfinite(room.upper)
    rows = np.vstack([room.guard.rows, unit[low], -unit[high]])
    falls = np.concatenate([reach, (room.lower - point.theta)[low], (point.theta - room.upper)[high]])
    across = rows @ root
    norms = np.linalg.norm(across, axis=1)
    kept = norms > 0.0
    if not length > 0.0 or not np.any(kept):
        return np.zeros_like(point.theta)
    across, near = across[kept] / norms[kept, None], falls[kept] / norms[kept] / length
    # how far a row lies beyond its limit at the best step; 1e-12 inside, so that rounding leaves it there
    inner = _least_distance(across, near - across @ (best / length) + 1e-12)
    step = root @ (best + length * inner)
    moved = rows @ step
    # rounding of the dual is met by going less far
    over = moved < falls
    share = float(np.min(falls[over] / moved[over], initial=1.0)) if np.any(over) else 1.0
    return np.asarray(np.clip(point.theta + share * step, room.lower, room.upper) - point.theta)


def _least_distance(rows: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Return the shortest z with rows @ z >= least, shape (k,)."""
    system = np.vstack([rows.T, least])
    target = np.zeros(len(system))
    target[-1] = 1.0
    rest = system @ nnls(system, target)[0] - target
    if abs(rest[-1]) < 1e-14:
        raise RuntimeError("no point is inside")
    return np.asarray(-rest[:-1] / rest[-1])


def _inverse_root(normal: np.ndarray, factor: float, rank: float) -> np.ndarray:
    """Return a matrix whose product with its transpose is the inverse of a normal matrix, shape (k, k)."""
    scale = np.sqrt(np.maximum(np.diag(normal), 0.0))
    safe = np.where(scale <= 1e-150, 1.0, scale)
    values, vectors = np.linalg.eigh(normal / np.outer(safe, safe))
    roots = np.where(values < rank, 0.0, 1.0 / np.sqrt(np.where(values < rank, 1.0, values + factor)))
    return np.asarray(vectors * roots / safe[:, None])


def normal_inverse(normal: np.ndarray, factor: float, rank: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse of a normal matrix and the mask of parameters that it does not determine.

    Args:
        normal: shape (k, k).
        factor: Marquardt's, added to the scaled diagonal.
        rank: eigenvalues of the scaled matrix below this count as zero.
    """
    scale = np.sqrt(np.maximum(np.diag(normal), 0.0))
    blind = scale <= 1e-150
    safe = np.where(blind, 1.0, scale)
    values, vectors = np.linalg.eigh(normal / np.outer(safe, safe))
    small = values < rank
    inverse = np.where(small, 0.0, 1.0 / np.where(small, 1.0, values + factor))
    scaled = (vectors * inverse) @ vectors.T
    lost = np.sum(vectors[:, small] ** 2, axis=1) > 0.1
    return scaled / np.outer(safe, safe), blind | lost


def _left(point: _Point, room: _Room, settings: Settings) -> tuple[float, float]:
    """Return the largest |Gauss-Newton step|/esd that is left, and the relative fall of the sum that it promises."""
    if not np.isfinite(point.chi2):
        return np.inf, np.inf
    step = _step(point, room, 0.0, settings)
    free = ~_held(point, room)
    if not np.any(free):
        return 0.0, 0.0
    inverse, _ = normal_inverse(point.normal[np.ix_(free, free)], 0.0, settings.rank)
    variance = np.diag(inverse) * point.chi2 / max(point.points - point.theta.size, 1)
    known = variance > 0.0
    ratio = np.abs(step[free][known]) / np.sqrt(variance[known])
    promised = 2.0 * step @ point.gradient - step @ point.normal @ step
    return float(np.max(ratio, initial=0.0)), float(promised / max(point.chi2, 1e-300))


def _finished(point: _Point, room: _Room, settings: Settings, cycles: int, status: str) -> Fit:
    count = point.theta.size
    covariance = np.zeros((count, count))
    _, lost = normal_inverse(point.normal, 0.0, settings.rank) if count else (None, np.zeros(0, dtype=bool))
    kept = ~lost
    if np.any(kept) and np.isfinite(point.chi2):
        inverse, _ = normal_inverse(point.normal[np.ix_(kept, kept)], 0.0, settings.rank)
        covariance[np.ix_(kept, kept)] = 0.5 * (inverse + inverse.T) * point.chi2 / max(point.points - count, 1)
    shift, _ = _left(point, room, settings) if count else (0.0, 0.0)
    touched = np.flatnonzero(room.guard.touched(point.theta)) if room.guard is not None and count else ()
    numbers = (tuple(map(int, found)) for found in (np.flatnonzero(lost), np.flatnonzero(_held(point, room)), touched))
    return Fit(point.theta, point.chi2, cycles, status, shift, covariance, *numbers)


def without_hidden(fit: Fit, points: int, hidden: int) -> Fit:
    """Return a fit whose esds know of further parameters that were solved for at every step.

    Args:
        fit: its normal matrix has these projected out, but not their number.
        points: number of observations.
        hidden: number of these parameters.
    """
    free = points - fit.theta.size
    return replace(fit, covariance=fit.covariance * (free / max(free - hidden, 1))) if hidden else fit
