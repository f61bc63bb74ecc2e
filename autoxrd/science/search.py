"""Which bumps of the residual are peaks that no calculated reflection explains?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import sum_by
from autoxrd.science.bumpfit import Areas, bump_areas, bump_curves
from autoxrd.science.field import Field
from autoxrd.science.frame import Frame
from autoxrd.science.matched import MatchedFilter
from autoxrd.science.misfit import ShapeMisfit, shape_misfit
from autoxrd.science.residual import Bumps, Slow, around, local_maxima, slow_part
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import windows_between

__all__ = ["AREA_OVER_HEIGHT", "Found", "Search", "find_peaks"]

AREA_OVER_HEIGHT = 1.1
"""Of a line, in FWHM: 1.06 for a Gaussian."""


@dataclass(frozen=True, slots=True)
class Search:
    """What every step of the search reads."""

    frame: Frame
    field: Field
    filter: MatchedFilter
    settings: UnexplainedSettings


@dataclass(frozen=True, slots=True)
class Found:
    """Accepted peaks with areas and esds (b,), the curve they make (n,), and the slow part."""

    bumps: Bumps
    area: FloatArray
    esd: FloatArray
    model: FloatArray
    slow: Slow


def find_peaks(search: Search) -> Found:
    """Find peaks, take them off and look again."""
    field, settings = search.field, search.settings
    zero = np.zeros_like(field.x)
    found = Found(Bumps.none(), np.zeros(0), np.zeros(0), zero, Slow(zero, zero))
    ends = np.array([field.x[0], field.x[-1]])
    closed = field.covered | around(field, ends, settings.edge_fwhm * field.widths[[0, -1]])
    strong = search.filter.threshold(np.where(closed, 0.0, field.step), settings.false_alarms)
    for _ in range(settings.rounds):
        slow = slow_part(field, field.residual - found.model, settings)
        rest = field.residual - slow.level - found.model
        bumps = _candidates(search, rest, slow, found.bumps, closed, strong)
        if bumps.position.size == 0:
            break
        misfit = shape_misfit(field, search.frame.peaks, rest, settings)
        known = found.bumps.position.size
        found = _judged(search, slow, found.bumps.joined(bumps), misfit, strong)
        if found.bumps.position.size <= known:
            break
    return found


def _candidates(
    search: Search, rest: FloatArray, slow: Slow, taken: Bumps, closed: NDArray[np.bool_], strong: float
) -> Bumps:
    """Return new maxima of the filtered residual that may be peaks; weaker ones only beside a strong one."""
    field, settings = search.field, search.settings
    score = search.filter.area(rest) / np.hypot(search.filter.esd, slow.spread * search.filter.level_area)
    allowed = ~(closed | around(field, taken.position, settings.separation_fwhm * taken.fwhm))
    if taken.position.size == 0 and not np.any(score[allowed] > strong):
        return Bumps.none()
    bumps = local_maxima(field, score, allowed, settings.companion_z, settings)
    return _merge_second_line(field, bumps.where(~_paired(search, bumps, score)), settings)


def _paired(search: Search, bumps: Bumps, score: FloatArray) -> NDArray[np.bool_]:
    """Tell which bumps mirror a dip of comparable significance at a calculated line nearby."""
    field, lines, settings = search.field, search.frame.lines, search.settings
    position, reach = bumps.position, settings.pair_reach_fwhm * bumps.fwhm
    near = windows_between(lines.position, position - reach, position + reach)
    mirror = 2.0 * lines.position[near.point] - position[near.owner]
    inside = (mirror > field.x[0]) & (mirror < field.x[-1])
    owner = near.owner[inside]
    dips = score[field.at(mirror[inside])] < -settings.pair_share * bumps.significance[owner]
    return np.asarray(np.bincount(owner[dips], minlength=position.size) > 0)


def _merge_second_line(field: Field, bumps: Bumps, settings: UnexplainedSettings) -> Bumps:
    """Drop bumps that are the second line of a stronger one, or have their second line on its first."""
    if field.shape.ratio == 0.0 or bumps.position.size < 2:
        return bumps
    away = field.shape.second(bumps.position)[:, None] - bumps.position[None, :]
    near = np.abs(away) < settings.separation_fwhm * bumps.fwhm[None, :]
    stronger = bumps.significance[:, None] > bumps.significance[None, :]
    np.fill_diagonal(near, False)
    return bumps.where(~(np.any(near & stronger, axis=0) | np.any(near & stronger.T, axis=1)))


def _judged(search: Search, slow: Slow, bumps: Bumps, misfit: ShapeMisfit, strong: float) -> Found:
    """Fit all bumps and keep those that are peaks; none unless one of them is beyond the noise of the whole search."""
    field, settings = search.field, search.settings
    residual = field.residual - slow.level
    prior, level = misfit.at(bumps.position, bumps.fwhm), np.interp(bumps.position, field.x, slow.spread)
    fit = bump_areas(field, residual, bumps, prior, level, settings)
    curves = bump_curves(field, bumps, settings)
    area = np.minimum(
        fit.area, settings.area_excess * _visible(field, residual - curves.T @ fit.area, bumps, fit, settings)
    )
    height = area / (AREA_OVER_HEIGHT * bumps.fwhm * (1.0 + field.shape.ratio))
    kept = (area > settings.accept_z * fit.esd) & (height > _tolerated(search, bumps))
    kept &= np.any(bumps.significance[kept] > strong)
    model = np.asarray(curves.T @ np.where(kept, area, 0.0))
    return Found(bumps.where(kept), area[kept], fit.esd[kept], model, slow)


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
    value = field.shape.at(field.x[point], bumps.position[owner], bumps.fwhm[owner])
    share = np.maximum(sum_by(owner, value * step, count), 1e-3)
    return np.asarray(fit.area + sum_by(owner, rest[point] * step, count) / share)


def _tolerated(search: Search, bumps: Bumps) -> FloatArray:
    """Return the height that the shape misfit of the calculated lines may have at each bump.

    Lorentzians with the heights and widths of all lines, times the tolerance of a tail.
    """
    lines = search.frame.lines
    height = lines.area / (AREA_OVER_HEIGHT * lines.fwhm)
    strong = height > 1e-3 * height.max(initial=0.0)
    away = (bumps.position[:, None] - lines.position[strong][None, :]) / lines.fwhm[strong][None, :]
    tails = height[strong] / (1.0 + np.square(2.0 * away))
    return np.asarray(search.settings.tail_tolerance * tails.sum(axis=1))
