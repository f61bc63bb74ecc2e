"""Is there intensity that no calculated reflection explains, or calculated intensity where nothing is observed?

A residual bump counts as an unexplained peak when it is significant against counting noise at the local peak width,
lies further than max(0.5 FWHM, 2 steps) from every reflection of every phase, is not half of a +/- pair around one,
stands above the shape misfit to be expected in the tails of strong lines, and keeps its area in a local fit that also
frees scale, shift, width and skew of everything calculated nearby (DESIGN section 7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Feature, UnexplainedPeak
from autoxrd.science.arrays import sum_by
from autoxrd.science.features import measured, unavailable
from autoxrd.science.frame import Frame
from autoxrd.science.inputs import MeasureContext
from autoxrd.science.reflections import PeakMeasures, local_fits
from autoxrd.science.residual import Bumps, find_bumps, local_fwhm, slow_part
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import pseudo_voigt, windows_between

__all__ = ["Unexplained", "find_unexplained", "missing_peaks"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Unexplained:
    """The ratio Q with the peaks behind it, strongest first."""

    feature: Feature
    peaks: tuple[UnexplainedPeak, ...]


def find_unexplained(frame: Frame, context: MeasureContext) -> Unexplained:
    """Return Q and the unexplained peaks of an aligned frame."""
    settings = context.settings.unexplained
    if frame.x.size < 16:
        return Unexplained(unavailable("too few points"), ())
    widths = local_fwhm(frame)
    residual = frame.residual - slow_part(frame, widths, settings)
    bumps = find_bumps(frame, residual, widths, settings)
    bumps = _select(bumps, ~_paired(frame, bumps, settings))
    splitting = _doublet(context) if frame.angular else None
    bumps = _merge_second_line(bumps, splitting)
    if bumps.position.size == 0:
        return Unexplained(measured(0.0, 0.0, n_used=0, significance=0.0), ())
    area, esd = _areas(frame, residual, bumps, splitting, settings)
    area = np.minimum(area, settings.area_excess * _visible(frame, residual, bumps, splitting, settings))
    height = area / (1.1 * bumps.fwhm)
    kept = (area > settings.accept_z * esd) & (height > settings.tail_tolerance * _tails(frame, bumps))
    return _report(frame, _select(bumps, kept), area[kept], esd[kept])


def _select(bumps: Bumps, mask: NDArray[np.bool_]) -> Bumps:
    return Bumps(bumps.position[mask], bumps.fwhm[mask], bumps.significance[mask], bumps.score)


def _paired(frame: Frame, bumps: Bumps, settings: UnexplainedSettings) -> NDArray[np.bool_]:
    """Tell which bumps mirror a dip of comparable significance at a calculated line nearby."""
    position, lines = bumps.position, frame.lines
    paired = np.zeros(position.size, dtype=bool)
    for index, (at, width, z) in enumerate(zip(position, bumps.fwhm, bumps.significance, strict=True)):
        reach = settings.pair_reach_fwhm * width
        near = slice(*np.searchsorted(lines.position, (at - reach, at + reach)))
        mirror = 2.0 * lines.position[near] - at
        inside = (mirror > frame.x[0]) & (mirror < frame.x[-1])
        points = np.searchsorted(frame.x, mirror[inside])
        paired[index] = bool(np.any(bumps.score[points] < -settings.pair_share * z))
    return paired


def _doublet(context: MeasureContext) -> tuple[float, float] | None:
    """Return (relative wavelength difference, intensity ratio) of the second line where it is close by."""
    lines = context.instrument.lines
    if len(lines) < 2:
        return None
    relative = lines[1].wavelength_angstrom / lines[0].wavelength_angstrom - 1.0
    near = abs(relative) < context.settings.reflections.line_group_relative
    return (relative, lines[1].relative_intensity / max(lines[0].relative_intensity, 1e-9)) if near else None


def _second(position: FloatArray, splitting: tuple[float, float]) -> FloatArray:
    """Return where the second line of a first line lies, degrees 2theta."""
    sine = np.clip(np.sin(np.deg2rad(position) / 2.0) * (1.0 + splitting[0]), -1.0, 1.0)
    return np.asarray(np.rad2deg(2.0 * np.arcsin(sine)))


def _merge_second_line(bumps: Bumps, splitting: tuple[float, float] | None) -> Bumps:
    """Drop bumps that are the second line of a stronger one."""
    if splitting is None or bumps.position.size < 2:
        return bumps
    expected = _second(bumps.position, splitting)
    near = np.abs(bumps.position[None, :] - expected[:, None]) < 0.75 * bumps.fwhm[None, :]
    stronger = bumps.significance[:, None] > bumps.significance[None, :]
    np.fill_diagonal(near, False)
    return _select(bumps, ~np.any(near & stronger, axis=0))


def _shape(x: FloatArray, position: FloatArray, fwhm: FloatArray, splitting: tuple[float, float] | None) -> FloatArray:
    """Unit-area peak (first and second line together) at broadcast arguments."""
    eta = np.full_like(position, 0.5)
    value = pseudo_voigt(x, position, fwhm, eta)
    if splitting is None:
        return value
    ratio = splitting[1]
    return np.asarray((value + ratio * pseudo_voigt(x, _second(position, splitting), fwhm, eta)) / (1.0 + ratio))


def _areas(
    frame: Frame,
    residual: FloatArray,
    bumps: Bumps,
    splitting: tuple[float, float] | None,
    settings: UnexplainedSettings,
) -> tuple[FloatArray, FloatArray]:
    """Fit the area of each bump beside the calculated pattern's own derivatives; the other bumps are taken off."""
    reach = settings.fit_fwhm * bumps.fwhm
    upper = bumps.position if splitting is None else _second(bumps.position, splitting)
    windows = windows_between(frame.x, bumps.position - reach, upper + reach)
    owner, point = windows.owner, windows.point
    shape = _shape(frame.x[point], bumps.position[owner], bumps.fwhm[owner], splitting)
    totals = frame.totals
    changes = (totals.shift, totals.width, totals.skew, totals.tail_low, totals.tail_high)
    others = (frame.net_calc, *changes, np.ones_like(frame.x))
    columns = np.stack((shape, *(column[point] for column in others)))
    weight = frame.weight[point]
    area = np.zeros(bumps.position.size)
    esd = np.full(bumps.position.size, np.inf)
    for cycle in range(settings.jacobi_cycles):
        model = sum_by(point, area[owner] * shape, frame.x.size)
        left = residual[point] - model[point] + area[owner] * shape
        fit = local_fits(columns, left, weight, windows.start, ridge=1e-9)
        new = np.maximum(fit.coefficient[:, 0], 0.0)
        area = new if cycle == 0 else 0.3 * area + 0.7 * new
        variance = np.maximum(fit.covariance[:, 0, 0], 0.0)
        esd = np.sqrt(variance * np.maximum(fit.chi2_reduced, 1.0))
    return area, esd


