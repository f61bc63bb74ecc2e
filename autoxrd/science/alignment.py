"""Is the model so far off that derivatives cannot tell? Then find the shift globally and move the model first.

A shift of several FWHM leaves no residual that a derivative could be projected on. Each law (zero, displacement,
isotropic cell) becomes a uniform translation on an axis of its own (2theta, the integral of 1/cos theta, ln sin theta),
where one cross-correlation tries all amplitudes. After that, fitted laws move the model until the rest is small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.causes import find_causes
from autoxrd.science.frame import Frame, moved_frame
from autoxrd.science.inputs import FitArrays, MeasureContext
from autoxrd.science.laws import CELL, DISPLACEMENT, ZERO, LawFit, LawProblem, Shift, displacement_law, law_problem
from autoxrd.science.noise import moving_mean
from autoxrd.science.reflections import PeakMeasures, measure_peaks
from autoxrd.science.settings import PositionSettings

__all__ = ["Alignment", "align", "shift_of"]

_MAX_GRID = 1 << 16
_POINTS_PER_FWHM = 3.0
_BASELINE_FWHM = 30.0


@dataclass(frozen=True, slots=True)
class Alignment:
    """The model after it was moved onto the data.

    Args:
        frame: with the model moved.
        measures: peaks as measured on it; offsets are total.
        shift: what it was moved by.
        coarse: the global shift where one was needed, else None.
        coarse_esd: uncertainty of its amplitude, degrees.
    """

    frame: Frame
    measures: PeakMeasures
    shift: Shift
    coarse: Shift | None = None
    coarse_esd: float = 0.0


def explained(frame: Frame) -> float:
    """Return the share of the weighted net pattern that the best multiple of the calculated one explains."""
    w, n, c = frame.weight, frame.net_obs, frame.net_calc
    cross = float(np.dot(w * n, c))
    bottom = float(np.dot(w * c, c)) * float(np.dot(w * n, n))
    return cross * abs(cross) / bottom if bottom > 0 else 0.0


def moved(frame: Frame, result: FitArrays, shift: Shift) -> Frame:
    """Return ``frame`` (as calculated) with every phase moved by ``shift``."""
    net = np.zeros_like(frame.x)
    rest = frame.net_calc.copy()
    for index, pattern in enumerate(result.phase_patterns):
        rest -= pattern
        # what was calculated at s is seen at s + shift(s)
        net += np.interp(frame.x, frame.x + shift.at(frame.x, index), pattern)
    line_shift = shift.at(frame.lines.position, frame.lines.phase)
    return moved_frame(frame, net_calc=net + rest, line_shift=line_shift, n_phases=len(result.phases))


def align(result: FitArrays, context: MeasureContext, frame: Frame, gof: float) -> Alignment:
    """Move the model onto the data as far as the position laws can, and measure the peaks there."""
    measures = measure_peaks(frame)
    current = Alignment(frame, measures, Shift())
    if not frame.angular or frame.lines.position.size == 0:
        return current
    settings = context.settings.positions
    if gof > settings.coarse_gof:
        current = _coarse(result, context, frame, current)
    for _ in range(settings.rebase_cycles):
        problem = law_problem(current.measures, context, len(result.phases))
        if problem is None:
            break
        fit = find_causes(problem, settings).fit
        shift = shift_of(fit, context, len(result.phases))
        if not _worth_moving(current, problem, fit, shift, settings):
            break
        candidate = moved(frame, result, shift)
        if explained(candidate) <= explained(current.frame):
            break
        current = replace(current, frame=candidate, measures=measure_peaks(candidate), shift=shift)
    return current


def shift_of(fit: LawFit, context: MeasureContext, n_phases: int) -> Shift:
    """Return the shift that a fit of the laws describes."""

    def value(name: str) -> float:
        got = fit.get(name)
        return 0.0 if got is None else got[0]

    fitted = [value(CELL) + value(f"{CELL}.{i}") for i in range(n_phases)]
    return Shift(value(ZERO), value(DISPLACEMENT), tuple(fitted), displacement_law(context))


def _worth_moving(
    current: Alignment, problem: LawProblem, fit: LawFit, shift: Shift, settings: PositionSettings
) -> bool:
    improvement = max(problem.chi2_null - fit.chi2, 0.0) / problem.scale
    if improvement < settings.rebase_significance**2:
        return False
    measures, used = current.measures, problem.used
    wanted = shift.at(measures.position[used], measures.phase[used])
    present = current.shift.at(measures.position[used], measures.phase[used])
    difference = (wanted - present) / measures.fwhm[used]
    return bool(np.sqrt(np.mean(np.square(difference))) > settings.rebase_fwhm)


def _coarse(result: FitArrays, context: MeasureContext, frame: Frame, start: Alignment) -> Alignment:
    """Try the three laws over their whole range; keep the best where it explains clearly more."""
    settings = context.settings.positions
    base = explained(frame)
    best, best_share, esd = None, base, 0.0
    for law in (ZERO, DISPLACEMENT, CELL):
        if law == DISPLACEMENT and displacement_law(context) != "cos":
            continue
        amplitude, width = _correlate(frame, law, settings.coarse_zero_deg, settings.coarse_cell_relative)
        if abs(amplitude) < settings.coarse_min_fwhm * width:
            continue
        shift = _single(law, amplitude, len(result.phases), displacement_law(context))
        candidate = moved(frame, result, shift)
        share = explained(candidate)
        if share > best_share:
            best, best_share, esd = (shift, candidate), share, 0.1 * width
    enough = best_share > max(settings.coarse_min_explained, base + settings.coarse_gain * max(1.0 - base, 0.0))
    if best is None or not enough:
        return start
    shift, candidate = best
    return Alignment(candidate, measure_peaks(candidate), shift, coarse=shift, coarse_esd=esd)


def _single(law: str, amplitude: float, n_phases: int, displacement: str) -> Shift:
    if law == ZERO:
        return Shift(zero=amplitude)
    if law == DISPLACEMENT:
        return Shift(displacement=amplitude, law=displacement)
    return Shift(cell=(amplitude,) * n_phases)


def _stretched(x: FloatArray, law: str) -> tuple[FloatArray, FloatArray]:
    """Return the axis on which a law is a translation (degrees of amplitude), and d(2theta)/d(axis)."""
    theta = np.deg2rad(np.clip(x, 0.2, 178.0)) / 2.0
    if law == ZERO:
        return x, np.ones_like(x)
    if law == DISPLACEMENT:
        return np.rad2deg(2.0 * np.arctanh(np.sin(theta))), np.cos(theta)
    return np.rad2deg(2.0 * np.log(np.sin(theta))), np.tan(theta)


def _correlate(frame: Frame, law: str, reach_deg: float, reach_cell: float) -> tuple[float, float]:
    """Return the amplitude with the largest weighted correlation, and the median FWHM on that axis; degrees."""
    axis, slope = _stretched(frame.x, law)
    line_slope = _stretched(frame.lines.position, law)[1]
    widths = frame.lines.fwhm / np.maximum(line_slope, 1e-6)
    width = float(np.median(widths))
    span = float(axis[-1] - axis[0])
    size = int(min(max(span / (float(np.quantile(widths, 0.1)) / _POINTS_PER_FWHM), 64), _MAX_GRID))
    grid = np.linspace(axis[0], axis[-1], size)
    step = span / (size - 1)
    reach = np.rad2deg(2.0 * reach_cell) if law == CELL else reach_deg
    lags = min(int(reach / step) + 1, size // 2)
    piece = int(_BASELINE_FWHM * width / step) | 1

    def sampled(values: FloatArray) -> FloatArray:
        return np.asarray(np.interp(grid, axis, values))

    weight = sampled(frame.weight * slope)
    observed, calculated = sampled(frame.net_obs), sampled(frame.net_calc)
    observed = observed - moving_mean(observed, piece)
    calculated = calculated - moving_mean(calculated, piece)
    length = 1 << int(np.ceil(np.log2(size + 2 * lags)))

    def correlation(first: FloatArray, second: FloatArray) -> FloatArray:
        full = np.fft.irfft(np.fft.rfft(first, length) * np.conj(np.fft.rfft(second, length)), length)
        return np.concatenate((full[-lags:], full[: lags + 1]))

    cross = correlation(weight * observed, calculated)
    norm = correlation(weight, calculated * calculated)
    score = np.where(norm > 0, np.maximum(cross, 0.0) ** 2 / np.maximum(norm, 1e-300), 0.0)
    return float((int(np.argmax(score)) - lags) * step), width
