"""How much area have the lines of a missing phase that no peak of its own shows: too weak, or under calculated ones?

Lines beside calculated ones are told from noise in ``faint``. Under a calculated line, an excess of the residual can be
such a line or a wrong intensity. Wrong intensities make dips as well, and excesses that no line of the phase would
reach: as far as there are such, the excesses are not believed, and what lies there is taken to be what the free part of
the axis lets expect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.noise import symmetric
from autoxrd.science.unexplained.bumpfit import Smooth, bump_areas
from autoxrd.science.unexplained.faint import Evidence, faint_area
from autoxrd.science.unexplained.field import AREA_OVER_HEIGHT, CHANGES
from autoxrd.science.unexplained.judge import Found, calculated_tails
from autoxrd.science.unexplained.look import Search, look_at
from autoxrd.science.unexplained.misfit import ShapeMisfit, ShapePrior, shape_misfit
from autoxrd.science.unexplained.residual import Bumps, Slow, around, local_maxima, slow_part

__all__ = ["Rest", "area_beside"]

_OUTLIERS = 2
"""Dips that may be deeper than noise without a meaning."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Area of weak and of hidden lines, the esd of their sum, and the slow part of the residual, shape (n,)."""

    weak: float
    hidden: float
    esd: float
    slow: FloatArray


@dataclass(frozen=True, slots=True)
class _View:
    """The residual without what is known, and what of it may be noise or misfit; arrays of shape (n,).

    Args:
        residual: without slow part, peaks found and expected misfit.
        esd: of a fitted area, noise and spread of the misfit.
        score: significance of a peak.
        occupied: places of the peaks found.
    """

    residual: FloatArray
    esd: FloatArray
    score: FloatArray
    occupied: NDArray[np.bool_]
    misfit: ShapeMisfit
    slow: Slow


@dataclass(frozen=True, slots=True)
class _Fitted:
    """Bumps or dips with their fitted areas, esds without and with the local misfit, and whether a line covers them."""

    bumps: Bumps
    area: FloatArray
    noise: FloatArray
    esd: FloatArray
    covered: NDArray[np.bool_]


def area_beside(search: Search, found: Found) -> Rest:
    """Return the area of lines beside the peaks that were found."""
    view = _view(search, found)
    bumps, dips = _fitted(search, view, 1.0), _fitted(search, view, -1.0)
    faint = faint_area(_evidence(search, found, view, bumps), search.settings)
    least = search.settings.hidden_z
    above, below = (side.area[side.covered & (side.area > least * side.esd)] for side in (bumps, dips))
    # a line far stronger than the strongest seen is no line of that phase
    likely = above < search.settings.faint_top * found.area.max()
    shown = float(above[likely].sum() - below.sum())
    variance = 2.0 * float(np.square(below).sum()) + float(np.square(above[~likely]).sum())
    trust = faint.hidden_variance / max(faint.hidden_variance + variance, 1e-300)
    hidden = max(faint.hidden + trust * (shown - faint.hidden), 0.0) + faint.hidden_below
    esd = float(np.sqrt(faint.variance + trust * variance))
    # what would be more than any phase has beside its strongest line is no phase's, but misfit
    most = search.settings.unseen_most * float(found.area.max())
    part = min(most / max(faint.area + hidden, 1e-300), 1.0)
    return Rest(part * faint.area, part * hidden, esd, view.slow.level)


