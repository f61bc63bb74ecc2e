"""Which of two models moves the lines? The data decide, in two branches.

In Bragg-Brentano geometry a zero offset and a specimen displacement are rivals; elsewhere a zero offset and the axial
divergence, where the two and the cell cannot be had together. Each branch frees one of the two, then the cell and the
profile: only with these free do the two laws differ by what the data can show (a wrong cell or an asymmetric profile
mimics either). The branch with the better information criterion goes on. That the two cells differ is part of the
uncertainty, and is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from autoxrd.domain.action import ActionKind
from autoxrd.domain.instrument import Geometry
from autoxrd.domain.state import FitState
from autoxrd.planners.protocol import AttemptView, GraphView
from autoxrd.planners.rules.catalogue import Thresholds

__all__ = ["Fork", "find_fork", "last_on_branch", "models_of", "position_model", "ranking", "rival_note"]

_NAMES = {
    "instrument.zero": "zero offset",
    "sample.displacement": "specimen displacement",
    "profile.SH/L": "axial divergence",
}


def models_of(geometry: Geometry) -> tuple[str, str]:
    """Return the selectors of the two rival models."""
    if geometry is Geometry.BRAGG_BRENTANO:
        return ("instrument.zero", "sample.displacement")
    return ("instrument.zero", "profile.SH/L")


@dataclass(frozen=True, slots=True)
class Fork:
    """A state from which both position models were or may be tried.

    Args:
        state: where the branches start.
        tips: position model (selector) -> last accepted state of its branch.
    """

    state: str
    tips: Mapping[str, str]


def position_model(attempt: AttemptView, models: tuple[str, str]) -> str | None:
    """Return the rival model that an attempt frees, if it does."""
    found = [name for name in attempt.action.parameters if name in models]
    return found[0] if found and attempt.action.kind is not ActionKind.JOINT else None


def find_fork(view: GraphView, models: tuple[str, str]) -> Fork | None:
    """Return the fork of a graph: the parent of the first accepted position step, with the branches from it."""
    first = next((a for a in view.attempts if a.accepted and position_model(a, models)), None)
    if first is None:
        return None
    tips: dict[str, str] = {}
    for attempt in view.children(first.parent):
        model = position_model(attempt, models)
        if model and attempt.accepted and attempt.candidate:
            tips[model] = last_on_branch(attempt.candidate, view)
    return Fork(first.parent, tips)


def last_on_branch(state: str, view: GraphView) -> str:
    """Return the state that accepted steps lead to from a state; the latest where they divide."""
    while True:
        onward = [a.candidate for a in view.children(state) if a.accepted and a.candidate]
        if not onward:
            return state
        state = onward[-1]


def ranking(fork: Fork, view: GraphView, thresholds: Thresholds) -> list[tuple[float, str]]:
    """Return (criterion relative to the best, model), best first.

    BIC with serially correlated residuals: chi^2 in units of the best model's reduced chi^2, and the number of
    points both divided by the square of the esd inflation.
    """
    states = {model: view.states[tip] for model, tip in fork.tips.items()}
    scale = min(_reduced(state) for state in states.values())
    dilution = thresholds.serial_inflation**2
    scores = {
        model: state.quality.chi2 / scale / dilution
        + state.quality.n_parameters * math.log(max(state.quality.n_points / dilution, 2.0))
        for model, state in states.items()
    }
    best = min(scores.values())
    return sorted((score - best, model) for model, score in scores.items())


def _reduced(state: FitState) -> float:
    return max(state.quality.gof**2, 1e-12)


def rival_note(fork: Fork, view: GraphView, thresholds: Thresholds) -> tuple[str, str] | None:
    """Tell how far the two position models are apart, and what they do to the cell."""
    if len(fork.tips) < 2:
        return None
    (_, best), (behind, other) = ranking(fork, view, thresholds)[:2]
    first, second = view.states[fork.tips[best]], view.states[fork.tips[other]]
    cells = [
        f"{mine.name} a = {mine.cell['a'].value:.5f} against {theirs.cell['a'].value:.5f} angstrom"
        for mine, theirs in zip(first.phases, second.phases, strict=True)
    ]
    text = (
        f"{_NAMES[best]} (Rwp {100 * first.quality.rwp:.2f} %) and {_NAMES[other]}"
        f" (Rwp {100 * second.quality.rwp:.2f} %) were both tried with cell and profile free; {_NAMES[best]} was kept"
        f" (difference of the information criterion {behind:.1f}). Under the two models: {'; '.join(cells)}."
    )
    if behind < thresholds.rival_evidence:
        text += " The data hardly tell them apart: take the difference as uncertainty."
        return ("position_model_ambiguous", text)
    return ("position_model", text)
