"""Is the model too far off for derivatives? Then move it onto the data first, and measure the rest there.

A shift of several FWHM leaves no residual that a derivative could be projected on: it is found by a global search
(``coarse``). Smaller shifts, cell strains and a width error that is smooth in tan(theta) are fitted from the peaks and
applied, until what is left is small. What was applied is part of what is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.interpolate import CubicSpline

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import cell_slope
from autoxrd.science.causes import Causes, find_causes
from autoxrd.science.coarse import CoarseShift, coarse_cell, coarse_shifts
from autoxrd.science.frame import Frame, explained_share, moved_frame, phase_curve
from autoxrd.science.inputs import FitArrays, MeasureContext
from autoxrd.science.laws import (
    ALONG,
    CELL,
    DISPLACEMENT,
    ZERO,
    LawFit,
    LawProblem,
    Shift,
    Strains,
    displacement_law,
    law_problem,
    strains_of,
)
from autoxrd.science.reflections import PeakMeasures, measure_peaks
from autoxrd.science.settings import PositionSettings
from autoxrd.science.trend import Trend, robust_line

__all__ = ["Adjustment", "Alignment", "align", "shift_of", "width_trend"]


@dataclass(frozen=True, slots=True)
class Adjustment:
    """What the model is given before it is measured: a shift, and ln(width) linear in tan(theta)."""

    shift: Shift = field(default_factory=Shift)
    width: tuple[float, float] = (0.0, 0.0)
    timed: bool = False

    def width_factor(self, two_theta: FloatArray) -> FloatArray:
        """Return the factor on the FWHM at positions in degrees 2theta, held within a factor 4."""
        tangent = _width_slope(two_theta, timed=self.timed)
        return np.asarray(np.exp(np.minimum(np.maximum(self.width[0] + self.width[1] * tangent, -1.4), 1.4)))


@dataclass(frozen=True, slots=True)
class Alignment:
    """The model after it was moved onto the data.

    Args:
        frame: with the model adjusted.
        measures: peaks as measured on it; offsets and widths are total.
        strains: cell changes of the phases.
        adjustment: what it was given.
        coarse: the global shift where one was needed, else None.
        problem: the fit of the laws to the measured offsets; None where there are too few.
        causes: what that fit names.
    """

    frame: Frame
    measures: PeakMeasures
    strains: Strains
    adjustment: Adjustment
    coarse: CoarseShift | None = None
    problem: LawProblem | None = None
    causes: Causes | None = None


def shifted_net(frame: Frame, result: FitArrays, shift: Shift) -> FloatArray:
    """Return the calculated Bragg intensity with each phase's pattern moved as a whole, shape (n,)."""
    net = np.zeros_like(frame.x)
    rest = frame.net_calc.copy()
    # phases that move alike are moved together
    alike: dict[float, FloatArray] = {}
    first: dict[float, int] = {}
    for index, pattern in enumerate(result.phase_patterns):
        rest -= pattern
        amplitude = shift.cell[index] if shift.cell else 0.0
        alike[amplitude] = alike[amplitude] + pattern if amplitude in alike else pattern
        first.setdefault(amplitude, index)
    for amplitude, patterns in alike.items():
        # what was calculated at s is seen at s + shift(s)
        net += _resampled(frame.x, frame.x + shift.at(frame.x, first[amplitude]), patterns)
    return net + rest


def _resampled(x: FloatArray, moved: FloatArray, values: FloatArray) -> FloatArray:
    """Return values known at ``moved`` at ``x``; cubic, because linear steps would widen every line by per cents."""
    if np.array_equal(x, moved):
        return values
    if np.any(np.diff(moved) <= 0):
        return np.asarray(np.interp(x, moved, values))
    inside = np.minimum(np.maximum(x, moved[0]), moved[-1])
    return np.asarray(CubicSpline(moved, values)(inside))


def adjusted(frame: Frame, result: FitArrays, strains: Strains, adjustment: Adjustment) -> Frame:
    """Return ``frame`` (as calculated) with the model adjusted."""
    shift = adjustment.shift
    net = shifted_net(frame, result, shift)
    position = frame.lines.position
    smooth = shift.at(position, frame.lines.phase)
    extra = np.zeros_like(position)
    for rows, amplitudes in zip(strains.reflection, shift.strain, strict=False):
        if any(amplitudes):
            relative = (np.asarray(amplitudes) @ rows[1:])[frame.lines.reflection]
            extra += relative * cell_slope(position, timed=frame.timed)
    factor = adjustment.width_factor(position)
    return moved_frame(frame, net, smooth=smooth, extra=extra, factor=factor, n_phases=len(result.phases))


