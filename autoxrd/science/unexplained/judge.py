"""Is a bump of the residual a peak? Significant, keeping its area beside all that calculated lines may be off by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import sum_by
from autoxrd.science.frame import Frame
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import windows_between
from autoxrd.science.unexplained.bumpfit import Areas, Smooth, bump_areas
from autoxrd.science.unexplained.field import AREA_OVER_HEIGHT, Field
from autoxrd.science.unexplained.look import Search
from autoxrd.science.unexplained.misfit import ShapeMisfit
from autoxrd.science.unexplained.repeats import Heights, expected_heights
from autoxrd.science.unexplained.residual import Bumps, Slow

__all__ = ["Found", "Judge", "calculated_tails"]


@dataclass(frozen=True, slots=True)
class Found:
    """Accepted peaks with areas and esds (b,), the curve they make (n,), and ln of their width over calculated ones."""

    bumps: Bumps
    area: FloatArray
    esd: FloatArray
    model: FloatArray
    breadth: float = 0.0

    @classmethod
    def nothing(cls, size: int) -> Found:
        """Return no peaks at ``size`` places."""
        return cls(Bumps.none(), np.zeros(0), np.zeros(0), np.zeros(size))


@dataclass(frozen=True, slots=True)
class Judge:
    """What bumps are judged by.

    Args:
        search: the search.
        misfit: of the calculated lines' shape.
        area: of a peak fitted at each place of the whole residual, shape (n,).
        strong: significance that one of the peaks must have: beyond the noise of the whole search.
    """

    search: Search
    misfit: ShapeMisfit
    area: FloatArray
    strong: float

    def judged(self, slow: Slow, bumps: Bumps) -> Found:
        """Fit all bumps and keep those that are peaks."""
        field, settings = self.search.field, self.search.settings
        residual = field.residual - slow.level
        tails = calculated_tails(self.search.frame, bumps.position)
        smooth = Smooth(np.interp(bumps.position, field.x, slow.spread), tails)
        fit = bump_areas(field, residual, bumps, self.misfit.at(bumps.position, bumps.fwhm), smooth, settings)
        shown = _visible(field, residual - fit.curves.T @ fit.area, bumps, fit, settings)
        area = np.minimum(fit.area, settings.area_excess * shown)
        kept = (area > settings.accept_z * fit.esd) & (fit.bent > settings.bend_share * area)
        kept &= (fit.bent_z > settings.bend_z) & self._stands_out(bumps, np.minimum(area, fit.bent), tails)
        kept &= np.any(bumps.significance[kept] > self.strong)
        model = np.asarray(fit.curves.T @ np.where(kept, area, 0.0))
        return Found(bumps.where(kept), area[kept], fit.esd[kept], model)

    def _stands_out(self, bumps: Bumps, area: FloatArray, tails: FloatArray) -> NDArray[np.bool_]:
        """Tell which bumps are higher than what the shape of the calculated lines may be off by."""
        field, settings = self.search.field, self.search.settings
        per_area = 1.0 / (AREA_OVER_HEIGHT * field.widths * (1.0 + field.shape.ratio))
        seen = Heights(self.area * per_area, self.search.filter.esd * per_area)
        height = area * np.interp(bumps.position, field.x, per_area)
        repeated = expected_heights(field, self.search.frame, seen, bumps.position, height, settings)
        return np.asarray(height > settings.tail_tolerance * tails + repeated)


def calculated_tails(frame: Frame, position: FloatArray) -> FloatArray:
    """Return the height of Lorentzians with the heights and widths of all calculated lines at places, shape (b,)."""
    lines = frame.lines
    height = lines.area / (AREA_OVER_HEIGHT * lines.fwhm)
    strong = height > 1e-3 * height.max(initial=0.0)
    away = (position[:, None] - lines.position[strong]) / lines.fwhm[strong]
    return np.asarray(np.sum(height[strong] / (1.0 + np.square(2.0 * away)), axis=1))


def _visible(field: Field, rest: FloatArray, bumps: Bumps, fit: Areas, settings: UnexplainedSettings) -> FloatArray:
    """Return the area that the residual shows as it is: its sum over the core, over the share of a peak in there.

    Args:
        field: the field.
        rest: residual with all bumps taken off, shape (n,).
        bumps: the bumps.
        fit: their fitted areas, put back one at a time.
        settings: width of the core.
    """
    half, count = settings.core_fwhm * bumps.fwhm, bumps.position.size
    windows = windows_between(field.x, bumps.position - half, bumps.position + half)
    owner, point = windows.owner, windows.point
    step = field.step[point]
    value = field.shape.at(field.x[point], bumps.position, bumps.fwhm, owner)
    share = np.maximum(sum_by(owner, value * step, count), 1e-3)
    return np.asarray(fit.area + sum_by(owner, rest[point] * step, count) / share)
