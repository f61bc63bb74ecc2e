"""How does a person or an agent take part? Ask what a planner would do, have an action checked, take one step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from autoxrd.agent.answers import Coded, Gated, Proposed, Stepped
from autoxrd.agent.asking import find_state
from autoxrd.agent.controller import Controller, rejudge
from autoxrd.agent.job import Job
from autoxrd.agent.planning import onward
from autoxrd.agent.run import require_same_engine
from autoxrd.agent.viewing import check_action, graph_view, job_context
from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.engines.registry import get_engine
from autoxrd.errors import NotFound, PlannerError, PolicyError, StorageError, UserInputError
from autoxrd.gates.acceptance import reject
from autoxrd.planners.dictated import Author, Dictated
from autoxrd.planners.protocol import Finish, Forfeit
from autoxrd.planners.registry import get_planner
from autoxrd.store.graph import Graph
from autoxrd.store.reading import GraphReader
from autoxrd.store.records import Attempt

__all__ = ["MOST_ACTION_BYTES", "gate_action", "gate_attempt", "propose", "read_action", "take_step"]

MOST_ACTION_BYTES = 100_000
"""An action that names two hundred parameters with bounds has some 30 kB."""


def read_action(text: str | bytes, graph: GraphReader) -> Action:
    """Read an action from its JSON.

    ``parent`` and the evidence's ``source`` may be ``root``, ``current`` or the first digits of an id.

    Raises:
        UserInputError: ``action_invalid``, with the first fault and where it stands.
        NotFound: ``state_unknown``.
    """
    if len(text) > MOST_ACTION_BYTES:
        raise UserInputError("action_invalid", f"The action is longer than {MOST_ACTION_BYTES} characters.")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserInputError("action_invalid", f"The action is not JSON: {error}.") from error
    if isinstance(data, dict) and isinstance(data.get("action"), dict):
        data = data["action"]  # as 'autoxrd propose --json' prints it
    if not isinstance(data, dict):
        raise UserInputError("action_invalid", "The action is not a JSON object; 'autoxrd propose --json' prints one.")
    try:
        return Action.model_validate(_with_ids(data, graph))
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in fault["loc"]) or "action"
        text = f"The action is not in form: {place}: {fault['msg']}. 'autoxrd propose --json' prints one that is."
        raise UserInputError("action_invalid", text) from error


def _with_ids(data: Mapping[str, Any], graph: GraphReader) -> dict[str, Any]:
    """Put full ids where states are named in short; a claim without a source speaks of the parent."""
    found = dict(data)
    if isinstance(found.get("parent"), str):
        found["parent"] = find_state(graph, found["parent"])
    claims = found.get("evidence")
    if isinstance(claims, list):
        found["evidence"] = [_with_source(claim, found.get("parent"), graph) for claim in claims]
    return found


def _with_source(claim: object, parent: object, graph: GraphReader) -> object:
    if not isinstance(claim, dict):
        return claim
    source = claim.get("source", parent)
    return {**claim, "source": find_state(graph, source) if isinstance(source, str) else source}


def propose(directory: Path, planner: str = "rules") -> Proposed:
    """Return what a planner would do next; nothing is run or recorded.

    Raises:
        NotFound: ``job_not_found``, ``root_missing``, ``planner_unknown``.
    """
    with Graph.open(directory, read_only=True) as graph:
        find_state(graph, "root")
        job = Job.from_record(graph.job, graph.artifacts)
        view = graph_view(graph)
    answer = onward(get_planner(planner), job).propose(view, job_context(job))
    if isinstance(answer, Finish):
        notes = tuple(Coded(code=code, text=text) for code, text in answer.notes)
        return Proposed(planner=planner, state=answer.state, finish=answer.reason, notes=notes)
    if isinstance(answer, Forfeit):
        raise PlannerError(answer.code, answer.text)
    return Proposed(planner=planner, state=answer.action.parent, action=answer.action)


def gate_action(directory: Path, text: str | bytes) -> Gated:
    """Say whether an action may be tried, with every reason against it; nothing is run or recorded.

    Raises:
        UserInputError: ``action_invalid``.
        NotFound: ``job_not_found``, ``state_unknown``.
        PolicyError: ``parent_rejected``.
    """
    with Graph.open(directory, read_only=True) as graph:
        action = read_action(text, graph)
        _require_open_parent(graph, action)
        job = Job.from_record(graph.job, graph.artifacts)
        view = graph_view(graph)
    checks = check_action(action, view, job.policy)
    legal = all(check.passed for check in checks)
    reasons = {} if legal else reject(action, policy=job.policy, preflight=checks).details
    return Gated(legal=legal, reasons=reasons, checks=checks, policy=job.policy.name)


def _require_open_parent(graph: GraphReader, action: Action) -> None:
    if graph.node(action.parent).status.value == "rejected":
        text = f"State {action.parent} was rejected: an action starts from the root or an accepted state."
        raise PolicyError("parent_rejected", text)


def gate_attempt(directory: Path, ordinal: int) -> Gated:
    """Judge a recorded attempt again by the rules of its job, from the recorded figures alone.

    Raises:
        NotFound: ``attempt_unknown``.
    """
    with Graph.open(directory, read_only=True) as graph:
        attempt = next((a for a in graph.attempts() if a.ordinal == ordinal), None)
        if attempt is None:
            raise NotFound("attempt_unknown", f"The job has no attempt {ordinal}: 'autoxrd graph' numbers them.")
        decision = _judged(attempt, graph)
    legal = all(check.passed for check in decision.checks if check.rule.startswith("preflight"))
    return Gated(
        legal=legal,
        accepted=decision.accepted,
        reasons=decision.details,
        checks=decision.checks,
        predictions=decision.predictions,
        policy=decision.policy_name,
    )


def _judged(attempt: Attempt, graph: GraphReader) -> Decision:
    """Return the decision made anew; where nothing came out there is nothing to measure, and the record stands."""
    if attempt.candidate is None:
        return attempt.decision
    parent, candidate = graph.state(attempt.parent), graph.state(attempt.candidate)
    return rejudge(attempt.action, parent, candidate, graph.job.policy)


def take_step(directory: Path, text: str | bytes, *, by: Author = "person", reopen: bool = False) -> Stepped:
    """Take one step: preflight, engine, measures, gate, record. What is rejected is recorded too.

    Args:
        directory: of the job.
        text: the action as JSON.
        by: who takes it, as the record will say.
        reopen: go on with a finished job.

    Raises:
        UserInputError: ``action_invalid``, ``budget_steps``, ``budget_wall``.
        NotFound: ``job_not_found``, ``state_unknown``.
        PolicyError: ``parent_rejected``.
        StorageError: ``job_finished``, ``job_locked``.
        EngineUnavailable: ``engine_version_differs``.
    """
    with Graph.open(directory) as graph:
        action = read_action(text, graph)
        _require_open_parent(graph, action)
        job = Job.from_record(graph.job, graph.artifacts)
        require_same_engine(job)
        if graph.finished() is not None:
            if not reopen:
                text = f"{directory} is finished; to go on with it all the same, give --reopen."
                raise StorageError("job_finished", text)
            graph.add_event("resumed", {"by": by})
        session = get_engine(job.engine).start()
        try:
            stopped = Controller(job, graph, session, Dictated(action, by)).step()
        finally:
            session.close()
        if stopped is not None:
            raise UserInputError(stopped.code, f"{stopped.text} Finish the job, or start one with a larger budget.")
        return _stepped(graph, by)


def _stepped(graph: Graph, by: str) -> Stepped:
    attempt = graph.attempts()[-1]
    after = graph.state(attempt.candidate).quality.rwp if attempt.candidate else None
    return Stepped(
        attempt=attempt.ordinal,
        by=by,
        accepted=attempt.accepted,
        reasons=attempt.decision.details,
        predictions=attempt.decision.predictions,
        parent=attempt.parent,
        candidate=attempt.candidate,
        rwp_before=graph.state(attempt.parent).quality.rwp,
        rwp_after=after,
        current=find_state(graph, "current"),
    )
