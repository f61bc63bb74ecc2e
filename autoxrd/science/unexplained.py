"""Is there intensity that no calculated reflection explains?

A residual bump counts as an unexplained peak when it is significant against counting noise at the local peak width,
lies further than max(0.5 FWHM, 2 steps) from every reflection of every phase, is not half of a +/- pair around one,
stands above the shape misfit to be expected in the tails of strong lines, and keeps its area in a local fit that also
frees scale, shift, width, skew and tails of everything calculated nearby (DESIGN section 7). What has been found is
taken off and the rest searched again, so that the crowded lines of a missing phase are all counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Feature, UnexplainedPeak
from autoxrd.science.arrays import sum_by
from autoxrd.science.doublet import PeakShape, peak_shape
from autoxrd.science.features import measured, unavailable
from autoxrd.science.frame import Frame
from autoxrd.science.inputs import MeasureContext
from autoxrd.science.reflections import local_fits
from autoxrd.science.residual import Bumps, covered_share, find_bumps, local_fwhm, slow_part
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import windows_between

__all__ = ["Unexplained", "find_unexplained"]

IntArray = NDArray[np.int64]

_MIN_POINTS = 16
_AREA_OVER_HEIGHT = 1.1


@dataclass(frozen=True, slots=True)
class Unexplained:
    """The ratio Q with the peaks behind it, strongest first."""

    feature: Feature
    peaks: tuple[UnexplainedPeak, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """Accepted peaks: places and areas with esd, and the curve they make, shape (n,)."""

    bumps: Bumps
    area: FloatArray
    esd: FloatArray
    model: FloatArray


def find_unexplained(frame: Frame, context: MeasureContext) -> Unexplained:
    """Return Q and the unexplained peaks of an aligned frame."""
    settings = context.settings.unexplained
    if frame.x.size < _MIN_POINTS:
        return Unexplained(unavailable("too few points"), ())
    widths = local_fwhm(frame)
    eta = float(np.median(frame.lines.eta)) if frame.lines.eta.size else settings.eta
    shape = peak_shape(context, angular=frame.angular, eta=eta)
    nothing = np.zeros_like(frame.x)
    found = _Found(Bumps.none(), np.zeros(0), np.zeros(0), nothing)
    for _ in range(settings.rounds):
        slow = slow_part(frame, frame.residual - found.model, widths, settings)
        rest = frame.residual - slow - found.model
        bumps, score = find_bumps(frame, rest, widths, settings, taken=found.bumps.position)
        bumps = bumps.where(~_paired(frame, bumps, score, settings))
        bumps = _merge_second_line(bumps, shape, settings)
        if bumps.position.size == 0:
            break
        known = found.bumps.position.size
        found = _judged(frame, frame.residual - slow, found.bumps.joined(bumps), shape, settings)
        if found.bumps.position.size <= known:
            break
    return _report(frame, found, settings)


def _paired(frame: Frame, bumps: Bumps, score: FloatArray, settings: UnexplainedSettings) -> NDArray[np.bool_]:
    """Tell which bumps mirror a dip of comparable significance at a calculated line nearby."""
    position, reach = bumps.position, settings.pair_reach_fwhm * bumps.fwhm
    near = windows_between(frame.lines.position, position - reach, position + reach)
    mirror = 2.0 * frame.lines.position[near.point] - position[near.owner]
    inside = (mirror > frame.x[0]) & (mirror < frame.x[-1])
    owner = near.owner[inside]
    dips = score[np.searchsorted(frame.x, mirror[inside])] < -settings.pair_share * bumps.significance[owner]
    return np.asarray(np.bincount(owner[dips], minlength=position.size) > 0)


def _merge_second_line(bumps: Bumps, shape: PeakShape, settings: UnexplainedSettings) -> Bumps:
    """Drop bumps that are the second line of a stronger one."""
    if shape.ratio == 0.0 or bumps.position.size < 2:
        return bumps
    expected = shape.second(bumps.position)
    near = np.abs(bumps.position[None, :] - expected[:, None]) < settings.separation_fwhm * bumps.fwhm[None, :]
    stronger = bumps.significance[:, None] > bumps.significance[None, :]
    np.fill_diagonal(near, False)
    return bumps.where(~np.any(near & stronger, axis=0))


def _judged(
    frame: Frame, residual: FloatArray, bumps: Bumps, shape: PeakShape, settings: UnexplainedSettings
) -> _Found:
    """Fit all bumps and keep those that are peaks."""
    area, esd = _areas(frame, residual, bumps, shape, settings)
    others = _curve(frame, bumps, area, shape, settings)
    shown = _visible(frame, residual - others, bumps, area, shape, settings)
    area = np.minimum(area, settings.area_excess * shown)
    height = area / (_AREA_OVER_HEIGHT * bumps.fwhm * (1.0 + shape.ratio))
    kept = (area > settings.accept_z * esd) & (height > _tolerated(frame, bumps, settings))
    bumps, area, esd = bumps.where(kept), area[kept], esd[kept]
    return _Found(bumps, area, esd, _curve(frame, bumps, area, shape, settings))


def _areas(
    frame: Frame, residual: FloatArray, bumps: Bumps, shape: PeakShape, settings: UnexplainedSettings
) -> tuple[FloatArray, FloatArray]:
    """Fit the area of each bump beside the calculated pattern's own changes; the other bumps are taken off."""
    reach = settings.fit_fwhm * bumps.fwhm
    windows = windows_between(frame.x, bumps.position - reach, shape.second(bumps.position) + reach)
    owner, point = windows.owner, windows.point
    value = shape.at(frame.x[point], bumps.position[owner], bumps.fwhm[owner])
    totals = frame.totals
    changes = (totals.shift, totals.width, totals.skew, totals.tail_low, totals.tail_high)
    others = (frame.net_calc, *changes, np.ones_like(frame.x))
    columns = np.stack((value, *(column[point] for column in others)))
    weight = frame.weight[point]
    area = np.zeros(bumps.position.size)
    esd = np.full(bumps.position.size, np.inf)
    for cycle in range(settings.jacobi_cycles):
        model = sum_by(point, area[owner] * value, frame.x.size)
        left = residual[point] - model[point] + area[owner] * value
        fit = local_fits(columns, left, weight, windows.start, ridge=1e-9)
        new = np.maximum(fit.coefficient[:, 0], 0.0)
        area = new if cycle == 0 else 0.3 * area + 0.7 * new
        variance = np.maximum(fit.variance[:, 0], 0.0)
        esd = np.sqrt(variance * np.maximum(fit.chi2_reduced, 1.0))
    return area, esd


