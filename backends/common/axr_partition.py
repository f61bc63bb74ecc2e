"""Which intensities do the data ask for, given every reflection's profile? Linear least squares, none below zero.

Pawley (1981), doi:10.1107/S0021889881009618; lines that coincide share equally. numpy and scipy only.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csc_array

__all__ = ["solve_nonnegative"]

RIDGE = 1e-8
"""Share of the diagonal that is added: lines that coincide then share their intensity."""
ROUNDS = 30


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
