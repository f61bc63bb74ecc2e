"""How much area have the lines of a missing phase that no peak of its own shows: too weak, or under calculated ones?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.bumpfit import Areas, bump_areas, bump_curves
from autoxrd.science.faint import Evidence, Faint, faint_area
from autoxrd.science.field import CHANGES
from autoxrd.science.misfit import ShapeMisfit, ShapePrior, shape_misfit
from autoxrd.science.residual import Bumps, Slow, around, local_maxima, slow_part
from autoxrd.science.search import AREA_OVER_HEIGHT, Found, Search

__all__ = ["Rest", "area_beside"]

_PLACES = 24
_OUTLIERS = 2


@dataclass(frozen=True, slots=True)
class Rest:
    """Area of weak and of hidden lines with the esd of their sum, and the slow part without what of it is such lines."""

    weak: float
    hidden: float
    esd: float
    slow: FloatArray


@dataclass(frozen=True, slots=True)
class _View:
    """The residual without what is known, its significance with the misfit counted in, and the misfit; shapes (n,)."""

    residual: FloatArray
    esd: FloatArray
    score: FloatArray
    misfit: ShapeMisfit
    slow: Slow


def area_beside(search: Search, found: Found) -> Rest:
    """Return the area of lines beside the peaks that were found."""
    field, settings = search.field, search.settings
    slow = found.slow
    misfit = shape_misfit(field, search.frame.peaks, field.residual - slow.level - found.model, settings)
    view = _view(search, found, slow, misfit)
    faint, maxima = _weak(search, found, view)
    # faint lines had been taken for background: once more without them
    curve = bump_curves(field, maxima, settings).T @ faint.maxima
    slow = slow_part(field, field.residual - found.model - curve, settings)
    slow = Slow(slow.level - faint.below / field.span, slow.spread)
    view = _view(search, found, slow, misfit)
    faint, _ = _weak(search, found, view)
    above, below = _signed(search, found, view, 1.0), _signed(search, found, view, -1.0)
    # a line far stronger than the strongest seen is no line of that phase: like a dip, it shows wrong intensities
    likely = above < settings.faint_top * found.area.max()
    shown = float(above[likely].sum() - below.sum())
    noise = 2.0 * float(np.square(below).sum()) + float(np.square(above[~likely]).sum())
    expected, variance = faint.hidden_shown, faint.hidden_variance
    trust = variance / (variance + noise) if variance > 0 else 0.0
    hidden = max(expected + trust * (shown - expected), 0.0) + faint.hidden_below
    esd = np.sqrt(faint.esd**2 + trust * noise + faint.hidden_below_variance)
    global LAST
    LAST = dict(
        above=above,
        below=below,
        shown=shown,
        noise=noise,
        expected=expected,
        variance=variance,
        hb=faint.hidden_below,
        faint=faint,
    )
    return Rest(faint.area, hidden, float(esd), slow.level)


def _view(search: Search, found: Found, slow: Slow, misfit: ShapeMisfit) -> _View:
    field = search.field
    places = np.linspace(field.x[0], field.x[-1], _PLACES)
    prior = misfit.at(places, np.interp(places, field.x, field.widths))
    rest = field.residual - slow.level - found.model
    variance = np.square(search.filter.esd) + np.square(slow.spread * search.filter.level_area)
    as_area = AREA_OVER_HEIGHT * field.widths
    for k in range(CHANGES):
        rest -= np.interp(field.x, places, prior.mean[:, k]) * field.changes[k]
        variance += np.square(np.interp(field.x, places, prior.spread[:, k]) * field.changes[k] * as_area)
    esd = np.sqrt(variance)
    return _View(rest, esd, search.filter.area(rest) / esd, misfit, slow)


def _weak(search: Search, found: Found, view: _View) -> tuple[Faint, Bumps]:
    """Return what the axis between calculated lines holds beside the peaks found, and the maxima there."""
    field, settings = search.field, search.settings
    occupied = around(field, found.bumps.position, settings.separation_fwhm * found.bumps.fwhm)
    open_ = ~(occupied | field.covered)
    covered = field.covered & ~occupied
    maxima = local_maxima(field, view.score, open_, settings.faint_z, settings)
    share = field.step / field.widths
    share /= share.sum()
    floor = _noise_floor(search, view, open_)
    fit = _fitted(search, view, maxima, 1.0)
    significance = fit.area / (fit.noise * floor)
    kept = significance > settings.faint_z
    maxima = maxima.where(kept)
    evidence = Evidence(
        significance=significance[kept],
        esd=fit.noise[kept] * floor,
        place_esd=view.esd[open_] * floor,
        place_share=share[open_],
        hidden_esd=view.esd[covered],
        hidden_share=share[covered],
        rate=float(np.dot(search.filter.rate, field.step)),
        seen=found.area,
        seen_share=float(share[occupied].sum()),
    )
    return faint_area(evidence, settings), maxima


def _noise_floor(search: Search, view: _View, open_: NDArray[np.bool_]) -> float:
    """Return by how much deeper the dips of the residual go than noise alone, at least 1: no line makes a dip.

    The k-th deepest of noise lies where k minima are expected below it; the few deepest may be outliers.
    """
    field, settings = search.field, search.settings
    dips = np.sort(local_maxima(field, -view.score, open_, settings.faint_z, settings).significance)[::-1]
    expected = float(np.dot(search.filter.rate[open_], field.step[open_]))
    rank = np.arange(_OUTLIERS + 1, dips.size + 1)
    rank = rank[rank < expected * np.exp(-2.0)]
    if rank.size == 0:
        rank = np.arange(_OUTLIERS + 1, min(dips.size, 2 * _OUTLIERS) + 1)
    if rank.size == 0:
        return 1.0
    noise = np.sqrt(np.maximum(2.0 * np.log(np.maximum(expected / rank, 1.0)), settings.faint_z**2))
    return float(max(np.max(dips[rank - 1] / noise), 1.0))


def _signed(search: Search, found: Found, view: _View, sign: float) -> FloatArray:
    """Return the areas of significant bumps (or, for -1, dips) of the residual at calculated lines."""
    field, settings = search.field, search.settings
    bumps = local_maxima(field, sign * view.score, field.covered, settings.hidden_z, settings)
    fit = _fitted(search, view, bumps, sign)
    return np.asarray(fit.area[fit.area > settings.hidden_z * fit.esd])


def _fitted(search: Search, view: _View, bumps: Bumps, sign: float) -> Areas:
    """Fit the bumps of a residual from which the expected misfit is off already."""
    if bumps.position.size == 0:
        return Areas(np.zeros(0), np.zeros(0), np.zeros(0))
    prior = view.misfit.at(bumps.position, bumps.fwhm)
    centred = ShapePrior(np.zeros_like(prior.mean), prior.spread)
    level = np.interp(bumps.position, search.field.x, view.slow.spread)
    return bump_areas(search.field, sign * view.residual, bumps, centred, level, search.settings)
