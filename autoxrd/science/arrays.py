"""Small array operations that several measures share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray

__all__ = ["sum_by"]


def sum_by(index: NDArray[np.int64], values: FloatArray, size: int) -> FloatArray:
    """Return the sums of ``values`` with equal ``index``, shape (size,)."""
    return np.asarray(np.bincount(index, values, minlength=size), dtype=np.float64)