def align(result: FitArrays, context: MeasureContext, frame: Frame, gof: float) -> Alignment:
    """Move the model onto the data as far as the laws can, and measure the peaks there."""
    strains = strains_of(result, frame)
    current = Alignment(frame, measure_peaks(frame), strains, Adjustment(_still(context), timed=frame.timed))
    if not (frame.angular or frame.timed) or frame.lines.position.size == 0:
        return current
    settings = context.settings.positions
    if gof > settings.coarse_gof and _in_place(current) < settings.in_place_share:
        current = _lost_phases(result, context, frame, _coarse(result, context, frame, current))
    current = _named(current, context)
    for _ in range(settings.rebase_cycles):
        better = _better(result, context, frame, current)
        if better is None:
            break
        current = _named(better, context)
    return current


_WIDTH_TIME_US = 1e4
"""Unit of the slope of ln(width) over the time of flight."""


def _width_slope(position: FloatArray, *, timed: bool) -> FloatArray:
    """Return what ln(observed / calculated width) is linear in: tan(theta), or the time in 10 ms."""
    return np.asarray(cell_slope(position, timed=timed) / (_WIDTH_TIME_US if timed else 1.0))


def _still(context: MeasureContext) -> Shift:
    return Shift(law=displacement_law(context))


def _named(current: Alignment, context: MeasureContext) -> Alignment:
    """Return the alignment with the causes that its offsets name."""
    problem = law_problem(current.measures, context, current.strains)
    causes = None if problem is None else find_causes(problem, context.settings.positions)
    return replace(current, problem=problem, causes=causes)


def _in_place(current: Alignment) -> float:
    """Return the share of the calculated intensity of unmixed peaks that is found within reach of a derivative."""
    area, measures = current.frame.peaks.area, current.measures
    total = float(area[measures.purity > 0.5].sum())
    return float(area[measures.shaped].sum()) / total if total > 0 else 0.0


def shift_of(fit: LawFit, context: MeasureContext, n_phases: int) -> Shift:
    """Return the shift that a fit of the laws describes."""

    def value(name: str) -> float:
        got = fit.get(name)
        return 0.0 if got is None else got[0]

    isotropic = [value(CELL) + value(f"{CELL}.{i}") for i in range(n_phases)]
    strain = []
    for index in range(n_phases):
        extra = [name for name in fit.names if name.startswith(f"{CELL}.{index}.")]
        strain.append(tuple(value(name) for name in extra))
    return Shift(
        zero=value(ZERO),
        displacement=value(DISPLACEMENT),
        along=value(ALONG),
        law=displacement_law(context),
        cell=tuple(isotropic),
        strain=tuple(strain),
    )


def width_trend(measures: PeakMeasures, *, timed: bool = False) -> Trend | None:
    """Return the robust line of ln(observed / calculated width) against tan(theta); None for too few peaks."""
    used = measures.shaped & (measures.width > -0.9)
    tangent = _width_slope(measures.position[used], timed=timed)
    factor = 1.0 + measures.width[used]
    return robust_line(tangent, np.log(factor), measures.width_esd[used] / factor)


def _better(result: FitArrays, context: MeasureContext, frame: Frame, current: Alignment) -> Alignment | None:
    """Return an alignment that explains more, None where the present one is good enough or nothing helps."""
    share = explained_share(current.frame, current.frame.net_calc)
    for wanted in _proposals(current, context):
        candidate = adjusted(frame, result, current.strains, wanted)
        if explained_share(candidate, candidate.net_calc) > share:
            return replace(current, frame=candidate, measures=measure_peaks(candidate), adjustment=wanted)
    return None


