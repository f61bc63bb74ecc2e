"""By how much is each calculated peak off in position, width, skew and intensity?

Around every isolated or weakly overlapped peak the residual is projected, jointly and weighted, on the peak's own
value and derivatives (position, ln width, skew), on those of everything else calculated there (value, position) and
on a constant. Offsets and widths are relative to the *observed* intensity: a derivative's coefficient is divided by
the intensity ratio. Esds are from the channel variances, times the root of the local reduced chi2 where that is > 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import many_inverses, sum_by
from autoxrd.science.frame import Frame
from autoxrd.science.shapes import Windows, chunks

__all__ = ["LocalFit", "PeakMeasures", "local_fits", "measure_peaks"]

IntArray = NDArray[np.int64]

_MANY = 64
_COLUMNS = 7
"""Value, shift, width and skew of the peak itself, value and shift of its neighbours, a constant."""


@dataclass(frozen=True, slots=True)
class LocalFit:
    """Many small weighted least-squares fits.

    Args:
        coefficient: shape (p, c).
        inverse: of the normal matrices of columns in ``unit``, shape (p, c, c).
        unit: of each column, shape (p, c).
        chi2_reduced: shape (p,).
        points: of each fit, shape (p,).
    """

    coefficient: FloatArray
    inverse: FloatArray
    unit: FloatArray
    chi2_reduced: FloatArray
    points: IntArray

    @property
    def variance(self) -> FloatArray:
        """Variances of the coefficients, shape (p, c)."""
        return np.asarray(np.einsum("pii->pi", self.inverse) * np.square(self.unit))

    @property
    def covariance(self) -> FloatArray:
        """Covariances of the coefficients, shape (p, c, c)."""
        return self.inverse * self.unit[:, :, None] * self.unit[:, None, :]


@dataclass(frozen=True, slots=True)
class PeakMeasures:
    """Measured deviations of the peaks of a frame, arrays of shape (p,); esds include the local misfit.

    Args:
        position: calculated position as the engine gave it, unit of the axis.
        ratio: observed over calculated intensity.
        offset: observed minus calculated position, all shifts of the frame included, unit of the axis.
        base_offset: the part of ``offset`` that the frame had been moved by.
        width: relative width error, observed / calculated - 1.
        skew: skewness that the calculated profile lacks; negative is a tail towards low angle.
        purity: own share of the calculated intensity under the peak.
        pure: the peak is its own master and its intensity is determined.
        seen: intensity stands out and the peak is its own master: ratio and its esd can be used.
        shaped: seen, and the first-order projection holds: offset, width and skew can be used.
    """

    position: FloatArray
    fwhm: FloatArray
    phase: IntArray
    phase_share: FloatArray
    d_angstrom: FloatArray
    ratio: FloatArray
    ratio_esd: FloatArray
    offset: FloatArray
    offset_esd: FloatArray
    base_offset: FloatArray
    width: FloatArray
    width_esd: FloatArray
    skew: FloatArray
    skew_esd: FloatArray
    chi2_reduced: FloatArray
    purity: FloatArray
    pure: NDArray[np.bool_]
    seen: NDArray[np.bool_]
    shaped: NDArray[np.bool_]


def local_fits(
    columns: FloatArray, residual: FloatArray, weight: FloatArray, start: IntArray, *, ridge: float
) -> LocalFit:
    """Fit ``residual`` by ``columns`` on each of many windows laid end to end.

    Args:
        columns: shape (c, n_elements).
        residual: shape (n_elements,).
        weight: 1 / variance, shape (n_elements,).
        start: first element of each window, ascending, no window empty, shape (p,).
        ridge: relative ridge on the normal matrix.
    """
    root = np.sqrt(weight)
    scaled = columns * root
    right, total = _projections(scaled, residual * root, start)
    return _solved(_normal(scaled, start), right, total, _points(start, weight.size), ridge)


def _points(start: IntArray, size: int) -> IntArray:
    points = np.empty_like(start)
    np.subtract(start[1:], start[:-1], out=points[:-1])
    points[-1] = size - start[-1]
    return points


def _normal(scaled: FloatArray, start: IntArray) -> FloatArray:
    """Return the normal matrices of columns over sigma, shape (p, c, c)."""
    size = scaled.shape[0]
    normal = np.empty((size, size, start.size))
    product = np.empty(scaled.shape[1])
    for i in range(size):
        for j in range(i, size):
            np.multiply(scaled[i], scaled[j], out=product)
            np.add.reduceat(product, start, out=normal[i, j])
            normal[j, i] = normal[i, j]
    return normal.transpose(2, 0, 1)


def _projections(scaled: FloatArray, residual: FloatArray, start: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return right-hand sides, shape (p, c), and squared residuals, shape (p,), of columns and residual over sigma."""
    right = np.empty((start.size, scaled.shape[0]))
    product = np.empty(residual.size)
    for i, column in enumerate(scaled):
        np.multiply(column, residual, out=product)
        right[:, i] = np.add.reduceat(product, start)
    return right, np.add.reduceat(np.multiply(residual, residual, out=product), start)


def _solved(normal: FloatArray, right: FloatArray, total: FloatArray, points: IntArray, ridge: float) -> LocalFit:
    square = np.einsum("pii->pi", normal)
    empty = square <= 0
    unit = 1.0 / np.sqrt(np.where(empty, 1.0, square))
    normal = normal * unit[:, :, None]
    normal *= unit[:, None, :]
    # an absent column must not make its coefficient free: a unit diagonal pins it to zero
    np.einsum("pii->pi", normal)[...] += np.where(empty, 1.0, ridge)
    inverse = np.asarray(many_inverses(normal) if len(normal) > _MANY else np.linalg.inv(normal), dtype=np.float64)
    target = right * unit
    scaled = np.matmul(inverse, target[:, :, None])[:, :, 0]
    explained = np.einsum("pi,pi->p", scaled, target)
    chi2 = np.maximum(total - explained, 0.0) / np.maximum(points - right.shape[1], 1)
    return LocalFit(scaled * unit, inverse, unit, chi2, points)


