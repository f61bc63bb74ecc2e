"""How may a cell change without breaking its symmetry, and what does each change do to each reflection?"""

from __future__ import annotations

from functools import lru_cache

import gemmi
import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.structure import UnitCell

__all__ = ["cell_strains", "invariant_forms", "reciprocal_metric", "rotations"]

IntArray = NDArray[np.int64]


@lru_cache(maxsize=64)
def rotations(operations: tuple[str, ...]) -> FloatArray:
    """Return the distinct rotation parts of symmetry operations, shape (o, 3, 3), acting on column coordinates."""
    found = {tuple(np.array(gemmi.Op(t).rot).ravel() // gemmi.Op.DEN) for t in operations} or {
        (1, 0, 0, 0, 1, 0, 0, 0, 1)
    }
    return np.array(sorted(found, reverse=True), dtype=float).reshape(-1, 3, 3)


def reciprocal_metric(cell: UnitCell) -> FloatArray:
    """Return the reciprocal metric tensor, angstrom^-2, shape (3, 3)."""
    frac = np.array(gemmi.UnitCell(*cell.as_tuple()).frac.mat.tolist())
    return np.asarray(frac @ frac.T)


@lru_cache(maxsize=64)
def invariant_forms(operations: tuple[str, ...]) -> FloatArray:
    """Return an orthonormal basis of the quadratic forms in hkl that the symmetry leaves alone, shape (n, 9)."""
    ops = rotations(operations)
    averaged = []
    for i in range(3):
        for j in range(i, 3):
            form = np.zeros((3, 3))
            form[i, j] = form[j, i] = 1.0
            averaged.append(np.mean(ops @ form @ np.swapaxes(ops, 1, 2), axis=0).ravel())
    _, size, rows = np.linalg.svd(np.array(averaged))
    return np.asarray(rows[: int(np.sum(size > 1e-9))])


def cell_strains(hkl: IntArray, cell: UnitCell, operations: tuple[str, ...]) -> FloatArray:
    """Return relative changes of 1/d^2 per unit of each symmetry-allowed cell change, shape (n, m).

    Row 0 is the isotropic change (all ones); the others are orthogonal to it as forms, so a cubic cell has one row.

    Args:
        hkl: shape (m, 3).
        cell: unit cell.
        operations: symmetry operations as triplets.
    """
    metric = reciprocal_metric(cell)
    forms = invariant_forms(operations)
    stack = np.column_stack([metric.ravel(), forms.T])
    basis, triangle = np.linalg.qr(stack)
    independent = np.abs(np.diag(triangle)) > 1e-9 * abs(triangle[0, 0])
    kept = basis[:, : independent.size][:, independent][:, : forms.shape[0]]
    h = hkl.astype(float)
    inverse_d2 = np.sum((h @ metric) * h, axis=1)
    relative = float(np.linalg.norm(metric)) / np.maximum(inverse_d2, 1e-12)
    others = [np.sum((h @ column.reshape(3, 3)) * h, axis=1) * relative for column in kept.T[1:]]
    return np.array([np.ones(h.shape[0]), *others])