def _view(search: Search, found: Found) -> _View:
    field, settings = search.field, search.settings
    residual = field.residual - found.model
    slow = slow_part(field, residual, settings, search.apart(look_at(search, residual).score))
    residual -= slow.level
    misfit = shape_misfit(field, search.frame.peaks, residual, settings)
    prior = misfit.at(misfit.places, np.interp(misfit.places, field.x, field.widths))
    variance = search.filter.variance(slow, np.ones(field.x.size, dtype=bool))
    as_area = AREA_OVER_HEIGHT * field.widths
    for k in range(CHANGES):
        residual -= np.interp(field.x, misfit.places, prior.mean[:, k]) * field.changes[k]
        variance += np.square(np.interp(field.x, misfit.places, prior.spread[:, k]) * field.changes[k] * as_area)
    esd = np.sqrt(variance)
    score = symmetric(search.filter.area(residual) / esd, search.filter.skew)
    occupied = around(field, found.bumps.position, settings.separation_fwhm * found.bumps.fwhm)
    return _View(residual, esd, score, occupied, misfit, slow)


def _fitted(search: Search, view: _View, sign: float) -> _Fitted:
    """Return the bumps of the residual beside the peaks found, or, for -1, its dips under calculated lines.

    Under calculated lines only significant ones.
    """
    field, settings = search.field, search.settings
    allowed = ~view.occupied if sign > 0 else ~view.occupied & field.covered
    bumps = local_maxima(field, sign * view.score, allowed, settings.faint_z, settings)
    bumps = bumps.where(~field.covered[field.at(bumps.position)] | (bumps.significance > settings.hidden_z))
    covered = field.covered[field.at(bumps.position)]
    if bumps.position.size == 0:
        return _Fitted(bumps, *(np.zeros(0),) * 3, covered)
    prior = view.misfit.at(bumps.position, bumps.fwhm)
    # what is expected is off the residual already
    centred = ShapePrior(np.zeros_like(prior.mean), prior.spread)
    level = np.interp(bumps.position, field.x, view.slow.spread)
    smooth = Smooth(level, calculated_tails(search.frame, bumps.position))
    fit = bump_areas(field, sign * view.residual, bumps, centred, smooth, settings)
    return _Fitted(bumps, fit.area, fit.noise, fit.esd, covered)


def _evidence(search: Search, found: Found, view: _View, bumps: _Fitted) -> Evidence:
    """Return what the axis beside the peaks found shows."""
    field, settings = search.field, search.settings
    free, under = ~(view.occupied | field.covered), ~view.occupied & field.covered
    floor = _noise_floor(search, view, free)
    noise = bumps.noise * floor
    skew = np.interp(bumps.bumps.position, field.x, search.filter.skew)
    score = symmetric(bumps.area / np.maximum(noise, 1e-300), skew)
    shown = ~bumps.covered & (score > settings.faint_z)
    # what would be the strongest line and was refused as a peak is a misfit: the place tells nothing
    refused = shown & (bumps.area >= found.area.max())
    lost = around(field, bumps.bumps.position[refused], settings.separation_fwhm * bumps.bumps.fwhm[refused])
    kept = shown & ~refused
    share = field.step / field.widths
    share /= share.sum()
    return Evidence(
        area=bumps.area[kept],
        significance=score[kept],
        esd=noise[kept],
        place_esd=np.where(lost, np.inf, view.esd * floor)[free],
        place_share=share[free],
        hidden_esd=view.esd[under],
        hidden_share=share[under],
        rate=float(np.dot(search.filter.rate, field.step)),
        seen=found.area,
        seen_share=float(share[view.occupied].sum()),
    )


def _noise_floor(search: Search, view: _View, free: NDArray[np.bool_]) -> float:
    """Return by how much deeper the dips of the residual go than noise alone, at least 1: no line makes a dip.

    The k-th deepest of noise lies where k minima are expected below it.
    """
    field, settings = search.field, search.settings
    dips = local_maxima(field, -view.score, free, settings.faint_z, settings).significance
    depth = np.sort(dips)[::-1][_OUTLIERS:]
    rank = np.arange(_OUTLIERS + 1, _OUTLIERS + 1 + depth.size)
    expected = float(np.dot(search.filter.rate[free], field.step[free]))
    noise = np.sqrt(2.0 * np.log(np.maximum(expected / rank, 1.0)))
    return float(np.max(depth / np.maximum(noise, settings.faint_z), initial=1.0))
