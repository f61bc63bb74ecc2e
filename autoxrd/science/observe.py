"""Measure everything about a fit, once: quality, features, violations, complexity, unexplained peaks, phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from autoxrd.domain.pattern import AxisKind
from autoxrd.domain.state import Feature, PhaseSummary, Quality
from autoxrd.science.alignment import Alignment, align
from autoxrd.science.apportion import apportion, r_bragg
from autoxrd.science.background import background_slow
from autoxrd.science.checks import check_all
from autoxrd.science.checks.amounts import intensity_shares
from autoxrd.science.complexity import complexity_of, estimated_parameters
from autoxrd.science.features import plain, unavailable
from autoxrd.science.frame import build_frame
from autoxrd.science.gains import gain_features
from autoxrd.science.halo import halo_features
from autoxrd.science.inputs import FitArrays, MeasureContext, Measures
from autoxrd.science.intensities import intensity_features, log_ratios
from autoxrd.science.lattice import lattice_features, without_structure
from autoxrd.science.missing import missing_peaks
from autoxrd.science.positions import position_features
from autoxrd.science.presence import presence_features
from autoxrd.science.spectral import spectral_notices
from autoxrd.science.statistics import FitStatistics, fit_statistics
from autoxrd.science.strangers import cell_changes, strongest_unexplained
from autoxrd.science.texture import texture_feature
from autoxrd.science.unexplained import find_unexplained
from autoxrd.science.visible import absent_phases, share_features
from autoxrd.science.widths import width_features

__all__ = ["measure", "phase_summaries", "quality_of"]

_STATISTICS = (
    "rwp",
    "rp",
    "rexp",
    "gof",
    "chi2",
    "rwp_no_background",
    "abs_residual",
    "lag1",
    "durbin_watson",
    "bias_low",
    "bias_high",
    "structured_fraction",
    "structured_fraction_counting",
)


def measure(result: FitArrays, context: MeasureContext) -> Measures:
    """Measure a fit.

    Args:
        result: arrays, reflections, parameters and covariance of any engine (``EngineResult``).
        context: instrument, initial structures, limits, thresholds.
    """
    names = [phase.name for phase in result.phases]
    statistics = fit_statistics(
        result.x,
        result.y_obs,
        result.sigma,
        result.y_calc,
        result.background,
        n_parameters=len(result.covariance_names) + estimated_parameters(result) + (context.matched or 0),
        settings=context.settings.statistics,
    )
    bragg, aligned = _bragg_and_aligned(result, context, statistics.gof)
    unexplained = find_unexplained(aligned.frame, context)
    features = {name: plain(float(getattr(statistics, name))) for name in _STATISTICS}
    features |= _bragg_features(bragg)
    features |= _range(result, context)
    features["unexplained_peak_ratio"] = unexplained.feature
    features["unexplained.strongest"] = strongest_unexplained(aligned.frame, unexplained)
    features |= cell_changes(result, context)
    unknown = sum(peak.area for peak in unexplained.peaks)
    features |= share_features(aligned.frame, aligned.measures, names, unknown, context.settings.shares)
    absent = absent_phases(features, context.settings.shares)
    features |= _local_features(result, aligned, context, tuple(i for i, name in enumerate(names) if name in absent))
    features |= gain_features(result, statistics)
    shares = intensity_shares(result).tolist()
    features["intensity.misfit"] = _intensity_misfit(bragg, shares)
    if context.matched is not None:
        bragg = dict.fromkeys(names)
        features = without_structure(features) | lattice_features(result, aligned.frame, context.settings.lattice)
    return Measures(
        quality=quality_of(statistics, bragg),
        features=dict(sorted(features.items())),
        violations=check_all(result, context),
        complexity=complexity_of(result, context.limits),
        unexplained_peaks=unexplained.peaks,
        phases=phase_summaries(result, bragg, shares),
        notices=_notices(result, statistics, context)
        + spectral_notices(aligned.frame, context.instrument, unexplained.peaks),
    )


def _range(result: FitArrays, context: MeasureContext) -> dict[str, Feature]:
    axes = {AxisKind.TWO_THETA: ("two_theta", "deg"), AxisKind.TOF: ("tof", "us")}
    if context.axis not in axes:
        return {}
    name, unit = axes[context.axis]
    ends = {"min": float(result.x[0]), "max": float(result.x[-1])}
    return {f"range.{name}_{end}": plain(value, unit=unit) for end, value in ends.items()}


def _bragg_and_aligned(
    result: FitArrays, context: MeasureContext, gof: float
) -> tuple[dict[str, float | None], Alignment]:
    """Return R_Bragg per phase and the aligned model; the memory of the model as calculated is free again."""
    frame = build_frame(result, context)
    names = [phase.name for phase in result.phases]
    bragg = dict(zip(names, r_bragg(frame, apportion(frame), len(names)), strict=True))
    return bragg, align(result, context, frame, gof)


def _local_features(
    result: FitArrays, aligned: Alignment, context: MeasureContext, absent: tuple[int, ...]
) -> dict[str, Feature]:
    """Features of reflections and of the curve between them, on the aligned model."""
    names = [phase.name for phase in result.phases]
    frame, measures, settings = aligned.frame, aligned.measures, context.settings
    features = position_features(aligned, context, names)
    features |= width_features(frame, measures, names)
    ratios = [log_ratios(measures, index, settings.intensities) for index in range(len(names))]
    features |= intensity_features(frame, measures, ratios, names, settings.intensities)
    for index, phase in enumerate(result.phases):
        features[f"intensity.texture.{phase.name}"] = texture_feature(
            frame, ratios[index], phase.structure, index, settings.intensities
        )
    features["background.slow"] = background_slow(frame, settings.background)
    terms = sum(p.name.removeprefix("background.").isdigit() for p in result.parameters)
    features |= halo_features(frame, terms, settings.halo, settings.background)
    features["missing_peak_ratio"] = missing_peaks(frame, measures, settings.unexplained, absent=absent)
    features |= presence_features(result, frame, measures, settings.unexplained)
    return features


def _bragg_features(bragg: dict[str, float | None]) -> dict[str, Feature]:
    return {
        f"r_bragg.{name}": unavailable("nothing observed") if value is None else plain(value)
        for name, value in bragg.items()
    }


def _intensity_misfit(bragg: dict[str, float | None], shares: Sequence[float]) -> Feature:
    """Return R_Bragg over all phases, each with its share of the calculated intensity."""
    known = [(share, value) for share, value in zip(shares, bragg.values(), strict=True) if value is not None]
    total = sum(share for share, _ in known)
    if not total > 0:
        return unavailable("nothing observed")
    return plain(sum(share * value for share, value in known) / total)


def quality_of(statistics: FitStatistics, bragg: dict[str, float | None]) -> Quality:
    """Return the figures of a fit's statistics, with R_Bragg by phase."""
    return Quality(
        rp=statistics.rp,
        rwp=statistics.rwp,
        rexp=statistics.rexp,
        gof=statistics.gof,
        chi2=statistics.chi2,
        rwp_no_background=statistics.rwp_no_background,
        n_points=statistics.n_points,
        n_parameters=statistics.n_parameters,
        abs_residual=statistics.abs_residual,
        r_bragg=bragg,
    )


def phase_summaries(
    result: FitArrays, bragg: Mapping[str, float | None], shares: Sequence[float | None]
) -> tuple[PhaseSummary, ...]:
    """Return the phases of a fit, with R_Bragg by name and the share of the calculated intensity in their order."""
    return tuple(
        PhaseSummary(
            name=phase.name,
            space_group=phase.space_group,
            weight_fraction=phase.weight_fraction,
            cell=dict(phase.cell),
            r_bragg=bragg[phase.name],
            intensity_share=share,
        )
        for phase, share in zip(result.phases, shares, strict=True)
    )


def _notices(result: FitArrays, statistics: FitStatistics, context: MeasureContext) -> tuple[tuple[str, str], ...]:
    found = []
    theirs = result.engine_r.get("rwp")
    if theirs is not None and np.isfinite(theirs) and statistics.rwp > 0:
        relative = theirs / statistics.rwp - 1.0
        if abs(relative) > context.settings.statistics.engine_rwp_tolerance:
            text = f"The engine states Rwp {100 * theirs:.3f} %, the arrays give {100 * statistics.rwp:.3f} %."
            found.append(("engine_rwp_differs", text))
    return tuple(found)
