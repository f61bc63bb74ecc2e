"""Quick judgement of a pattern before any refinement: what limits what it can tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autoxrd.domain.pattern import AxisKind, FloatArray, Notice, Pattern

__all__ = ["DEFAULT_QUALITY_SETTINGS", "QualitySettings", "assess_pattern", "strongest_line_width"]


@dataclass(frozen=True, slots=True)
class QualitySettings:
    """Thresholds, after McCusker et al. (1999), doi:10.1107/S0021889898009856, version 1.

    Args:
        min_peak_counts: net counts of the strongest line below which profile and structure cannot be
            told from noise (McCusker et al. ask for 5000 to 10000 at the strongest lines).
        min_points_per_fwhm: steps across the half width of a line below which its shape is lost (they ask for 5).
        max_points_per_fwhm: steps above which neighbouring points are no longer independent (they say 10; a
            generous factor, as over-sampling only makes esds optimistic).
        min_range_deg: shorter patterns hold too few lines for a cell and a profile.
        max_outlier_steps: largest step over the median step before a gap is reported.
        min_peak_to_background: strongest line over background below which the background rules the fit.
        smooth_ratio: local scatter over counting scatter below which the data have been smoothed or scaled down.
        rough_ratio: the same above which the uncertainties are too small.
    """

    min_peak_counts: float = 1000.0
    min_points_per_fwhm: float = 5.0
    max_points_per_fwhm: float = 25.0
    min_range_deg: float = 20.0
    max_outlier_steps: float = 5.0
    min_peak_to_background: float = 0.2
    smooth_ratio: float = 0.5
    rough_ratio: float = 2.0


DEFAULT_QUALITY_SETTINGS = QualitySettings()


def assess_pattern(pattern: Pattern, *, settings: QualitySettings = DEFAULT_QUALITY_SETTINGS) -> tuple[Notice, ...]:
    """Judge counts, range, step and scatter of a pattern.

    Args:
        pattern: as read; nothing is changed.
        settings: thresholds.

    Returns:
        Notices with codes ``range_short``, ``axis_gap``, ``low_counts``, ``weak_peaks``, ``step_coarse``,
        ``step_fine``, ``sigma_too_large``, ``sigma_too_small``, ``zero_counts``.
    """
    found: list[Notice] = []
    if pattern.axis is AxisKind.TWO_THETA:
        found += _range(pattern, settings)
    found += _counts(pattern, settings)
    if pattern.axis is AxisKind.TWO_THETA:
        found += _step(pattern, settings)
    found += _scatter(pattern, settings)
    return tuple(found)


def _range(pattern: Pattern, settings: QualitySettings) -> list[Notice]:
    """Range and gaps of the axis."""
    out: list[Notice] = []
    span = float(pattern.x[-1] - pattern.x[0])
    if span < settings.min_range_deg:
        out.append(Notice("range_short", f"The pattern covers only {span:.2f} degrees 2theta."))
    steps = np.diff(pattern.x)
    median = float(np.median(steps))
    gaps = np.flatnonzero(steps > settings.max_outlier_steps * median)
    if gaps.size:
        first = int(gaps[0])
        text = f"{gaps.size} gaps in the axis, the first from {pattern.x[first]:g} to {pattern.x[first + 1]:g}."
        out.append(Notice("axis_gap", text))
    return out


def _background(pattern: Pattern) -> FloatArray:
    """Rough background: the lower fifth of the intensities in fifty stretches, interpolated, shape (n,)."""
    n_parts = max(2, min(50, pattern.n_points // 20))
    parts = np.array_split(np.arange(pattern.n_points), n_parts)
    centres = np.array([pattern.x[part].mean() for part in parts])
    levels = np.array([np.quantile(pattern.y[part], 0.2) for part in parts])
    return np.asarray(np.interp(pattern.x, centres, levels), dtype=np.float64)


def _counts(pattern: Pattern, settings: QualitySettings) -> list[Notice]:
    """Level of the strongest line over its background, in effective counts."""
    out: list[Notice] = []
    background = _background(pattern)
    top = int(np.argmax(pattern.y - background))
    net = float(pattern.y[top] - background[top])
    # Effective counts, (y / sigma)^2, do not depend on the scale of the intensities.
    effective = float((pattern.y[top] / pattern.sigma[top]) ** 2) * max(0.0, net) / max(float(pattern.y[top]), 1e-300)
    if effective < settings.min_peak_counts:
        text = f"The strongest line has about {effective:.0f} effective counts; 5000 or more are recommended."
        out.append(Notice("low_counts", text))
    if net < settings.min_peak_to_background * float(background[top]):
        ratio = net / max(float(background[top]), 1e-300)
        text = f"The strongest line is only {ratio:.2f} of its background: the background rules the fit."
        out.append(Notice("weak_peaks", text))
    zeros = float(np.mean(pattern.y == 0.0))
    if zeros > 0.01:
        out.append(Notice("zero_counts", f"{100 * zeros:.1f} % of the points have no counts at all."))
    return out


def _strongest_line(pattern: Pattern) -> tuple[int, int]:
    """Indices of the first points below half height on both sides of the strongest line."""
    net = pattern.y - _background(pattern)
    top = int(np.argmax(net))
    half = net[top] / 2.0
    left, right = top, top
    while left > 0 and net[left] > half:
        left -= 1
    while right < pattern.n_points - 1 and net[right] > half:
        right += 1
    return left, right


def strongest_line_width(pattern: Pattern) -> float:
    """Full width at half height of the strongest line, in the unit of the axis, to about one step."""
    left, right = _strongest_line(pattern)
    return float(pattern.x[right] - pattern.x[left]) * (right - left - 1) / max(1, right - left)


def _step(pattern: Pattern, settings: QualitySettings) -> list[Notice]:
    """Steps across the half width of the strongest line."""
    left, right = _strongest_line(pattern)
    across = right - left - 1
    if across < settings.min_points_per_fwhm:
        text = f"The strongest line has {across} points across its half width; at least 5 are needed for its shape."
        return [Notice("step_coarse", text)]
    if across > settings.max_points_per_fwhm:
        text = f"The strongest line has {across} points across its half width: the steps are finer than needed."
        return [Notice("step_fine", text)]
    return []


def _scatter(pattern: Pattern, settings: QualitySettings) -> list[Notice]:
    """Scatter of neighbouring points against the stated uncertainties, away from the lines.

    The third difference of a slowly varying curve is noise: its variance is 20 sigma^2.
    """
    z = np.diff(pattern.y, 3) / np.sqrt(
        pattern.sigma[:-3] ** 2
        + 9.0 * pattern.sigma[1:-2] ** 2
        + 9.0 * pattern.sigma[2:-1] ** 2
        + pattern.sigma[3:] ** 2
    )
    low = pattern.y[1:-2] <= np.quantile(pattern.y, 0.5)
    ratio = float(np.median(np.abs(z[low]))) / 0.6745 if np.any(low) else 1.0
    if ratio < settings.smooth_ratio:
        text = f"Neighbouring points scatter {ratio:.2f} times as much as their uncertainties: smoothed, or no counts."
        return [Notice("sigma_too_large", text)]
    if ratio > settings.rough_ratio:
        text = f"Neighbouring points scatter {ratio:.2f} times as much as their uncertainties: these are too small."
        return [Notice("sigma_too_small", text)]
    return []
