"""How does a person's idea become an action? Its evidence and predictions are filled in from the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autoxrd.agent.answers import Proposed
from autoxrd.agent.asking import find_state
from autoxrd.agent.viewing import known_parameters
from autoxrd.domain.action import Action, ActionKind, Stage
from autoxrd.domain.state import FitState
from autoxrd.errors import UserInputError
from autoxrd.gates.metrics import GAIN_PREFIX
from autoxrd.gates.policy import Policy
from autoxrd.gates.selectors import is_selector, resolve
from autoxrd.planners.rules.catalogue import CURRICULUM, Rule
from autoxrd.planners.rules.options import Option, matches
from autoxrd.planners.rules.thresholds import Thresholds
from autoxrd.planners.rules.writing import joint_action, write_action
from autoxrd.store.graph import Graph
from autoxrd.store.reading import GraphReader

__all__ = ["Idea", "draft", "draft_from", "ideas"]

_MOST_WHY = 300
_WHY = "Chosen by hand"


def draft(directory: Path, kind: str, selectors: Sequence[str], *, why: str = _WHY, state: str = "current") -> Proposed:
    """Write the action that frees some parameters, as a planner writes its own; nothing is run, judged or recorded.

    Args:
        directory: of the job.
        kind: of the action; ``joint`` takes no selectors.
        selectors: what it frees; each needs a release gain on record.
        why: for the rationale.
        state: where it starts.

    Raises:
        UserInputError: ``draft_impossible``, with what is missing.
        NotFound: ``job_not_found``, ``state_unknown``.
    """
    with Graph.open(directory, read_only=True) as graph:
        return draft_from(graph, kind, selectors, why=why, state=state)


def draft_from(
    graph: GraphReader, kind: str, selectors: Sequence[str], *, why: str = _WHY, state: str = "current"
) -> Proposed:
    """Write such an action for a job whose graph is open already; see `draft`."""
    state_id = find_state(graph, state)
    fit, policy = graph.state(state_id), Policy.model_validate(graph.job.policy)
    action = _action(_kind(kind), selectors, why[:_MOST_WHY], fit, state_id, policy)
    return Proposed(planner="draft", state=state_id, action=action)


@dataclass(frozen=True, slots=True)
class Idea:
    """Something that a person may free in a state.

    Args:
        drop: share of chi-squared that its release promises to take away.
        n_parameters: how many parameters that frees.
    """

    kind: ActionKind
    selector: str
    drop: float
    n_parameters: int


def ideas(fit: FitState) -> tuple[Idea, ...]:
    """Return what a state's record speaks for, the most promising first; each can be drafted."""
    found = []
    flight = any(p.name == "instrument.difC" for p in fit.parameters)
    for name, feature in fit.features.items():
        selector = name.removeprefix(GAIN_PREFIX)
        if selector == name or selector in fit.released or not is_selector(selector):
            continue
        known = (r for r in CURRICULUM if flight or not r.flight)
        rule = next((r for r in known if any(matches(selector, glob) for glob in r.gains)), None)
        if rule is not None and rule.kind is not ActionKind.BACKGROUND_MODEL and feature.available and feature.value:
            found.append(Idea(rule.kind, selector, feature.value, feature.n_used or 1))
    return tuple(sorted(found, key=lambda idea: -idea.drop))


def _kind(text: str) -> ActionKind:
    try:
        return ActionKind(text)
    except ValueError:
        known = ", ".join(kind.value for kind in ActionKind)
        raise UserInputError("draft_impossible", f"There is no kind {text[:40]!r}; there are {known}.") from None


def _action(
    kind: ActionKind, selectors: Sequence[str], why: str, fit: FitState, state_id: str, policy: Policy
) -> Action:
    if kind is ActionKind.JOINT:
        if not fit.released:
            raise UserInputError("draft_impossible", "Nothing is free in this state: a joint cycle needs something.")
        return joint_action(fit, state_id, fit.released)
    if not selectors:
        raise UserInputError("draft_impossible", f"Name what {kind.value} shall free, e.g. phase.P.cell.")
    names = tuple(dict.fromkeys(selectors))
    features = [fit.features.get(GAIN_PREFIX + name) for name in names]
    gains: list[float] = []
    count = 0
    for name, feature in zip(names, features, strict=True):
        if name in fit.released or feature is None or not feature.available or not feature.value:
            raise UserInputError("draft_impossible", _no_gain(name, fit))
        gains.append(feature.value)
        count += feature.n_used or 1
    option = Option(_rule(kind, why, _stage(kind, policy)), names, tuple(gains), count)
    return write_action(option, fit, state_id, Thresholds())


def _no_gain(name: str, fit: FitState) -> str:
    shown = name[:80]
    if name in fit.released:
        return f"{shown} is free already in this state."
    if is_selector(name) and resolve(name, known_parameters(fit)).names:
        return (
            f"No gain above zero is on record for releasing {shown}: nothing argues for it. 'autoxrd diagnose' lists "
            "the selectors with a gain; phase.P.cell, for one, stands for all of a cell."
        )
    return f"{shown} is no parameter of this state; 'autoxrd diagnose' lists what can be released."


def _stage(kind: ActionKind, policy: Policy) -> Stage:
    """Return the stage in which the rules planner uses a kind, else the first that the policy allows."""
    allowed = [stage for stage in Stage if kind in policy.stages.get(stage, ())]
    if not allowed:
        raise UserInputError("draft_impossible", f"The policy allows {kind.value} in no stage.")
    usual = next((rule.stage for rule in CURRICULUM if rule.kind is kind and rule.stage in allowed), None)
    return usual or (Stage.INSTRUMENT if Stage.INSTRUMENT in allowed else allowed[0])


def _rule(kind: ActionKind, why: str, stage: Stage) -> Rule:
    usual = next((rule for rule in CURRICULUM if rule.kind is kind), None)
    features = usual.features if usual else ()
    return Rule("draft", "draft", kind, stage, (), why.strip().rstrip(".") or _WHY, "by hand", features=features)
