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
from autoxrd.science.field import CHANGES, Field
from autoxrd.science.frame import Peaks
from autoxrd.science.reflections import local_fits
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import windows_between

__all__ = ["ShapeMisfit", "ShapePrior", "shape_misfit"]

_SHIFT = 1
_MAD_TO_SIGMA = 1.4826
_FEWEST = 3


@dataclass(frozen=True, slots=True)
class ShapePrior:
    """Expected misfit and its spread at each of b places, shapes (b, 6); a shift is in units of the axis."""

    mean: FloatArray
    spread: FloatArray


@dataclass(frozen=True, slots=True)
class ShapeMisfit:
    """Misfits on w windows in order of position: shapes (w,) and (w, 6); a shift is in FWHM."""

    position: FloatArray
    value: FloatArray
    esd: FloatArray
    settings: UnexplainedSettings

    def at(self, position: FloatArray, fwhm: FloatArray) -> ShapePrior:
        """Return what the nearest windows let expect at b places of given peak width."""
        loose = np.asarray(self.settings.misfit_unknown)
        mean, spread = np.zeros((position.size, CHANGES)), np.tile(loose, (position.size, 1))
        for k in range(CHANGES):
            known = np.flatnonzero(self.esd[:, k] < loose[k])
            if known.size < _FEWEST:
                continue
            near = known[_nearest(self.position[known], position, self.settings.misfit_neighbours)]
            value, noise = self.value[near, k], np.median(np.square(self.esd[near, k]), axis=1)
            middle = np.median(value, axis=1)
            scatter = np.square(_MAD_TO_SIGMA * np.median(np.abs(value - middle[:, None]), axis=1))
            floor = self.settings.misfit_floor[k]
            mean[:, k] = middle
            spread[:, k] = np.sqrt(np.maximum(scatter - noise, 0.0) + noise / near.shape[1] + floor * floor)
        mean[:, _SHIFT] *= fwhm
        spread[:, _SHIFT] *= fwhm
        return ShapePrior(mean, spread)


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
    chosen = np.sort(order)
    chosen = chosen[np.argsort(peaks.position[chosen], kind="stable")]
    reach = settings.fit_fwhm * peaks.fwhm[chosen]
    windows = windows_between(field.x, peaks.position[chosen] - reach, peaks.position[chosen] + reach)
    enough = windows.high - windows.low > CHANGES + 4
    if not enough.all():
        chosen, reach = chosen[enough], reach[enough]
        windows = windows_between(field.x, peaks.position[chosen] - reach, peaks.position[chosen] + reach)
    if chosen.size == 0:
        return ShapeMisfit(np.zeros(0), np.zeros((0, CHANGES)), np.zeros((0, CHANGES)), settings)
    at = windows.point
    columns = np.concatenate((field.changes[:, at], np.ones((1, at.size))))
    fit = local_fits(columns, residual[at], field.weight[at], windows.start, ridge=1e-9)
    variance = np.maximum(np.einsum("pii->pi", fit.covariance)[:, :CHANGES], 0.0)
    esd = np.sqrt(variance * np.maximum(fit.chi2_reduced, 1.0)[:, None])
    value = fit.coefficient[:, :CHANGES].copy()
    value[:, _SHIFT] /= peaks.fwhm[chosen]
    esd[:, _SHIFT] /= peaks.fwhm[chosen]
    return ShapeMisfit(peaks.position[chosen], value, esd, settings)
