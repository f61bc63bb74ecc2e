"""Are the peaks that were found broader than calculated ones? Another phase has crystallites of another size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import windows_between
from autoxrd.science.unexplained.field import Field
from autoxrd.science.unexplained.judge import Found, Judge
from autoxrd.science.unexplained.residual import Slow

__all__ = ["widened"]

_STEP = 1.2
"""Factor on the width at which its derivative is taken."""


def widened(judge: Judge, slow: Slow, found: Found) -> Found:
    """Return the peaks with a common width of their own, their areas fitted again."""
    field, settings = judge.search.field, judge.search.settings
    for _ in range(settings.rounds):
        change = _breadth(field, field.residual - slow.level - found.model, found, settings)
        total = found.breadth + change
        if abs(change) < settings.breadth_least or abs(total) > settings.breadth_most:
            break
        again = judge.judged(slow, replace(found.bumps, fwhm=found.bumps.fwhm * np.exp(change)))
        if again.area.size == 0:
            break
        found = replace(again, breadth=total)
    return found


def _breadth(field: Field, rest: FloatArray, found: Found, settings: UnexplainedSettings) -> float:
    """Return by how much ln width of the strong peaks is larger than assumed, 0 where it is not significant.

    Args:
        field: the field.
        rest: residual with all peaks taken off, shape (n,).
        found: the peaks.
        settings: which peaks are strong.
    """
    strong = found.area > settings.breadth_z * found.esd
    bumps, area = found.bumps.where(strong), found.area[strong]
    reach = settings.filter_fwhm * bumps.fwhm
    windows = windows_between(field.x, bumps.position - reach, field.shape.second(bumps.position) + reach)
    owner, point = windows.owner, windows.point
    narrow, wide = (field.shape.at(field.x[point], bumps.position, bumps.fwhm * f, owner) for f in (1 / _STEP, _STEP))
    # a change of the area is off already: what is left of a change of width is orthogonal to the peak itself
    change = area[owner] * ((wide - narrow) / (2.0 * np.log(_STEP)) + 0.25 * (wide + narrow))
    weight = field.weight[point]
    bottom = float(np.dot(weight * change, change))
    top = float(np.dot(weight * change, rest[point]))
    return top / bottom if bottom > 0 and top * top > settings.accept_z**2 * bottom else 0.0