def _visible(
    frame: Frame,
    residual: FloatArray,
    bumps: Bumps,
    splitting: tuple[float, float] | None,
    settings: UnexplainedSettings,
) -> FloatArray:
    """Return the area that the residual shows as it is: its sum over the core, over the share of a peak in there."""
    half = settings.core_fwhm * bumps.fwhm
    windows = windows_between(frame.x, bumps.position - half, bumps.position + half)
    owner, point = windows.owner, windows.point
    shape = _shape(frame.x[point], bumps.position[owner], bumps.fwhm[owner], splitting)
    count = bumps.position.size
    share = sum_by(owner, shape * frame.step[point], count)
    return np.asarray(sum_by(owner, residual[point] * frame.step[point], count) / np.maximum(share, 1e-3))


def _tails(frame: Frame, bumps: Bumps) -> FloatArray:
    """Sum, at each bump, of Lorentzians with the heights and widths of all calculated lines."""
    lines = frame.lines
    height = lines.area / (1.1 * lines.fwhm)
    strong = height > 1e-3 * height.max(initial=0.0)
    position, fwhm, height = lines.position[strong], lines.fwhm[strong], height[strong]
    distance = 2.0 * (bumps.position[:, None] - position[None, :]) / fwhm[None, :]
    return np.asarray(np.sum(height / (1.0 + np.square(distance)), axis=1))


def _report(frame: Frame, bumps: Bumps, area: FloatArray, esd: FloatArray) -> Unexplained:
    total = observed_area(frame) + float(area.sum())
    ratio = float(area.sum()) / total if total > 0 else 0.0
    error = float(np.sqrt(np.sum(np.square(esd)))) / total if total > 0 else 0.0
    spacing = _spacing(frame, bumps.position)
    order = np.argsort(-area, kind="stable")
    peaks = tuple(
        UnexplainedPeak(
            two_theta_deg=float(bumps.position[i]),
            d_angstrom=float(spacing[i]),
            area=float(area[i]),
            area_share=float(area[i] / total) if total > 0 else 0.0,
            significance=float(area[i] / esd[i]),
        )
        for i in order
    )
    return Unexplained(measured(ratio, error, n_used=len(peaks)), peaks)


def observed_area(frame: Frame) -> float:
    """Return the observed net area in the reach of calculated lines, never below what noise alone gives."""
    mask = np.zeros(frame.x.size, dtype=bool)
    mask[frame.line_windows.point] = True
    area = float(np.sum(frame.net_obs[mask] * frame.step[mask]))
    noise = float(np.sqrt(np.sum(frame.variance[mask] * np.square(frame.step[mask]))))
    return max(area, noise)


def _spacing(frame: Frame, position: FloatArray) -> FloatArray:
    if frame.angular:
        return np.asarray(frame.wavelength_angstrom / (2.0 * np.sin(np.deg2rad(position) / 2.0)))
    order = np.argsort(frame.reflections.position)
    known = frame.reflections.position[order], frame.reflections.d_angstrom[order]
    return np.asarray(np.interp(position, *known)) if order.size else np.full_like(position, np.nan)


def missing_peaks(frame: Frame, measures: PeakMeasures, settings: UnexplainedSettings) -> Feature:
    """Return the share of the calculated intensity that stands where nothing is observed.

    A peak is missing when, relative to its phase's typical intensity ratio, less than ``missing_ratio`` is there even
    within two esd.
    """
    pure = measures.pure
    total = float(frame.peaks.area[pure].sum())
    if total <= 0:
        return unavailable("no peak of its own", n_used=0)
    typical = np.ones(measures.ratio.size)
    for index in np.unique(measures.phase[pure]):
        own = pure & (measures.phase == index)
        level = np.sum(frame.peaks.area[own] * measures.ratio[own]) / np.sum(frame.peaks.area[own])
        typical[measures.phase == index] = max(float(level), settings.missing_scale_floor)
    bound = (measures.ratio + 2.0 * measures.ratio_esd) / typical
    missing = pure & (bound < settings.missing_ratio)
    value = float(frame.peaks.area[missing].sum()) / total
    return measured(
        value,
        0.0,
        n_used=int(pure.sum()),
        significance=float(missing.sum()),
        reason=f"{int(missing.sum())} peaks absent",
    )
