"""What does whoever proposes see of a job? The graph as a view, and what preflight says of an action on it."""

from __future__ import annotations

from autoxrd.agent.fitting import NOT_EXECUTED
from autoxrd.agent.job import Job
from autoxrd.domain.action import Action, ActionKind
from autoxrd.domain.decision import GateCheck
from autoxrd.domain.state import FitState
from autoxrd.engines.registry import get_engine
from autoxrd.gates.histograms import histograms_of
from autoxrd.gates.matching import is_match
from autoxrd.gates.policy import Policy
from autoxrd.gates.preflight import known_parameters, preflight
from autoxrd.planners.protocol import AttemptView, GraphView, JobContext
from autoxrd.store.reading import GraphReader
from autoxrd.store.records import EventKind

__all__ = ["check_action", "graph_view", "job_context", "known_parameters"]

_EDITS = {ActionKind.ADD_PHASE: "add_phase", ActionKind.REMOVE_PHASE: "remove_phase"}
"""Kinds that need an edit of the model which not every engine makes."""


def job_context(job: Job) -> JobContext:
    """Return what a planner may know of a job beside its graph."""
    return JobContext(
        instrument=job.instrument,
        structures=job.phases,
        parameter_price=job.policy.utility.parameter,
        policy=job.policy,
        texts=job.texts,
        candidates=tuple(s.name for s in job.candidates),
        histograms={h.name: h.instrument for h in job.histograms} if job.others else {},
    )


def graph_view(graph: GraphReader) -> GraphView:
    """Return the recorded graph as a planner sees it; it must have a root."""
    root = graph.root()
    assert root is not None
    attempts = [AttemptView(a.ordinal, a.parent, a.action, a.decision, a.candidate) for a in graph.attempts()]
    lost = sum(event.kind is EventKind.FORFEIT for event in graph.events())
    return GraphView(root, {node.id: node.state for node in graph.states()}, attempts, lost)


def check_action(action: Action, view: GraphView, policy: Policy) -> tuple[GateCheck, ...]:
    """Return what preflight says of an action that starts from a state of the view."""
    parent = view.states[action.parent]
    checks = preflight(
        action,
        parent,
        action.parent,
        policy=policy,
        known_parameters=known_parameters(parent),
        rejected=[a.action for a in view.children(action.parent) if not a.accepted],
    )
    if action.kind in NOT_EXECUTED or not _engine_can(action, parent) or not _can_match(action, parent):
        text = f"no command of the engine {parent.engine} carries out {action.kind.value}"
        return (*checks, GateCheck(rule="preflight.kind", passed=False, codes=("kind_not_executed",), text=text))
    return checks


def _can_match(action: Action, parent: FitState) -> bool:
    """Tell whether a profile match is a step from a state: it leads from a structure back to it, of one histogram."""
    return action.kind is not ActionKind.PROFILE_MATCH or not (is_match(parent) or histograms_of(parent))


def _engine_can(action: Action, parent: FitState) -> bool:
    """Tell whether the engine of a state makes the edit that an action stands for."""
    edit = _EDITS.get(action.kind)
    return edit is None or edit in get_engine(parent.engine).capabilities().edits
