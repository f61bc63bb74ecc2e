"""Which intensities do the data ask for, given every reflection's profile? Linear least squares, none below zero.

Pawley (1981), doi:10.1107/S0021889881009618; lines that coincide share equally. numpy and scipy only.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_array

__all__ = ["Intensities", "solve_nonnegative"]

RIDGE = 1e-8
"""Share of the diagonal that is added: lines that coincide then share their intensity."""
ROUNDS = 30


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


def solve_nonnegative(weighted: csc_array, target: np.ndarray, count: int) -> np.ndarray:
    """Return the least-squares solution whose first ``count`` elements are not negative."""
    normal = (weighted.T @ weighted).toarray()
    right = weighted.T @ target
    scale = np.sqrt(np.diag(normal))
    used = scale > 0
    scale[~used] = 1.0
    normal = normal / np.outer(scale, scale) + RIDGE * np.eye(scale.size)
    right = right / scale
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
