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
from autoxrd.science.arrays import sum_by
from autoxrd.science.frame import Frame

__all__ = ["LocalFit", "PeakMeasures", "local_fits", "measure_peaks"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LocalFit:
    """Many small weighted least-squares fits; coefficients (p, c), covariances (p, c, c), reduced chi2 (p,)."""

    coefficient: FloatArray
    covariance: FloatArray
    chi2_reduced: FloatArray
    points: IntArray


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
    count, size = start.size, columns.shape[0]
    normal = np.empty((count, size, size))
    right = np.empty((count, size))
    for i in range(size):
        weighted = columns[i] * weight
        right[:, i] = np.add.reduceat(weighted * residual, start)
        for j in range(i, size):
            normal[:, i, j] = normal[:, j, i] = np.add.reduceat(weighted * columns[j], start)
    scale = np.sqrt(np.einsum("pii->pi", normal))
    scale[scale <= 0] = 1.0
    normal /= scale[:, :, None] * scale[:, None, :]
    # an absent column must not make its coefficient free: a unit diagonal pins it to zero
    normal += ridge * np.eye(size)
    empty = np.einsum("pii->pi", normal) < 0.5
    if empty.any():
        normal[np.nonzero(empty)[0], np.nonzero(empty)[1], np.nonzero(empty)[1]] = 1.0
    inverse = np.linalg.inv(normal)
    scaled = np.einsum("pij,pj->pi", inverse, right / scale)
    explained = np.einsum("pi,pi->p", scaled, right / scale)
    total = np.add.reduceat(weight * residual * residual, start)
    points = np.diff(np.concatenate((start, [residual.size])))
    chi2 = np.maximum(total - explained, 0.0) / np.maximum(points - size, 1)
    return LocalFit(scaled / scale, inverse / (scale[:, :, None] * scale[:, None, :]), chi2, points)


def _columns(frame: Frame) -> tuple[FloatArray, FloatArray]:
    """Return the seven columns on the peak elements, and the calculated net intensity there."""
    point, totals, own = frame.peaks.windows.point, frame.totals, frame.curves.own
    columns = np.empty((7, point.size))
    columns[:4] = own
    value = totals.value[point]
    # neighbours as the same kind of curve as the peak itself: the engine's curve less ours would be the difference of
    # two shapes of the same line, and make its intensity free
    net = np.maximum(frame.net_calc[point], value)
    columns[4] = value - own[0]
    columns[5] = totals.shift[point] - own[1]
    columns[6] = 1.0
    return columns, net


def measure_peaks(frame: Frame) -> PeakMeasures:
    """Return the deviations of every peak of a frame."""
    peaks, settings = frame.peaks, frame.settings
    length = peaks.windows.high - peaks.windows.low
    count = int(length.size)
    nonempty = np.flatnonzero(length > 0)
    if nonempty.size == 0:
        return _assemble(frame, None, nonempty, np.zeros(count))
    columns, net = _columns(frame)
    start = peaks.windows.start[nonempty]
    fit = local_fits(
        columns,
        frame.residual[peaks.windows.point],
        frame.weight[peaks.windows.point],
        start,
        ridge=settings.condition_ridge,
    )
    own = np.add.reduceat(columns[0] * columns[0], start)
    purity = np.zeros(count)
    purity[nonempty] = own / np.maximum(np.add.reduceat(columns[0] * net, start), 1e-300)
    return _assemble(frame, fit, nonempty, purity)


def _spread(fit: LocalFit | None, at: IntArray, count: int) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Return coefficients (4, p), esds (4, p), reduced chi2 and spare points (p,) with unfitted peaks filled in."""
    values, esds = np.zeros((4, count)), np.full((4, count), np.inf)
    chi2, spare = np.ones(count), np.zeros(count, dtype=np.int64)
    if fit is not None:
        chi2[at] = fit.chi2_reduced
        spare[at] = fit.points - fit.coefficient.shape[1]
        values[:, at] = fit.coefficient[:, :4].T
        variance = np.einsum("pii->pi", fit.covariance)[:, :4].T
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