def _proposals(current: Alignment, context: MeasureContext) -> Iterator[Adjustment]:
    """Yield adjustments worth trying, the fullest first."""
    settings = context.settings.positions
    shift = width = None
    change = 0.0
    if current.problem is not None and current.causes is not None:
        fit = current.causes.fit
        change = _shift_change(current, current.problem, fit, settings)
        if change > settings.rebase_fwhm:
            shift = shift_of(fit, context, len(current.strains.peak))
    trend = width_trend(current.measures, timed=current.frame.timed)
    if trend is not None and _width_matters(current, trend, settings):
        width = (trend.intercept, trend.slope)
    # a shift of the order of a width looks like a width to second order: a large one goes first
    if shift is not None and width is not None and change < settings.large_shift_fwhm:
        yield replace(current.adjustment, shift=shift, width=width)
    if shift is not None:
        yield replace(current.adjustment, shift=shift)
    if width is not None:
        yield replace(current.adjustment, width=width)


def _shift_change(current: Alignment, problem: LawProblem, fit: LawFit, settings: PositionSettings) -> float:
    """Return the rms change of the shift that a fit asks for, in FWHM; 0 where it is not significant."""
    if (problem.chi2_null - fit.chi2) / problem.scale < settings.rebase_significance**2:
        return 0.0
    used = problem.used
    at = [problem.names.index(name) for name in fit.names]
    left = problem.columns[:, at] @ fit.coefficient - current.measures.base_offset[used]
    relative = left / current.measures.fwhm[used]
    return float(np.sqrt(np.mean(np.square(relative))))


def _width_matters(current: Alignment, trend: Trend, settings: PositionSettings) -> bool:
    if trend.chi2_gain < settings.rebase_significance**2:
        return False
    at = current.measures.position[current.measures.shaped]
    wanted = replace(current.adjustment, width=(trend.intercept, trend.slope)).width_factor(at)
    present = current.adjustment.width_factor(at)
    return bool(np.sqrt(np.mean(np.square(np.log(wanted / present)))) > settings.rewiden)


def _coarse(result: FitArrays, context: MeasureContext, frame: Frame, start: Alignment) -> Alignment:
    """Try each law over its whole range; keep the best where it explains clearly more."""
    settings = context.settings.positions
    base = explained_share(frame, frame.net_calc)
    n_phases, law = len(result.phases), displacement_law(context)
    best, best_share = None, base
    for found in coarse_shifts(frame, law, settings):
        share = explained_share(frame, shifted_net(frame, result, _single(found, n_phases, law)))
        if share > best_share:
            best, best_share = found, share
    enough = max(settings.coarse_min_explained, base + settings.coarse_gain * (1.0 - max(base, 0.0)))
    if best is None or best_share <= enough:
        return start
    adjustment = Adjustment(_single(best, n_phases, law), timed=frame.timed)
    moved = adjusted(frame, result, start.strains, adjustment)
    return Alignment(moved, measure_peaks(moved), start.strains, adjustment, coarse=best)


def _lost_phases(result: FitArrays, context: MeasureContext, frame: Frame, current: Alignment) -> Alignment:
    """Search the cell of each phase whose peaks are nowhere near where they are calculated."""
    settings = context.settings.positions
    n_phases = len(result.phases)
    peaks, measures = current.frame.peaks, current.measures
    for index in range(n_phases if n_phases > 1 else 0):
        own = measures.pure & (measures.phase == index)
        total = float(peaks.area[own].sum())
        if total <= 0 or float(peaks.area[own & measures.shaped].sum()) > settings.lost_share * total:
            continue
        rest = current.frame.residual + phase_curve(current.frame, index)
        found = coarse_cell(current.frame, index, rest, settings)
        if found is None:
            continue
        cell = list(current.adjustment.shift.cell or (0.0,) * n_phases)
        cell[index] += found.amplitude_deg
        wanted = replace(current.adjustment, shift=replace(current.adjustment.shift, cell=tuple(cell)))
        candidate = adjusted(frame, result, current.strains, wanted)
        base = explained_share(current.frame, current.frame.net_calc)
        if explained_share(candidate, candidate.net_calc) > base + settings.coarse_gain * (1.0 - base):
            measures = measure_peaks(candidate)
            current = replace(current, frame=candidate, measures=measures, adjustment=wanted)
            peaks = candidate.peaks
    return current


def _single(found: CoarseShift, n_phases: int, displacement: str) -> Shift:
    if found.law == ZERO:
        return Shift(zero=found.amplitude_deg, law=displacement)
    if found.law == DISPLACEMENT:
        return Shift(displacement=found.amplitude_deg, law=displacement)
    return Shift(cell=(found.amplitude_deg,) * n_phases, law=displacement)
