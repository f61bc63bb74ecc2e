"""How far off is the shape of the calculated lines, as the other lines nearby show it?

A shoulder of a strong line can be an unknown peak or a wrong tail. The line's own window cannot always tell; its
neighbours can: a wrong profile is wrong at all of them. On windows around the strongest calculated peaks the residual
is projected on scale, position, ln width, skew and the Lorentzian fraction of either side; at any place, the median of
the nearest windows is what the shape is expected to be off by, and their scatter beyond noise is how much that varies.
Medians, because unknown peaks spoil a few of the windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.frame import Peaks
from autoxrd.science.reflections import local_fits
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import windows_between
from autoxrd.science.unexplained.field import CHANGES, Field

__all__ = ["ShapeMisfit", "ShapePrior", "shape_misfit"]

_SHIFT = 1
_MAD_TO_SIGMA = 1.4826
_FEWEST = 3
_SPARE = 4
_PLACES = 24
_RIDGE = 1e-9


@dataclass(frozen=True, slots=True)
class ShapePrior:
    """Expected misfit and its spread at each of b places, shapes (b, 6); a shift is in units of the axis."""

    mean: FloatArray
    spread: FloatArray


@dataclass(frozen=True, slots=True)
class ShapeMisfit:
    """What the windows around let expect at places of the axis (p,): mean and spread, (6, p); a shift is in FWHM."""

    places: FloatArray
    mean: FloatArray
    spread: FloatArray

    def at(self, position: FloatArray, fwhm: FloatArray) -> ShapePrior:
        """Return what to expect at b places of given peak width."""
        mean, spread = (
            np.stack([np.interp(position, self.places, row) for row in t], axis=1) for t in (self.mean, self.spread)
        )
        mean[:, _SHIFT] *= fwhm
        spread[:, _SHIFT] *= fwhm
        return ShapePrior(mean, spread)


def _around(
    position: FloatArray, value: FloatArray, esd: FloatArray, places: FloatArray, settings: UnexplainedSettings
) -> ShapeMisfit:
    """Return medians and robust scatter of the nearest windows at each place.

    Args:
        position: of the windows, shape (w,).
        value: their misfits, a shift in FWHM, shape (6, w).
        esd: of these, shape (6, w).
        places: shape (p,).
        settings: number of neighbours, floors.
    """
    mean = np.zeros((CHANGES, places.size))
    spread = np.tile(np.asarray(settings.misfit_unknown)[:, None], places.size)
    for k in range(CHANGES):
        known = np.flatnonzero(esd[k] < settings.misfit_unknown[k])
        if known.size < _FEWEST:
            continue
        near = known[_nearest(position[known], places, settings.misfit_neighbours)]
        there, noise = value[k][near], _middle(np.square(esd[k][near]))
        middle = _middle(there)
        scatter = np.square(_MAD_TO_SIGMA * _middle(np.abs(there - middle[:, None])))
        mean[k] = middle
        more = np.maximum(scatter - noise, 0.0) + noise / near.shape[1]
        spread[k] = np.sqrt(more + settings.misfit_floor[k] ** 2)
    return ShapeMisfit(places, mean, spread)


def _middle(rows: FloatArray) -> FloatArray:
    """Return the upper median of each row; far quicker than numpy's on a few values."""
    half = rows.shape[1] // 2
    return np.asarray(np.partition(rows, half, axis=1)[:, half])


def _nearest(known: FloatArray, wanted: FloatArray, count: int) -> NDArray[np.int64]:
    """Return the indices of the ``count`` nearest of few ascending values for each wanted place, shape (b, count)."""
    size = min(count, known.size)
    order = np.argsort(np.abs(known[None, :] - wanted[:, None]), axis=1, kind="stable")
    return np.asarray(order[:, :size], dtype=np.int64)


def shape_misfit(field: Field, peaks: Peaks, residual: FloatArray, settings: UnexplainedSettings) -> ShapeMisfit:
    """Measure the misfit on the windows of the strongest calculated peaks.

    Args:
        field: the field.
        peaks: calculated peaks.
        residual: without slow part and without the unknown peaks found so far, shape (n,).
        settings: how many windows and neighbours, floors.
    """
    order = np.argsort(-peaks.area / peaks.fwhm, kind="stable")[: settings.misfit_windows]
    chosen = order[np.argsort(peaks.position[order], kind="stable")]
    position, fwhm = peaks.position[chosen], peaks.fwhm[chosen]
    windows = windows_between(field.x, position - settings.fit_fwhm * fwhm, position + settings.fit_fwhm * fwhm)
    enough = windows.high - windows.low > CHANGES + _SPARE
    position, fwhm = position[enough], fwhm[enough]
    windows = windows_between(field.x, position - settings.fit_fwhm * fwhm, position + settings.fit_fwhm * fwhm)
    places = np.linspace(field.x[0], field.x[-1], _PLACES)
    if position.size == 0:
        return _around(position, np.zeros((CHANGES, 0)), np.zeros((CHANGES, 0)), places, settings)
    at = windows.point
    columns = np.concatenate((field.changes[:, at], np.ones((1, at.size))))
    fit = local_fits(columns, residual[at], field.weight[at], windows.start, ridge=_RIDGE)
    variance = np.maximum(fit.variance.T[:CHANGES], 0.0)
    esd = np.sqrt(variance * np.maximum(fit.chi2_reduced, 1.0))
    value = fit.coefficient[:, :CHANGES].T.copy()
    value[_SHIFT] /= fwhm
    esd[_SHIFT] /= fwhm
    return _around(position, value, esd, places, settings)
