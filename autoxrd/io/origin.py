"""Find the shift of origin that turns an untabulated setting into a tabulated one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.io.sites import Operations

__all__ = ["shift_between"]

_STEPS = 24
"""Origins of space groups differ by multiples of 1/24 of an edge at most."""


def shift_between(listed: Sequence[str], target: Sequence[str]) -> tuple[float, float, float] | None:
    """Shift t with x' = x + t that maps one set of operations onto another.

    An operation (R, w) becomes (R, w + t - R t).

    Args:
        listed: xyz triplets of the whole group as given.
        target: xyz triplets of the whole group wanted.

    Returns:
        The smallest shift, fractional, or None where no shift does it.
    """
    if len(listed) != len(target):
        return None
    here, there = Operations.from_triplets(listed), Operations.from_triplets(target)
    axis = np.arange(_STEPS) / _STEPS
    shifts = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    for rotation, translation in zip(here.rotations, here.translations, strict=True):
        allowed = there.translations[np.all(there.rotations == rotation, axis=(1, 2))]
        if allowed.size == 0:
            return None
        moved = translation + shifts @ (np.eye(3) - rotation).T
        shifts = shifts[_any_equal(moved, allowed)]
        if shifts.shape[0] == 0:
            return None
    centred = shifts - np.rint(shifts)
    best = centred[int(np.argmin(np.sum(centred**2, axis=1)))]
    return (float(best[0]), float(best[1]), float(best[2]))


def _any_equal(moved: FloatArray, allowed: FloatArray) -> NDArray[np.bool_]:
    """Which rows equal one of the allowed translations modulo whole cells, shape (n,), bool."""
    delta = moved[:, None, :] - allowed[None, :, :]
    delta -= np.rint(delta)
    return np.asarray(np.any(np.all(np.abs(delta) < 1e-6, axis=2), axis=1))