def _purity(frame: Frame) -> FloatArray:
    """Return the share of the calculated intensity under each peak that is its own, shape (p,)."""
    windows, value = frame.peaks.windows, frame.curves.own[0]
    point, filled = windows.point, np.flatnonzero(windows.length)
    purity = np.zeros(windows.low.size)
    if filled.size:
        start = windows.start[filled]
        net = np.maximum(frame.net_calc, frame.totals.value)[point]
        net *= value
        under = np.add.reduceat(net, start)
        purity[filled] = np.add.reduceat(np.multiply(value, value, out=net), start) / np.maximum(under, 1e-300)
    return purity


def _fill_columns(frame: Frame, own: FloatArray, point: IntArray, columns: FloatArray) -> None:
    """Fill the seven columns on some of the peak elements.

    Neighbours are the same kind of curve as the peak itself: the engine's curve less ours would be the difference of
    two shapes of the same line, and make its intensity free.
    """
    columns[:4] = own
    np.subtract(frame.totals.value[point], own[0], out=columns[4])
    np.subtract(frame.totals.shift[point], own[1], out=columns[5])
    columns[6] = 1.0


def measure_peaks(frame: Frame) -> PeakMeasures:
    """Return the deviations of every peak of a frame; only of those that are their own masters anything is fitted."""
    everywhere, purity = frame.peaks.windows, _purity(frame)
    at = np.flatnonzero(purity >= frame.settings.min_purity)
    length = everywhere.length[at]
    windows = Windows(everywhere.low[at], everywhere.high[at], np.cumsum(length) - length)
    # of each element of these windows, the place among all peaks' elements
    place = np.arange(windows.size) + (everywhere.start[at] - windows.start).repeat(length)
    normal, right = np.empty((at.size, _COLUMNS, _COLUMNS)), np.empty((at.size, _COLUMNS))
    total = np.empty(at.size)
    for part, columns in chunks(windows, frame.room, _COLUMNS):
        run, first = windows.run(part), int(windows.start[part.start])
        point = run.point
        _fill_columns(frame, frame.curves.own[:, place[first : first + point.size]], point, columns)
        root = np.sqrt(frame.weight[point])
        columns *= root
        root *= frame.residual[point]
        normal[part] = _normal(columns, run.start)
        right[part], total[part] = _projections(columns, root, run.start)
    fit = _solved(normal, right, total, length, frame.settings.condition_ridge) if at.size else None
    return _assemble(frame, fit, at, purity)


def _spread(fit: LocalFit | None, at: IntArray, count: int) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Return coefficients (4, p), esds (4, p), reduced chi2 and spare points (p,) with unfitted peaks filled in."""
    values, esds = np.zeros((4, count)), np.full((4, count), np.inf)
    chi2, spare = np.ones(count), np.zeros(count, dtype=np.int64)
    if fit is not None:
        chi2[at] = fit.chi2_reduced
        spare[at] = fit.points - fit.coefficient.shape[1]
        values[:, at] = fit.coefficient[:, :4].T
        variance = fit.variance[:, :4].T
        esds[:, at] = np.sqrt(np.maximum(variance, 0.0) * np.maximum(fit.chi2_reduced, 1.0))
    return values, esds, chi2, spare


def _assemble(frame: Frame, fit: LocalFit | None, at: IntArray, purity: FloatArray) -> PeakMeasures:
    peaks, settings = frame.peaks, frame.settings
    values, esds, chi2, spare = _spread(fit, at, purity.size)
    ratio = 1.0 + values[0]
    safe = np.where(ratio > 1e-6, ratio, 1.0)
    offset, width, skew = values[1:] / safe
    pure = (purity >= settings.min_purity) & (spare >= settings.min_free_points)
    pure &= esds[0] < settings.max_ratio_esd * np.maximum(np.abs(ratio), 1.0)
    seen = pure & (ratio > settings.min_snr * esds[0])
    base, widening = _peak_mean(frame, frame.moved_by), _peak_mean(frame, frame.widened_by)
    return PeakMeasures(
        position=peaks.position - base,
        fwhm=peaks.fwhm / widening,
        phase=peaks.phase,
        phase_share=peaks.phase_share,
        d_angstrom=peaks.d_angstrom,
        ratio=ratio,
        ratio_esd=esds[0],
        offset=offset + base,
        offset_esd=esds[1] / safe,
        base_offset=base,
        width=widening * (1.0 + width) - 1.0,
        width_esd=widening * esds[2] / safe,
        skew=skew,
        skew_esd=esds[3] / safe,
        chi2_reduced=chi2,
        purity=purity,
        pure=pure,
        seen=seen,
        shaped=seen & (np.abs(offset) <= settings.max_offset_fwhm * peaks.fwhm),
    )


def _peak_mean(frame: Frame, values: FloatArray) -> FloatArray:
    """Return the area-weighted mean over each peak's reflections of a value per reflection."""
    used = frame.reflections.peak >= 0
    owner = frame.reflections.peak[used]
    area = np.maximum(frame.reflections.area[used], 1e-300)
    count = int(frame.peaks.position.size)
    total = sum_by(owner, area, count)
    return np.asarray(sum_by(owner, area * values[used], count) / np.where(total > 0, total, 1.0))
