"""What every local measure shares: residual, weights, lines, reflections and peaks of one fit, computed once."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import AxisKind, FloatArray
from autoxrd.science.arrays import sum_by
from autoxrd.science.curves import Curves, Totals, evaluate
from autoxrd.science.inputs import FitArrays, MeasureContext, ReflectionArrays
from autoxrd.science.noise import count_factor, projection_variance
from autoxrd.science.settings import ReflectionSettings
from autoxrd.science.shapes import Windows, pseudo_voigt, room_for_chunks, windows_between

__all__ = ["Frame", "Lines", "Peaks", "Reflections", "build_frame", "explained_share", "moved_frame", "phase_curve"]

IntArray = NDArray[np.int64]

_CHUNK = 128


@dataclass(frozen=True, slots=True)
class Lines:
    """Calculated lines in order of position, arrays of shape (m,); ``reflection``, ``peak``: index, -1 none."""

    position: FloatArray
    fwhm: FloatArray
    eta: FloatArray
    area: FloatArray
    phase: IntArray
    reflection: IntArray
    peak: IntArray


@dataclass(frozen=True, slots=True)
class Reflections:
    """Reflections (all lines of one hkl of one phase), arrays of shape (r,); ``position`` is that of the first line."""

    phase: IntArray
    hkl: IntArray
    d_angstrom: FloatArray
    position: FloatArray
    fwhm: FloatArray
    area: FloatArray
    multiplicity: IntArray
    peak: IntArray


@dataclass(frozen=True, slots=True)
class Peaks:
    """Groups of reflections that cannot be told apart, arrays of shape (p,), with the windows they are fitted on.

    Args:
        position: area-weighted mean of the first lines.
        phase: phase with the largest area.
        phase_share: that phase's share of the area, 0 to 1.
    """

    position: FloatArray
    fwhm: FloatArray
    area: FloatArray
    d_angstrom: FloatArray
    phase: IntArray
    phase_share: FloatArray
    windows: Windows


@dataclass(frozen=True, slots=True)
class Frame:
    """One fit, ready for local measures.

    Args:
        residual: observed minus calculated, shape (n,); after :func:`alignment.adjusted` with the model moved.
        net_calc: calculated Bragg intensity, shape (n,).
        weight: 1 / variance for projections, shape (n,).
        step: width of each channel on the axis, shape (n,).
        count_factor: variance per count, 0 where the variance is not that of counts.
        moved_by: shift already given to each reflection, unit of the axis, shape (r,).
        widened_by: factor already given to each reflection's FWHM, shape (r,).
        angular, timed: the axis is 2theta; the axis is the time of flight.
        room: memory to work in; its content means nothing.
    """

    x: FloatArray
    net_obs: FloatArray
    net_calc: FloatArray
    residual: FloatArray
    variance: FloatArray
    weight: FloatArray
    step: FloatArray
    lines: Lines
    reflections: Reflections
    peaks: Peaks
    line_windows: Windows
    curves: Curves
    moved_by: FloatArray
    widened_by: FloatArray
    count_factor: float
    angular: bool
    timed: bool
    wavelength_angstrom: float
    settings: ReflectionSettings
    room: FloatArray

    @property
    def totals(self) -> Totals:
        """Derivatives of the whole calculated pattern."""
        return self.curves.totals


def _group(table: ReflectionArrays, keep: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return, of the kept lines, the reflection index and the line (row) that leads each reflection."""
    hkl = table.hkl[keep].astype(np.int64)
    span = int(np.abs(hkl).max(initial=0)) * 2 + 1
    code = table.phase[keep].astype(np.int64)
    for column in range(3):
        code = code * span + hkl[:, column] + span // 2
    order = np.lexsort((table.line[keep], code))
    first = np.concatenate(([True], np.diff(code[order]) != 0)) if order.size else np.zeros(0, dtype=bool)
    reflection = np.empty(order.size, dtype=np.int64)
    reflection[order] = np.cumsum(first) - 1
    return reflection, order[first]


def _cluster(position: FloatArray, fwhm: FloatArray, tall: NDArray[np.bool_], merge: float) -> tuple[IntArray, int]:
    """Group reflections in ascending order; a group ends ``merge`` FWHM after its first member. -1: in no group."""
    group = np.full(position.size, -1, dtype=np.int64)
    count, first = -1, -np.inf
    members = np.flatnonzero(tall)
    members = members[np.argsort(position[members], kind="stable")]
    for index, (at, width) in enumerate(zip(position[members].tolist(), fwhm[members].tolist(), strict=True)):
        if at - first > merge * width:
            count += 1
            first = at
        group[members[index]] = count
    return group, count + 1


