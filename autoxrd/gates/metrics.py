"""What does the record of a state say about a named metric? One look-up for evidence, predictions and rules."""

from __future__ import annotations

import math
from dataclasses import dataclass

from autoxrd.domain.naming import HISTOGRAM, split_name
from autoxrd.domain.state import FitState

__all__ = [
    "BELOW_NOISE",
    "GAIN_PREFIX",
    "QUALITY",
    "Reading",
    "background_terms",
    "hard_violations",
    "is_non_negative",
    "is_timed",
    "read_metric",
]

BELOW_NOISE = "below_noise"
"""Reason of a feature that is absent because nothing of it rises above the noise: it counts as zero."""

GAIN_PREFIX = "release_gain."

QUALITY = ("rp", "rwp", "rexp", "gof", "chi2", "rwp_no_background", "abs_residual")
_NON_NEGATIVE = frozenset(
    {*QUALITY, "max_correlation", "violations", "n_violations", "n_free", "max_shift_over_esd", "condition_number"}
    | {"unexplained_peak_ratio", "missing_peak_ratio", "structured_fraction", "structured_fraction_counting"}
    | {"position.rms", "background.slow"}
)
_NON_NEGATIVE_PREFIXES = ("r_bragg.", GAIN_PREFIX, "intensity.texture.", "intensity.scatter.", "position.scatter.")


def is_timed(state: FitState) -> bool:
    """Return whether a state's pattern is over the time of flight."""
    return "range.tof_min" in state.features


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric as recorded.

    Args:
        known: the state has a record of it, with or without a value.
        value: finite value, None where it cannot be told.
        below_noise: it cannot be told because nothing of it rises above the noise.
        reason: why there is no value.
    """

    known: bool
    value: float | None = None
    below_noise: bool = False
    reason: str = ""

    @property
    def level(self) -> float | None:
        """The value for measuring a change: zero where it is below the noise."""
        return 0.0 if self.below_noise else self.value


def is_non_negative(name: str) -> bool:
    """Return whether the metric cannot be negative by its definition."""
    name = split_name(name)[1]
    return name in _NON_NEGATIVE or name.startswith(_NON_NEGATIVE_PREFIXES)


def hard_violations(state: FitState) -> int:
    """Return the number of hard violations of a state."""
    return sum(1 for violation in state.violations if violation.severity == "hard")


def background_terms(state: FitState, histogram: str = "") -> int:
    """Return the number of background coefficients of a state, of one of its histograms where there are several."""
    head = f"{HISTOGRAM}{histogram}.background." if histogram else "background."
    return sum(1 for parameter in state.parameters if parameter.name.removeprefix(head).isdigit())


def read_metric(state: FitState, name: str) -> Reading:
    """Look a metric up: a residual feature, a quality field, or a figure of complexity or convergence.

    ``max_correlation`` is 0 where fewer than two parameters are free: there is no pair. ``violations``
    (also ``n_violations``) counts hard and soft ones.
    """
    feature = state.features.get(name)
    if feature is not None:
        if feature.available and feature.value is not None and math.isfinite(feature.value):
            return Reading(known=True, value=feature.value)
        reason = feature.reason or "no value recorded"
        below = feature.value is None and feature.reason.strip().lower().startswith(BELOW_NOISE)
        return Reading(known=True, below_noise=below, reason=reason)
    if name in QUALITY:
        return _number(float(getattr(state.quality, name)))
    if name.startswith("r_bragg."):
        phase = name.removeprefix("r_bragg.")
        return _number(state.quality.r_bragg[phase]) if phase in state.quality.r_bragg else Reading(known=False)
    return _figure(state, name)


def _figure(state: FitState, name: str) -> Reading:
    complexity = state.complexity
    if name == "max_correlation":
        return _number(0.0 if complexity.n_free < 2 else complexity.max_correlation)
    if name in ("violations", "n_violations"):
        return _number(float(len(state.violations)))
    if name == "n_free":
        return _number(float(complexity.n_free))
    if name == "condition_number":
        return _number(complexity.condition_number)
    if name == "max_shift_over_esd":
        return _number(state.convergence.max_shift_over_esd)
    return Reading(known=False, reason="the state has no such metric")


def _number(value: float | None) -> Reading:
    if value is None or not math.isfinite(value):
        return Reading(known=True, reason="the state records no value")
    return Reading(known=True, value=value)
