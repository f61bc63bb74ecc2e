"""How significant would a peak be at each place of a residual?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.frame import Frame
from autoxrd.science.noise import symmetric
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.unexplained.field import Field
from autoxrd.science.unexplained.matched import MatchedFilter
from autoxrd.science.unexplained.residual import Slow, around, slow_part

__all__ = ["Look", "Search", "look_at"]


@dataclass(frozen=True, slots=True)
class Search:
    """What every step of the search reads."""

    frame: Frame
    field: Field
    filter: MatchedFilter
    settings: UnexplainedSettings

    def apart(self, score: FloatArray) -> NDArray[np.bool_]:
        """Return the places that stand out, up or down, and are no background, shape (n,).

        Lines too weak to be clipped would be taken for background, several in one piece above all.
        """
        out = np.flatnonzero(np.abs(score) > self.settings.apart_z)
        return around(self.field, self.field.x[out], self.settings.separation_fwhm * self.field.widths[out])


@dataclass(frozen=True, slots=True)
class Look:
    """A residual as the matched filter shows it: its slow part; area of a peak and its significance, shape (n,)."""

    slow: Slow
    area: FloatArray
    score: FloatArray


def look_at(search: Search, residual: FloatArray, apart: NDArray[np.bool_] | None = None) -> Look:
    """Look at a residual.

    Args:
        search: the search.
        residual: without the peaks that are known, shape (n,).
        apart: places that do not count as background, shape (n,).
    """
    if apart is None:
        apart = np.zeros(residual.size, dtype=bool)
    slow = slow_part(search.field, residual, search.settings, apart)
    area = search.filter.area(residual - slow.level)
    score = symmetric(area / np.sqrt(search.filter.variance(slow, apart)), search.filter.skew)
    return Look(slow, area, score)
