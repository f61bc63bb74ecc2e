"""What a reader hands over before it is checked, and how a reader describes itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import AxisKind, FloatArray, Notice, PatternHints
from autoxrd.io.settings import ReadSettings
from autoxrd.io.source import Source

__all__ = ["RawPattern", "Reader", "to_float"]

_MISSING = frozenset({"na", "n/a", "null", "none", "--", "-", "nan", "#n/a"})


@dataclass(frozen=True)
class RawPattern:
    """Numbers as the file gives them.

    Args:
        x: abscissa, shape (n,), unit given by ``axis``.
        y: intensity, shape (n,).
        format: name of the format as recognised.
        sigma: standard uncertainty, shape (n,), or None for counting statistics.
        count_scale: factor f with y = f * counts, shape (n,), for counting statistics (1 over the
            number of detectors averaged, an attenuation factor, 1 over the counting time); None means 1.
        rows: line number of each point in the file, from 1, shape (n,), or None.
        padded: whether the format fills its last record with zeros.
    """

    x: FloatArray
    y: FloatArray
    format: str
    sigma: FloatArray | None = None
    count_scale: FloatArray | None = None
    rows: NDArray[np.int64] | None = None
    padded: bool = False
    axis: AxisKind = AxisKind.TWO_THETA
    title: str = ""
    hints: PatternHints = field(default_factory=PatternHints)
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Reader:
    """One format: it says itself, from the content, whether it understands a file."""

    name: str
    understands: Callable[[Source], bool]
    read: Callable[[Source, int | None, ReadSettings], RawPattern]


def to_float(token: str) -> float | None:
    """Parse one number; Fortran D exponents and the usual words for a missing value (as NaN) included."""
    if "_" in token:
        return None
    try:
        return float(token)
    except ValueError:
        pass
    lowered = token.lower()
    if lowered in _MISSING:
        return float("nan")
    try:
        return float(lowered.replace("d", "e", 1))
    except ValueError:
        return None
