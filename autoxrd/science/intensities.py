"""Are the intensities right, and if not: scale, displacement parameters, or structure?

All from the logarithm of each peak's observed over calculated intensity (local fits, so free of background error).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Feature
from autoxrd.science.features import measured, unavailable
from autoxrd.science.frame import Frame
from autoxrd.science.noise import chi2_to_z
from autoxrd.science.reflections import PeakMeasures
from autoxrd.science.settings import IntensitySettings
from autoxrd.science.trend import robust_fit

__all__ = ["LogRatios", "intensity_features", "log_ratios"]

_UNIT = "angstrom^2"


@dataclass(frozen=True, slots=True)
class LogRatios:
    """ln(Iobs / Icalc) of the peaks of one phase that stand on their own, arrays of shape (n,).

    Args:
        peak: index of the peak.
        value: ln ratio.
        esd: with the local misfit.
        s2: (sin(theta) / lambda)^2 = 1 / (4 d^2), angstrom^-2.
    """

    peak: NDArray[np.int64]
    value: FloatArray
    esd: FloatArray
    s2: FloatArray


def log_ratios(measures: PeakMeasures, index: int, settings: IntensitySettings) -> LogRatios:
    """Return the ln ratios of a phase."""
    own = measures.seen & (measures.phase == index) & (measures.phase_share > settings.own_share)
    at = np.flatnonzero(own & (measures.ratio > 0) & (measures.d_angstrom > 0))
    # what no model of ours describes to better than this must not count as significant
    relative = np.hypot(measures.ratio_esd[at] / measures.ratio[at], settings.floor)
    return LogRatios(at, np.log(measures.ratio[at]), relative, 0.25 / np.square(measures.d_angstrom[at]))


def intensity_features(
    frame: Frame, measures: PeakMeasures, ratios: Sequence[LogRatios], names: Sequence[str], settings: IntensitySettings
) -> dict[str, Feature]:
    """Return ``intensity.scale.P``, ``intensity.angle_trend(.P)`` and ``intensity.scatter.P``."""
    features = {"intensity.angle_trend": _common_trend(ratios, settings)}
    for index, name in enumerate(names):
        features[f"intensity.scale.{name}"] = _scale(frame, measures, index, settings)
        trend, scatter = _trend(ratios[index], settings)
        features[f"intensity.angle_trend.{name}"] = trend
        features[f"intensity.scatter.{name}"] = scatter
    return features


def _scale(frame: Frame, measures: PeakMeasures, index: int, settings: IntensitySettings) -> Feature:
    """Ln of summed observed over summed calculated intensity of a phase's own peaks."""
    own = measures.pure & (measures.phase == index) & (measures.phase_share > settings.own_share)
    n = int(own.sum())
    if n == 0:
        return unavailable("no peak of this phase alone", n_used=0)
    area = frame.peaks.area[own]
    ratio = float(np.sum(area * measures.ratio[own]) / np.sum(area))
    esd = float(np.sqrt(np.sum(np.square(area * measures.ratio_esd[own]))) / np.sum(area))
    if ratio <= settings.smallest_ratio:
        value = float(np.log(settings.smallest_ratio))
        return measured(value, 1.0, n_used=n, significance=0.0, reason="next to nothing is observed of this phase")
    return measured(float(np.log(ratio)), esd / ratio, n_used=n, reason="ln(observed / calculated)")


def _trend(ratios: LogRatios, settings: IntensitySettings) -> tuple[Feature, Feature]:
    """Slope against s^2 beside a free scale, and what scatter that leaves."""
    n = int(ratios.value.size)
    if n < settings.min_peaks:
        few = unavailable(f"{n} peaks of this phase alone", n_used=n)
        return few.model_copy(update={"unit": _UNIT}), few
    columns = np.array((np.ones(n), ratios.s2)).T
    fit = robust_fit(columns, ratios.value, ratios.esd)
    slope, esd = float(fit.coefficient[1]), float(np.sqrt(fit.covariance[1, 1]))
    left = (ratios.value - columns @ fit.coefficient) / ratios.esd
    dof = n - 2
    chi2 = float(np.dot(left, left))
    scatter = measured(
        chi2 / dof,
        float(np.sqrt(2.0 / dof)),
        n_used=n,
        significance=max(chi2_to_z(chi2, dof), 0.0),
        reason="reduced chi2 of ln(Iobs/Icalc) after scale and trend",
    )
    return measured(slope, esd, n_used=n, unit=_UNIT, reason="-2 times the error of B"), scatter


def _common_trend(ratios: Sequence[LogRatios], settings: IntensitySettings) -> Feature:
    """One slope for all phases, each with its own scale."""
    used = [r for r in ratios if r.value.size >= 2]
    n = sum(int(r.value.size) for r in used)
    if n < settings.min_peaks + len(used) - 1 or not used:
        return unavailable(f"{n} peaks that belong to one phase", unit=_UNIT, n_used=n)
    columns = np.zeros((n, len(used) + 1))
    row = 0
    for index, r in enumerate(used):
        columns[row : row + r.value.size, index] = 1.0
        columns[row : row + r.value.size, -1] = r.s2
        row += r.value.size
    fit = robust_fit(columns, np.concatenate([r.value for r in used]), np.concatenate([r.esd for r in used]))
    return measured(float(fit.coefficient[-1]), float(np.sqrt(fit.covariance[-1, -1])), n_used=n, unit=_UNIT)