def _curve(frame: Frame, bumps: Bumps, area: FloatArray, shape: PeakShape, settings: UnexplainedSettings) -> FloatArray:
    """Return the curve of all bumps, tails included, shape (n,)."""
    reach = settings.curve_fwhm * bumps.fwhm
    windows = windows_between(frame.x, bumps.position - reach, shape.second(bumps.position) + reach)
    owner, point = windows.owner, windows.point
    value = shape.at(frame.x[point], bumps.position[owner], bumps.fwhm[owner])
    return sum_by(point, area[owner] * value, frame.x.size)


def _visible(
    frame: Frame, rest: FloatArray, bumps: Bumps, area: FloatArray, shape: PeakShape, settings: UnexplainedSettings
) -> FloatArray:
    """Return the area that the residual shows as it is: its sum over the core, over the share of a peak in there.

    Args:
        frame: aligned frame.
        rest: residual with all bumps taken off, shape (n,).
        bumps: the bumps.
        area: their fitted areas, put back one at a time.
        shape: shape of a peak.
        settings: width of the core.
    """
    half = settings.core_fwhm * bumps.fwhm
    windows = windows_between(frame.x, bumps.position - half, bumps.position + half)
    owner, point = windows.owner, windows.point
    count = bumps.position.size
    step = frame.step[point]
    share = sum_by(owner, shape.at(frame.x[point], bumps.position[owner], bumps.fwhm[owner]) * step, count)
    return np.asarray(area + sum_by(owner, rest[point] * step, count) / np.maximum(share, 1e-3))


def _tolerated(frame: Frame, bumps: Bumps, settings: UnexplainedSettings) -> FloatArray:
    """Return the height that the shape misfit of the calculated lines may have at each bump.

    Lorentzians with the heights and widths of all lines, times the tolerance of a tail: a larger one on the side and
    within the reach of an axial-divergence tail.
    """
    lines = frame.lines
    height = lines.area / (_AREA_OVER_HEIGHT * lines.fwhm)
    strong = height > 1e-3 * height.max(initial=0.0)
    position, fwhm, height = lines.position[strong], lines.fwhm[strong], height[strong]
    away = bumps.position[:, None] - position[None, :]
    tail = height / (1.0 + np.square(2.0 * away / fwhm[None, :]))
    tolerance = np.full(tail.shape, settings.tail_tolerance)
    if frame.angular:
        angle = np.deg2rad(np.clip(position, 1.0, 179.0))
        # signed: negative below 90 degrees, where the tail lies at low angle
        reach = -np.rad2deg(0.5 * settings.axial_ratio**2 / np.tan(angle))
        axial = (away * np.sign(reach) > 0) & (np.abs(away) < np.abs(reach))
        tolerance[axial] = settings.axial_tolerance
    return np.asarray(np.sum(tolerance * tail, axis=1))


def _report(frame: Frame, found: _Found, settings: UnexplainedSettings) -> Unexplained:
    area, esd, position = found.area, found.esd, found.bumps.position
    if area.size == 0:
        return Unexplained(measured(0.0, 0.0, n_used=0, significance=0.0), ())
    total = observed_area(frame) + float(area.sum())
    ratio = float(area.sum()) / total if total > 0 else 0.0
    error = float(np.sqrt(np.sum(np.square(esd)))) / total if total > 0 else 0.0
    spacing = _spacing(frame, position)
    peaks = tuple(
        UnexplainedPeak(
            two_theta_deg=float(position[i]),
            d_angstrom=float(spacing[i]),
            area=float(area[i]),
            area_share=float(area[i] / total) if total > 0 else 0.0,
            significance=float(area[i] / esd[i]),
        )
        for i in np.argsort(-area, kind="stable")
    )
    reason = f"{covered_share(frame, settings):.0%} of the range lies under calculated reflections"
    return Unexplained(measured(ratio, error, n_used=len(peaks), reason=reason), peaks)


def observed_area(frame: Frame) -> float:
    """Return the observed net area in the reach of calculated lines, never below what noise alone gives.

    Peaks that nobody calculated lie outside and are added by the caller.
    """
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
