"""The loop: observe, plan, preflight, execute, measure, gate, record; one bounded step at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from autoxrd.agent.candidates import Candidates
from autoxrd.agent.codec import encode_result, encode_structures
from autoxrd.agent.estimating import seen_in
from autoxrd.agent.events import Listener, Prepared, StepDone, StepLost, StepStarted, nobody
from autoxrd.agent.fitting import command_for, measure_state, prepared, reachable_rwp
from autoxrd.agent.foresight import Foresight
from autoxrd.agent.job import Job
from autoxrd.agent.starting import root_command
from autoxrd.agent.viewing import check_action, graph_view, job_context, known_parameters
from autoxrd.domain.action import Action, ActionKind, Stage
from autoxrd.domain.decision import Decision, GateCheck
from autoxrd.domain.state import Feature, FitState
from autoxrd.engines.protocol import EngineResult, EngineSession, Snapshot
from autoxrd.errors import EngineError
from autoxrd.gates.acceptance import judge, reject
from autoxrd.gates.preflight import preflight
from autoxrd.planners.protocol import AttemptView, Finish, Forfeit, GraphView, Planner, Proposal
from autoxrd.store.rows import recorded_form
from autoxrd.store.writing import GraphWriter

__all__ = ["Controller", "Stopped", "rejudge"]


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why the loop ended.

    Args:
        state: the state that stands for the result.
        code: ``planner_finished``, ``budget_steps`` or ``budget_wall``.
        text: one sentence.
        notes: (code, text) of the planner.
        warnings: (code, text) that the planner adds to the audit's.
        objections: (code, text) for which an accepted result becomes an abstention.
    """

    state: str
    code: str
    text: str
    notes: tuple[tuple[str, str], ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    objections: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What one attempt gave."""

    decision: Decision
    candidate: FitState | None = None
    error: Mapping[str, object] | None = None
    engine_seconds: float = 0.0


class Controller:
    """Drives one job on one graph.

    The controller keeps nothing that the graph does not hold: a new one on the same graph goes on where the last
    ended.

    Args:
        job: what to do.
        graph: open for writing.
        session: a live engine.
        planner: who proposes.
        listener: is told of each step.
        elapsed: wall time used so far, s; by default since this controller was made.
    """

    def __init__(
        self,
        job: Job,
        graph: GraphWriter,
        session: EngineSession,
        planner: Planner,
        listener: Listener = nobody,
        *,
        elapsed: Callable[[], float] | None = None,
    ) -> None:
        self._job = job
        self._graph = graph
        self._session = session
        self._planner = planner
        self._tell = listener
        self._context = job_context(job)
        self._foresight = Foresight(job, self._context, graph.artifacts, session, planner)
        self._candidates: Candidates | None = None
        self._view: GraphView | None = None
        started = time.monotonic()
        self._elapsed = elapsed or (lambda: time.monotonic() - started)

    def run(self) -> Stopped:
        """Take steps until the planner ends or the budget does."""
        self.prepare()
        while True:
            stopped = self.step()
            if stopped is not None:
                return stopped

    def prepare(self) -> str:
        """Make the root state unless the graph has one; return its id."""
        root = self._graph.root()
        if root is not None:
            return root
        began, before = time.monotonic(), self._session.engine_seconds
        snapshot, command = prepared(self._session, self._job), root_command(self._job.start, self._job.mode)
        self._foresight.started(snapshot, command)
        snapshot, result = self._session.execute(snapshot, command)
        state = self._state(snapshot, result, stage=Stage.QC, parent=None)
        telemetry = {"seconds": time.monotonic() - began, "engine_seconds": self._session.engine_seconds - before}
        state_id = self._graph.add_root(state, telemetry)
        self._tell(Prepared(state_id, state))
        return state_id

    def step(self) -> Stopped | None:
        """Take one step: one proposal, at most one engine command, one record. None while the job goes on."""
        wanted = self.proposed()
        if isinstance(wanted, Proposal):
            self.take(wanted, self._planner)
            return None
        return wanted

    def proposed(self) -> Proposal | Stopped | None:
        """Return what the planner would do next, the end of the job, or None where the step was lost."""
        over = self.over_budget()
        if over is not None:
            return over
        view = self._current_view()
        proposal = self._planner.propose(view, self._context)
        if isinstance(proposal, Finish):
            end = proposal
            return Stopped(end.state, "planner_finished", end.reason, end.notes, end.warnings, end.objections)
        if isinstance(proposal, Forfeit):
            self._forfeit(proposal, view)
            return None
        return proposal

    def decline(self, proposal: Proposal, author: Planner, *, code: str, text: str) -> None:
        """Record a proposal as rejected without trying it, for a reason that is not the gates'.

        Args:
            proposal: what was proposed.
            author: who rejects it.
            code: reason code.
            text: one sentence.
        """
        view = self._current_view()
        checks = check_action(proposal.action, view, self._job.policy)
        decision = reject(proposal.action, policy=self._job.policy, preflight=checks, reason=code, text=text)
        self._record(proposal, author, _Outcome(decision), view, began=time.monotonic())

    def _forfeit(self, lost: Forfeit, view: GraphView) -> None:
        """Record a step that brought no action; it counts against the budget of steps."""
        self._graph.add_event("forfeit", {"code": lost.code, "text": lost.text})
        self._view = replace(view, forfeits=view.forfeits + 1)
        self._tell(StepLost(len(view.attempts) + view.forfeits + 1, lost.code, lost.text))

    def over_budget(self) -> Stopped | None:
        """Return the end of the job where its budget is spent."""
        view, budget = self._current_view(), self._job.budget
        if len(view.attempts) + view.forfeits >= budget.steps:
            return Stopped(view.current, "budget_steps", f"The budget of {budget.steps} steps is spent.")
        if self._elapsed() > budget.wall_seconds:
            return Stopped(view.current, "budget_wall", f"The budget of {budget.wall_seconds:.0f} s is spent.")
        return None

    def take(self, proposal: Proposal, author: Planner) -> None:
        """Try a proposal: preflight, engine, measures, gate, record.

        Args:
            proposal: what to try.
            author: whose it is, as the record will say.
        """
        view = self._current_view()
        began, action = time.monotonic(), proposal.action
        parent = view.states[action.parent]
        checks = check_action(action, view, self._job.policy)
        if all(check.passed for check in checks):
            self._tell(StepStarted(len(view.attempts) + 1, action, parent))
            outcome = self._execute(action, parent, checks)
        else:
            outcome = _Outcome(reject(action, policy=self._job.policy, preflight=checks))
        self._record(proposal, author, outcome, view, began=began)

    def _record(self, proposal: Proposal, author: Planner, outcome: _Outcome, view: GraphView, *, began: float) -> None:
        action, seconds = proposal.action, time.monotonic() - began
        parent, ordinal = view.states[action.parent], len(view.attempts) + 1
        attempt = self._graph.record(
            action.parent,
            action,
            outcome.decision,
            outcome.candidate,
            planner={**proposal.source, "name": author.name, "version": author.version},
            error=outcome.error,
            files=proposal.files,
            telemetry={"seconds": seconds, "engine_seconds": outcome.engine_seconds},
        )
        self._extend_view(
            view, AttemptView(ordinal, action.parent, action, outcome.decision, attempt.candidate), outcome
        )
        self._tell(
            StepDone(ordinal, action, parent, outcome.candidate, outcome.decision, seconds, outcome.engine_seconds)
        )

    def _execute(self, action: Action, parent: FitState, checks: tuple[GateCheck, ...]) -> _Outcome:
        """Compute and judge a candidate; an engine's failure is a rejection with its code."""
        snapshot = Snapshot(parent.engine, self._graph.artifacts.get(parent.snapshot))
        command = command_for(action, parent, self._job, seen_in(self._graph.artifacts, parent))
        before = self._session.engine_seconds
        self._foresight.started(snapshot, command)
        self._foresight.step(action, self._current_view(), checks)
        try:
            after, result = self._session.execute(snapshot, command)
        except EngineError as error:
            failure = {"code": error.code, "detail": error.detail, "context": error.context}
            decision = reject(action, policy=self._job.policy, preflight=checks, reason=error.code, text=error.detail)
            return _Outcome(decision, error=failure, engine_seconds=self._session.engine_seconds - before)
        candidate = self._state(after, result, stage=action.stage, parent=parent, action=action)
        decision = judge(action, parent, candidate, preflight=checks, policy=self._job.policy)
        return _Outcome(decision, candidate, engine_seconds=self._session.engine_seconds - before)

    def _state(
        self,
        snapshot: Snapshot,
        result: EngineResult,
        *,
        stage: Stage,
        parent: FitState | None,
        action: Action | None = None,
    ) -> FitState:
        artifacts = self._graph.artifacts
        # of several histograms there is no profile match yet, and a profile match is its own
        aside = self._job.others or self._job.profile_match
        matched = () if aside else self._job.policy.measures.reachable_rwp_after
        match = action is not None and action.kind in matched
        if match or (action is not None and action.kind is ActionKind.JOINT):
            self._foresight.closing(snapshot, matched=match)
        state = measure_state(
            result,
            self._job,
            stage=stage,
            parent=parent,
            action=action,
            files={
                "snapshot": artifacts.put(snapshot.payload),
                "arrays": artifacts.put(encode_result(result)),
                "structures": artifacts.put(encode_structures([p.structure for p in result.phases])),
            },
        )
        side = self._candidate_features(result)
        if match:
            side["reachable_rwp"] = reachable_rwp(self._session, snapshot)
        if side:
            state = state.model_copy(update={"features": dict(sorted((state.features | side).items()))})
        # What is judged must be what is recorded: verify recomputes decisions from the record.
        return recorded_form(state)

    def _candidate_features(self, result: EngineResult) -> dict[str, Feature]:
        if not self._job.candidates:
            return {}
        if self._candidates is None:
            self._candidates = Candidates.evaluated(self._job, self._session)
        return self._candidates.features(result)

    def _current_view(self) -> GraphView:
        if self._view is None:
            self._view = graph_view(self._graph)
        return self._view

    def _extend_view(self, view: GraphView, attempt: AttemptView, outcome: _Outcome) -> None:
        """Grow the cached view by the step just recorded; reading the whole graph back would cost every step more."""
        states = dict(view.states)
        if attempt.candidate is not None and outcome.candidate is not None:
            states[attempt.candidate] = outcome.candidate
        self._view = GraphView(view.root, states, [*view.attempts, attempt], view.forfeits)


def rejudge(action: Action, parent: FitState, candidate: FitState, policy: dict[str, object]) -> Decision:
    """Recompute a recorded decision from the recorded figures alone (for ``verify``)."""
    from autoxrd.gates.policy import Policy  # local: verify hands over plain JSON

    rules = Policy.model_validate(policy)
    checks = preflight(action, parent, action.parent, policy=rules, known_parameters=known_parameters(parent))
    return judge(action, parent, candidate, preflight=checks, policy=rules)