def _weighted_mean(index: IntArray, values: FloatArray, weights: FloatArray, size: int) -> FloatArray:
    total = sum_by(index, weights, size)
    return np.asarray(sum_by(index, values * weights, size) / np.where(total > 0, total, 1.0))


def _peaks(x: FloatArray, lines: Lines, reflections: Reflections, count: int, n_phases: int, reach: float) -> Peaks:
    used = reflections.peak >= 0
    owner, area = reflections.peak[used], np.maximum(reflections.area[used], 1e-300)
    by_phase = sum_by(owner * n_phases + reflections.phase[used], area, count * n_phases).reshape(count, n_phases)
    total = by_phase.sum(axis=1)
    # each peak's lines together; it has its leading line at least
    on = np.argsort(lines.peak, kind="stable")[np.count_nonzero(lines.peak < 0) :]
    position, half = lines.position[on], reach * lines.fwhm[on]
    first = np.searchsorted(lines.peak[on], np.arange(count))
    low = np.minimum.reduceat(position - half, first) if count else np.zeros(0)
    high = np.maximum.reduceat(position + half, first) if count else np.zeros(0)
    return Peaks(
        position=_weighted_mean(owner, reflections.position[used], area, count),
        fwhm=_weighted_mean(owner, reflections.fwhm[used], area, count),
        area=total,
        d_angstrom=_weighted_mean(owner, reflections.d_angstrom[used], area, count),
        phase=by_phase.argmax(axis=1).astype(np.int64) if n_phases else np.zeros(count, dtype=np.int64),
        phase_share=by_phase.max(axis=1, initial=0.0) / np.where(total > 0, total, 1.0),
        windows=windows_between(x, low, high),
    )


def _tables(
    result: FitArrays, settings: ReflectionSettings, lines_of: tuple[float, ...]
) -> tuple[Lines, Reflections, int]:
    """Sort out lines, reflections and peak membership."""
    table = result.reflections
    keep = np.isfinite(table.position) & np.isfinite(table.intensity) & np.isfinite(table.fwhm) & (table.fwhm > 0)
    reflection, lead = _group(table, keep)
    position, fwhm = table.position[keep], table.fwhm[keep]
    area = np.maximum(table.intensity[keep], 0.0)
    total = sum_by(reflection, area, lead.size)
    height = total / fwhm[lead] if lead.size else total
    tall = height > settings.height_floor * height.max(initial=0.0)
    peak, count = _cluster(position[lead], fwhm[lead], tall, settings.merge_fwhm)
    wavelength = np.asarray(lines_of or (1.0,))
    line = np.minimum(table.line[keep], wavelength.size - 1)
    near = np.abs(wavelength[line] / wavelength[line[lead[reflection]]] - 1.0) < settings.line_group_relative
    order = np.argsort(position, kind="stable")
    lines = Lines(
        position=position[order],
        fwhm=fwhm[order],
        eta=np.clip(np.nan_to_num(table.eta[keep], nan=0.5), 0.0, 1.0)[order],
        area=area[order],
        phase=table.phase[keep].astype(np.int64)[order],
        reflection=reflection[order],
        peak=np.where(near, peak[reflection], -1)[order] if reflection.size else reflection,
    )
    reflections = Reflections(
        phase=table.phase[keep].astype(np.int64)[lead],
        hkl=table.hkl[keep].astype(np.int64)[lead],
        d_angstrom=table.d_angstrom[keep][lead],
        position=position[lead],
        fwhm=fwhm[lead],
        area=total,
        multiplicity=table.multiplicity[keep].astype(np.int64)[lead],
        peak=peak,
    )
    return lines, reflections, count


def _line_windows(x: FloatArray, lines: Lines, reach: float) -> Windows:
    return windows_between(x, lines.position - reach * lines.fwhm, lines.position + reach * lines.fwhm)


def build_frame(result: FitArrays, context: MeasureContext) -> Frame:
    """Return the shared arrays of a fit."""
    settings = context.settings.reflections
    x = np.ascontiguousarray(result.x, dtype=np.float64)
    net_calc = result.y_calc - result.background
    wavelengths = context.instrument.wavelengths_angstrom
    lines, reflections, count = _tables(result, settings, wavelengths)
    windows = _line_windows(x, lines, settings.line_fwhm)
    peaks = _peaks(x, lines, reflections, count, len(result.phases), settings.window_fwhm)
    factor = count_factor(result.y_obs, result.sigma)
    variance = projection_variance(result.y_obs, result.sigma, result.y_calc, factor)
    room = room_for_chunks()
    return Frame(
        x=x,
        net_obs=result.y_obs - result.background,
        net_calc=net_calc,
        residual=result.y_obs - result.y_calc,
        variance=variance,
        weight=1.0 / variance,
        step=np.gradient(x) if x.size > 1 else np.ones_like(x),
        lines=lines,
        reflections=reflections,
        peaks=peaks,
        line_windows=windows,
        curves=evaluate(x, lines, windows, peaks.windows, room),
        moved_by=np.zeros(reflections.position.size),
        widened_by=np.ones(reflections.position.size),
        count_factor=factor,
        angular=context.axis is AxisKind.TWO_THETA,
        timed=context.timed,
        wavelength_angstrom=wavelengths[0] if wavelengths else float("nan"),
        settings=settings,
        room=room,
    )


