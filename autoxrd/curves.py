"""How does a long curve travel to a page? Its extremes only, as little-endian float32 in base64."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["extremes", "packed"]


def extremes(curves: Sequence[NDArray[np.float64]], limit: int) -> NDArray[np.int64]:
    """Choose points to draw: all, or the lowest and highest of each curve in equal intervals.

    Args:
        curves: on the same n points, each of shape (n,).
        limit: largest number of points.

    Returns:
        Increasing indices, at most ``limit`` of them where the curves are longer than that.
    """
    n = curves[0].size
    if n <= limit:
        return np.arange(n, dtype=np.int64)
    edges = np.linspace(0, n, max(1, limit // (2 * len(curves))) + 1).astype(np.int64)
    keep: set[int] = set()
    for curve in curves:
        for lo, hi in pairwise(edges):
            part = curve[lo:hi]
            keep.update((int(lo + np.argmin(part)), int(lo + np.argmax(part))))
    return np.array(sorted(keep), dtype=np.int64)


def packed(values: NDArray[np.float64]) -> str:
    """Pack as little-endian float32 in base64: seven digits, five bytes a number in the page."""
    return base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()
