"""Several histograms of one sample: which are there, and how does one of them see a state?

A state of several histograms has full names: ``histogram.H.position.zero`` is a feature of one of them,
``histogram.H.instrument.zero`` a parameter; what is the sample's (cells, atoms) and what holds of the whole fit has its
bare name. Rules that are about one pattern are asked of each as it sees the state: with its own names bared.
"""

from __future__ import annotations

from collections.abc import Iterable

from autoxrd.domain.naming import HISTOGRAM, full_name, split_name
from autoxrd.domain.state import Feature, FitState
from autoxrd.gates.metrics import GAIN_PREFIX, QUALITY

__all__ = ["as_seen_by", "bare_metric", "bare_selectors", "full_metric", "histograms_of"]

_MARK = ".rwp"


def histograms_of(state: FitState) -> tuple[str, ...]:
    """Return the names of a state's histograms in order; nothing where there is only one."""
    found = (split_name(name)[0] for name in state.features if name.startswith(HISTOGRAM) and name.endswith(_MARK))
    return tuple(dict.fromkeys(found))


def bare_metric(metric: str) -> tuple[str, str]:
    """Return the histogram that a metric is about and its name there; no histogram for one of the whole."""
    gain = metric.startswith(GAIN_PREFIX)
    histogram, name = split_name(metric.removeprefix(GAIN_PREFIX) if gain else metric)
    return histogram, GAIN_PREFIX + name if gain else name


def full_metric(histogram: str, metric: str, state: FitState) -> str:
    """Return the name in the record of a metric as a histogram sees it: the whole's where the whole has one."""
    if metric.startswith(GAIN_PREFIX):
        return GAIN_PREFIX + full_name(histogram, metric.removeprefix(GAIN_PREFIX))
    own = f"{HISTOGRAM}{histogram}.{metric}"
    whole = metric in QUALITY or metric in state.features
    return metric if whole or own not in state.features else own


def bare_selectors(histogram: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return selectors as a histogram sees them: its own bared, those of others as they are."""
    return tuple(split_name(name)[1] if split_name(name)[0] == histogram else name for name in names)


def as_seen_by(histogram: str, state: FitState) -> FitState:
    """Return a state as one of its histograms sees it: its names bared, those of other histograms left out.

    Quality, complexity and convergence stay those of the whole: there is one fit.
    """

    def mine(name: str) -> bool:
        return split_name(name)[0] in ("", histogram)

    features: dict[str, Feature] = {}
    for name, feature in state.features.items():
        owner, bared = bare_metric(name)
        if owner == histogram:
            features.setdefault(bared, feature)
        elif not owner:
            features[name] = feature
    parameters = tuple(
        p if p.name == (bared := split_name(p.name)[1]) else p.model_copy(update={"name": bared})
        for p in state.parameters
        if mine(p.name)
    )
    violations = tuple(
        v.model_copy(update={"subject": split_name(v.subject)[1]}) for v in state.violations if mine(v.subject)
    )
    pair = state.complexity.max_correlation_pair
    complexity = state.complexity
    if pair is not None:
        one, other = bare_selectors(histogram, pair)
        complexity = complexity.model_copy(update={"max_correlation_pair": (one, other)})
    return state.model_copy(
        update={
            "features": features,
            "parameters": parameters,
            "violations": violations,
            "unexplained_peaks": tuple(p for p in state.unexplained_peaks if p.histogram == histogram),
            "complexity": complexity,
            "released": bare_selectors(histogram, (name for name in state.released if mine(name))),
        }
    )