def phase_curve(frame: Frame, index: int) -> FloatArray:
    """Return one phase's part of the calculated pattern, from its lines, shape (n,)."""
    windows = frame.line_windows
    own = (frame.lines.phase == index).repeat(windows.length)
    return sum_by(windows.point[own], frame.curves.line_value[own], frame.x.size)


def explained_share(frame: Frame, net_calc: FloatArray) -> float:
    """Return the share of the weighted net pattern that the best multiple of ``net_calc`` (shape (n,)) explains."""
    w, n, c = frame.weight, frame.net_obs, net_calc
    cross = float(np.dot(w * n, c))
    bottom = float(np.dot(w * c, c)) * float(np.dot(w * n, n))
    return cross * abs(cross) / bottom if bottom > 0 else 0.0


def moved_frame(
    frame: Frame, net_calc: FloatArray, *, smooth: FloatArray, extra: FloatArray, factor: FloatArray, n_phases: int
) -> Frame:
    """Return the frame with the model adjusted.

    Args:
        frame: the frame as calculated (not adjusted before).
        net_calc: the calculated Bragg intensity with the smooth part of the shift applied, shape (n,).
        smooth: that shift at each line, unit of the axis, shape (m,).
        extra: what each line moves beyond it, shape (m,).
        factor: factor on each line's FWHM, shape (m,).
        n_phases: number of phases.
    """
    old = replace(frame.lines, position=frame.lines.position + smooth)
    # what is too small to be evaluated is not recorded as done either
    same = frame.settings.same_fwhm
    worth = (np.abs(extra) > same * old.fwhm) | (np.abs(np.log(factor)) > same)
    extra, factor = np.where(worth, extra, 0.0), np.where(worth, factor, 1.0)
    new = replace(old, position=old.position + extra, fwhm=old.fwhm * factor)
    net_calc = net_calc + _difference(frame, old, new)
    order = np.argsort(new.position, kind="stable")
    lines = Lines(*(getattr(new, f.name)[order] for f in fields(Lines)))
    shift, widening = _by_reflection(frame, smooth + extra, 0.0), _by_reflection(frame, factor, 1.0)
    table = frame.reflections
    reflections = replace(table, position=table.position + shift, fwhm=table.fwhm * widening)
    windows = _line_windows(frame.x, lines, frame.settings.line_fwhm)
    count = int(frame.peaks.position.size)
    peaks = _peaks(frame.x, lines, reflections, count, n_phases, frame.settings.window_fwhm)
    return replace(
        frame,
        net_calc=net_calc,
        residual=frame.net_obs - net_calc,
        lines=lines,
        reflections=reflections,
        peaks=peaks,
        line_windows=windows,
        curves=evaluate(frame.x, lines, windows, peaks.windows, frame.room),
        moved_by=shift,
        widened_by=widening,
    )


def _by_reflection(frame: Frame, values: FloatArray, default: float) -> FloatArray:
    """Return the value of each reflection's first line; the last write wins, so lines are walked backwards."""
    out = np.full(frame.reflections.position.size, default)
    out[frame.lines.reflection[::-1]] = values[::-1]
    return out


def _difference(frame: Frame, old: Lines, new: Lines) -> FloatArray:
    """Return the change of the pattern when lines move and widen, shape (n,).

    Only the difference of two pseudo-Voigts is ours; what else the engine's profile has stays as it was calculated.
    """
    change = np.zeros_like(frame.x)
    at = np.flatnonzero((new.position != old.position) | (new.fwhm != old.fwhm))
    for part in np.array_split(at, max(at.size // _CHUNK, 1)) if at.size else ():
        reach = frame.settings.tail_fwhm * np.maximum(old.fwhm, new.fwhm)[part]
        middle = 0.5 * (old.position + new.position)[part]
        windows = windows_between(frame.x, middle - reach, middle + reach)
        owner, point, area = part[windows.owner], windows.point, old.area
        x = frame.x[point]
        values = pseudo_voigt(x, new.position[owner], new.fwhm[owner], old.eta[owner])
        values -= pseudo_voigt(x, old.position[owner], old.fwhm[owner], old.eta[owner])
        values *= area[owner]
        change += sum_by(point, values, frame.x.size)
    return change
