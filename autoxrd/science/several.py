"""Measure a fit of several histograms: each by itself, and together what has a meaning together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from autoxrd.domain.naming import HISTOGRAM, full_name
from autoxrd.domain.state import Feature, Violation
from autoxrd.science.complexity import complexity_of, estimated_parameters
from autoxrd.science.features import plain
from autoxrd.science.gains import gain_features
from autoxrd.science.inputs import FitArrays, MeasureContext, Measures
from autoxrd.science.observe import measure, phase_summaries, quality_of
from autoxrd.science.statistics import fit_statistics

__all__ = ["measure_several"]

_TOGETHER = (
    "rwp",
    "rp",
    "rexp",
    "gof",
    "chi2",
    "rwp_no_background",
    "abs_residual",
    "structured_fraction",
    "structured_fraction_counting",
)
"""Sums over points: those of all histograms."""
_WORST = ("unexplained_peak_ratio", "unexplained.strongest", "missing_peak_ratio")
"""Shares of each histogram's own signal: the whole has the largest, so that none hides behind another."""
_WHOLE = ("fit", "weight_fractions")
"""Subjects of violations that are about the fit and no part of it."""


class _Several(FitArrays, Protocol):
    @property
    def histograms(self) -> Mapping[str, FitArrays]:
        """The part of each histogram."""


def measure_several(result: _Several, contexts: Mapping[str, MeasureContext]) -> Measures:
    """Measure a fit of several histograms.

    Args:
        result: the whole; ``histograms`` has the part of each under bare names.
        contexts: of each histogram.
    """
    parts = {name: measure(part, contexts[name]) for name, part in result.histograms.items()}
    first = next(iter(contexts.values()))
    statistics = fit_statistics(
        result.x,
        result.y_obs,
        result.sigma,
        result.y_calc,
        result.background,
        n_parameters=len(result.covariance_names) + estimated_parameters(result),
        settings=first.settings.statistics,
    )
    features = {name: plain(float(getattr(statistics, name))) for name in _TOGETHER}
    for histogram, part in parts.items():
        features |= {f"{HISTOGRAM}{histogram}.{name}": feature for name, feature in part.features.items()}
    features |= {name: _largest(name, parts) for name in _WORST}
    features |= {n: f for part in parts.values() for n, f in part.features.items() if n.startswith("cell_change.")}
    features |= gain_features(result, statistics)
    bragg = _r_bragg(parts)
    return Measures(
        quality=quality_of(statistics, bragg),
        features=dict(sorted(features.items())),
        violations=_violations(parts),
        complexity=complexity_of(result, first.limits),
        unexplained_peaks=tuple(
            peak.model_copy(update={"histogram": name})
            for name, part in parts.items()
            for peak in part.unexplained_peaks
        ),
        phases=phase_summaries(result, bragg, _shares(parts)),
        notices=tuple(
            (code, f"Histogram {name}: {text}") for name, part in parts.items() for code, text in part.notices
        ),
    )


def _largest(name: str, parts: Mapping[str, Measures]) -> Feature:
    """Return the largest value that a histogram has; what one cannot tell is said where none can."""
    found = [part.features[name] for part in parts.values()]
    known = [feature for feature in found if feature.available and feature.value is not None]
    return max(known, key=lambda feature: feature.value or 0.0) if known else found[0]


def _r_bragg(parts: Mapping[str, Measures]) -> dict[str, float | None]:
    """Return the largest R_Bragg of each phase over the histograms: intensities of two radiations have no sum."""
    found: dict[str, float | None] = {}
    for part in parts.values():
        for name, value in part.quality.r_bragg.items():
            before = found.get(name)
            found[name] = value if before is None else before if value is None else max(before, value)
    return found


def _violations(parts: Mapping[str, Measures]) -> tuple[Violation, ...]:
    """Return the violations of all: of a histogram's own under its name, of the sample once."""
    found: dict[tuple[str, str], Violation] = {}
    for histogram, part in parts.items():
        for violation in part.violations:
            subject = violation.subject
            if subject not in _WHOLE:
                subject = full_name(histogram, subject)
            named = violation.model_copy(update={"subject": subject})
            found.setdefault(named.key, named)
    return tuple(sorted(found.values(), key=lambda v: v.severity == "soft"))


def _shares(parts: Mapping[str, Measures]) -> list[float | None]:
    """Return the mean share of each phase in the calculated intensity over the histograms that tell one."""
    found: list[float | None] = []
    for phases in zip(*(part.phases for part in parts.values()), strict=True):
        known = [phase.intensity_share for phase in phases if phase.intensity_share is not None]
        found.append(sum(known) / len(known) if known else None)
    return found
