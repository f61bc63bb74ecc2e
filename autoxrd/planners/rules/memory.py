"""What did earlier rejections teach? Nothing is proposed twice from one state, and faults narrow the next try."""

from __future__ import annotations

from autoxrd.domain.action import Action
from autoxrd.domain.state import FitState
from autoxrd.gates.metrics import GAIN_PREFIX
from autoxrd.gates.tables import MORE_BACKGROUND
from autoxrd.planners.protocol import AttemptView, GraphView
from autoxrd.planners.rules.catalogue import HALO
from autoxrd.planners.rules.options import APART_UISO, DIRECTED, Option, bare, matches
from autoxrd.planners.rules.thresholds import Thresholds

__all__ = ["faulty_selectors", "lessons", "narrowed", "refused", "released_by"]


def released_by(action: Action) -> frozenset[str]:
    """Return what an action released, by the names of the gains: background terms, directed strain, atoms parted."""
    if action.settings.get("model") == DIRECTED.removeprefix("@"):
        return frozenset(name + DIRECTED for name in action.parameters)
    if "apart" in action.settings:
        return frozenset(name + APART_UISO for name in action.parameters)
    if "position_deg" in action.settings:
        return frozenset({HALO})
    return frozenset(action.parameters) if action.parameters else frozenset({MORE_BACKGROUND})


def faulty_selectors(attempt: AttemptView, view: GraphView) -> frozenset[str]:
    """Return the released selectors that a rejected candidate's new violations or correlations point at."""
    if attempt.candidate is None:
        return frozenset()
    candidate, parent = view.states[attempt.candidate], view.states[attempt.parent]
    known = {v.key for v in parent.violations}
    subjects = [v.subject for v in candidate.violations if v.key not in known]
    if "correlation_too_high" in attempt.decision.reasons:
        subjects += _newest_of_pair(candidate, parent, attempt)
    names = released_by(attempt.action)
    return frozenset(s for s in names if any(_concerns(bare(s), name) for name in subjects))


def _newest_of_pair(candidate: FitState, parent: FitState, attempt: AttemptView) -> list[str]:
    """Return which of the pair that correlates most the action freed; of two that it freed the less promising one."""
    pair = candidate.complexity.max_correlation_pair or ()
    freed = [name for name in pair if any(_concerns(s, name) for s in attempt.action.parameters)]
    return freed if len(freed) < 2 else [min(freed, key=lambda name: (_promise(name, parent), name))]


def _promise(name: str, state: FitState) -> float:
    feature = state.features.get(name if name == HALO else GAIN_PREFIX + name)
    return feature.value if feature is not None and feature.available and feature.value else 0.0


def _concerns(selector: str, subject: str) -> bool:
    """Return whether a violation's subject (parameter, atom or selector) is about a released selector.

    ``phase.P.uiso`` stands for the displacement parameters of all atoms of P.
    """
    phase, _, quantity = selector.rpartition(".")
    if quantity == "uiso" and subject.startswith(f"{phase}.atom.") and subject.endswith(".uiso"):
        return True
    base = selector.removesuffix(".position").removesuffix(".*")
    return subject == selector or subject.startswith(base + ".") or (subject == base and base != "")


def refused(state: str, view: GraphView) -> list[AttemptView]:
    """Return the rejected attempts at this state or on the way to it, newest first."""
    line = {state, *(step.parent for step in view.path(state))}
    return [a for a in reversed(view.attempts) if not a.accepted and a.parent in line]


def lessons(option: Option, state: str, view: GraphView) -> list[AttemptView]:
    """Return those of the rejected attempts that released one of an option's parameters, newest first.

    What was refused beside other phases teaches nothing: a phase that is not there spoils every step.
    """
    here = {phase.name for phase in view.states[state].phases}
    alike = [a for a in refused(state, view) if {phase.name for phase in view.states[a.parent].phases} == here]
    placed = [a for a in alike if not _placed_since(option, view.states[a.parent], view.states[state])]
    return [a for a in placed if _teaches(released_by(a.action), option)]


def _placed_since(option: Option, before: FitState, now: FitState) -> bool:
    """Return whether an option is one scale, refused where the cell of its phase was still held."""
    if not option.rule.always or len(option.selectors) != 1:
        return False
    cell = option.selectors[0].replace(".scale", ".cell")
    return cell in now.released and cell not in before.released


def _teaches(tried: frozenset[str], option: Option) -> bool:
    """Return whether what was released with something refused tells of an option.

    Scales refused together say nothing of one by itself: it may have been another one's fault.
    """
    wanted = frozenset(option.selectors)
    if option.rule.always and len(wanted) == 1 and len(tried) > 1:
        return False
    return bool(tried & wanted)


def narrowed(option: Option, state: str, view: GraphView, thresholds: Thresholds) -> Option | None:
    """Return the option less what was found faulty; None where nothing new is left to try.

    A release that was rejected earlier on this path is tried again only when the state changed since and its gain
    has grown; from one and the same state never.
    """
    for attempt in lessons(option, state, view):
        if not option.selectors:
            return None
        tried = released_by(attempt.action)
        if option.rule.always and option.selectors and _grown(option, attempt, state, view, thresholds):
            # a scale that went to nothing while lines were out of place
            continue
        faulty = faulty_selectors(attempt, view)
        if faulty and faulty != tried:
            option = option.without(faulty)
        elif tried >= set(option.selectors) and not _grown(option, attempt, state, view, thresholds):
            return None
    if not option.selectors or (option.drop < thresholds.relative_drop and not option.rule.always):
        return None
    if any(released_by(a.action) == set(option.selectors) for a in view.children(state)):
        return None
    return option


def _grown(option: Option, attempt: AttemptView, state: str, view: GraphView, thresholds: Thresholds) -> bool:
    """Return whether a refused release may be tried anew: the state has changed, it was not refused too often.

    A scale that promises more than ever is asked once again: the better the rest, the more of what is left is its own.
    """
    if attempt.parent == state or not _waited(option, attempt, state, view):
        return False
    whole = [a for a in lessons(option, state, view) if released_by(a.action) >= set(option.selectors)]
    if len(whole) >= thresholds.retries:
        return option.rule.always and option.gains[0] > max(_gain_before(option, a, view) for a in whole)
    return option.gains[0] >= thresholds.retry_share * _gain_before(option, attempt, view)


def _gain_before(option: Option, attempt: AttemptView, view: GraphView) -> float:
    """Return what an option's first selector promised where it was refused, 0 where that is not on record."""
    return _promise(option.selectors[0], view.states[attempt.parent])


def _waited(option: Option, attempt: AttemptView, state: str, view: GraphView) -> bool:
    """Return whether one of what a refused release waits for has been freed since it was refused."""
    before = set(view.states[attempt.parent].released)
    since = [name for name in view.states[state].released if name not in before]
    waits = option.rule.waits_for
    return not waits or any(matches(name, glob) for name in since for glob in waits)
