"""When is an earlier step to blame for a refusal, so that what was refused is better asked before it?

Widths that are free although the data hardly tell them apart do no harm by themselves; beside one more parameter their
correlation passes the gate's limit or the fit does not settle, and each later step is refused for their sake. Whoever
refines by hand goes back to where they were held, and takes the more promising step first (McCusker et al. 1999,
doi:10.1107/S0021889898009856, section 6).
"""

from __future__ import annotations

import re

from autoxrd.domain.state import FitState
from autoxrd.planners.protocol import AttemptView, GraphView
from autoxrd.planners.rules.memory import released_by

__all__ = ["standing", "step_back"]

_WIDTH = re.compile(r"profile\.[A-Za-z0-9-]+|phase\.[^.]+\.(size|strain)(_gauss)?")
_FAULTS = frozenset({"correlation_too_high", "not_converged"})
_BETTER = 0.9
"""A refused candidate whose Rwp is below this share of what it started from is worth going back for."""


def step_back(tip: str, view: GraphView) -> tuple[AttemptView, str] | None:
    """Return a step that was refused at a state for widths freed before it, and the state before these were freed.

    Only where its candidate fitted far better, and only once from each state.

    Args:
        tip: the state that stands.
        view: the graph.
    """
    state, path = view.states[tip], view.path(tip)
    for refused in view.children(tip):
        pair = _at_fault(refused, state, view)
        freed = [step for step in path if pair & _new(step, view)]
        if not freed:
            continue
        before, wanted = freed[-1].parent, released_by(refused.action)
        if before != tip and all(released_by(a.action) != wanted for a in view.children(before)):
            return refused, before
    return None


def standing(view: GraphView) -> str:
    """Return the state to go on from: the last accepted one, unless it came of a step back that fits worse."""
    best = view.root
    for number, attempt in enumerate(view.attempts):
        if not attempt.accepted or attempt.candidate is None:
            continue
        here = [a for a in view.attempts[:number] if a.parent == best and not a.accepted]
        back = attempt.parent != best and any(released_by(a.action) == released_by(attempt.action) for a in here)
        if not back or view.states[attempt.candidate].quality.rwp < view.states[best].quality.rwp:
            best = attempt.candidate
    return best


def _at_fault(attempt: AttemptView, state: FitState, view: GraphView) -> set[str]:
    """Return the widths, free before it, whose correlation spoiled a step that would have helped much."""
    if attempt.accepted or attempt.candidate is None or not _FAULTS & set(attempt.decision.reasons):
        return set()
    candidate = view.states[attempt.candidate]
    pair = set(candidate.complexity.max_correlation_pair or ())
    free = {p.name for p in state.parameters if p.released}
    better = candidate.quality.rwp < _BETTER * state.quality.rwp
    return pair if better and pair <= free and all(map(_WIDTH.fullmatch, pair)) else set()


def _new(step: AttemptView, view: GraphView) -> set[str]:
    """Return the parameters that a step freed."""
    before = {p.name for p in view.states[step.parent].parameters if p.released}
    return {p.name for p in view.states[str(step.candidate)].parameters if p.released} - before
