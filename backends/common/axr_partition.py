"""Which intensities do the data ask for, given every reflection's profile? Linear least squares, none below zero.

Pawley (1981), doi:10.1107/S0021889881009618; lines that coincide share equally. numpy and scipy only.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_array

__all__ = ["Intensities", "best_intensities", "solve_nonnegative"]

RIDGE = 1e-8
"""Share of the diagonal that is added: lines that coincide then share their intensity."""
ROUNDS = 30
MOST_EXCHANGES = 200
TRIES = 3
"""Exchanges of all wrong ones at once that may bring no better set before they are made one by one."""
SLACK = 1e-10
"""A gradient below this share of the largest is rounding."""


class Intensities:
    """The free intensities of a profile match as a part of its least squares: what they make up for, and their esds.

    They are linear, so that they are projected out of everything else (Golub & Pereyra 1973, doi:10.1137/0710036).
    Lines that coincide count as one.

    Args:
        profiles: profile over sigma of each reflection that has an intensity, shape (n, r).
    """

    def __init__(self, profiles: csc_array) -> None:
        normal = (profiles.T @ profiles).toarray()
        lengths = np.sqrt(np.diag(normal))
        self._kept = lengths > 0.0  # one between two points of a thinned pattern has none
        self._profiles, self._scale = csc_array(profiles[:, self._kept]), lengths[self._kept]
        scaled = normal[np.ix_(self._kept, self._kept)] / np.outer(self._scale, self._scale)
        self._factor = cho_factor(scaled + RIDGE * np.eye(self._scale.size)) if self._scale.size else None

    @property
    def rank(self) -> int:
        """How many intensities the points tell apart: lines that coincide count as one."""
        if self._factor is None:
            return 0
        inverse = cho_solve(self._factor, np.eye(self._scale.size))
        return round(self._scale.size - RIDGE * float(np.trace(inverse)))

    def let_go(self, columns: np.ndarray) -> np.ndarray:
        """Return columns over sigma, shape (n,) or (n, k), less what intensities make up for."""
        if self._factor is None or not columns.size:
            return columns
        scale = self._scale if columns.ndim == 1 else self._scale[:, None]
        steps = cho_solve(self._factor, (self._profiles.T @ columns) / scale) / scale
        return np.asarray(columns - self._profiles @ steps)

    def esds(self, columns: np.ndarray, covariance: np.ndarray, variance: float) -> np.ndarray:
        """Return the esd of each intensity, shape (r,); zero where the points say nothing of it.

        Args:
            columns: derivatives over sigma of what is free beside them, intensities held, shape (n, k).
            covariance: of what is free beside them, shape (k, k).
            variance: of a point, in units of its sigma squared.
        """
        esds = np.zeros(self._kept.size)
        if self._factor is None:
            return esds
        inverse = cho_solve(self._factor, np.eye(self._scale.size)) / np.outer(self._scale, self._scale)
        own = np.diag(inverse) * variance
        if columns.size:
            across = inverse @ (self._profiles.T @ columns)
            own = own + np.sum((across @ covariance) * across, axis=1)
        esds[self._kept] = np.sqrt(np.maximum(own, 0.0))
        return esds


def _scaled(weighted: csc_array, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the normal equations with columns of one length: matrix, right-hand side, lengths, and which are any."""
    normal = (weighted.T @ weighted).toarray()
    scale = np.sqrt(np.diag(normal))
    seen = scale > 0
    scale[~seen] = 1.0
    return normal / np.outer(scale, scale) + RIDGE * np.eye(scale.size), weighted.T @ target / scale, scale, seen


def solve_nonnegative(weighted: csc_array, target: np.ndarray, count: int) -> np.ndarray:
    """Return the least-squares solution whose first ``count`` elements are not negative."""
    normal, right, scale, used = _scaled(weighted, target)
    solution = np.zeros(scale.size)
    for _ in range(ROUNDS):
        free = np.flatnonzero(used)
        solution[:] = 0.0
        solution[free] = cho_solve(cho_factor(normal[np.ix_(free, free)]), right[free])
        negative = np.flatnonzero(solution[:count] < 0.0)
        if negative.size == 0:
            break
        used[negative] = False
    return np.asarray(solution / scale)


def best_intensities(weighted: csc_array, target: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Return the least-squares solution with no element below zero, exactly.

    It is unique and continuous in everything, as the steps of a fit around it need; `solve_nonnegative` never takes
    back what it once left out. Block principal pivoting (Portugal, Judice & Vicente 1994, Math. Comp. 63, 625-643).

    Args:
        weighted: columns over sigma, shape (n, r).
        target: over sigma, shape (n,).
        start: which are believed to be above zero, shape (r,), bool: of a solution nearby.
    """
    normal, right, scale, known = _scaled(weighted, target)
    free = known & (right > 0.0 if start is None else start)
    slack, fewest, tries = SLACK * float(np.max(np.abs(right), initial=1e-300)), scale.size + 1, TRIES
    for _ in range(MOST_EXCHANGES):
        solution = np.zeros(scale.size)
        if np.any(free):
            solution[free] = cho_solve(cho_factor(normal[np.ix_(free, free)]), right[free])
        rise = right - normal @ solution
        wrong = np.flatnonzero(known & np.where(free, solution < 0.0, rise > slack))
        if wrong.size == 0:
            break
        if wrong.size < fewest:
            fewest, tries = wrong.size, TRIES
        else:
            tries -= 1
        exchanged = wrong if tries >= 0 else wrong[-1:]
        free[exchanged] = ~free[exchanged]
    return np.asarray(np.maximum(solution, 0.0) / scale)
