"""What may be asked of the engine after the step that it computes now? What the planner would do if it were refused.

Only what does not depend on the step's result can be computed beside it: the next attempt from the same state. What is
foreseen goes to the engine's idle processes and nowhere else; the real proposal decides, and finds its result there or
not. Nothing of this reaches the graph.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace

from autoxrd.agent.estimating import seen_in
from autoxrd.agent.exporting import export_kinds
from autoxrd.agent.fitting import PROFILE_MATCH, command_for
from autoxrd.agent.job import Job
from autoxrd.agent.viewing import check_action
from autoxrd.domain.action import Action
from autoxrd.domain.decision import GateCheck
from autoxrd.engines.pool import RunnerPool
from autoxrd.engines.protocol import EngineCommand, EngineSession, Snapshot
from autoxrd.engines.tasks import Wish
from autoxrd.gates.acceptance import reject
from autoxrd.planners.protocol import AttemptView, Foreseeing, GraphView, JobContext, Planner, Proposal
from autoxrd.store.artifacts import ArtifactStore

__all__ = ["Foresight"]

_MOST_REFUSALS = 6
"""Proposals that preflight refuses take none of an engine's time, and some of this process's."""
_FORESEEN = "foreseen"
"""Code of a refusal that has not happened."""


class Foresight:
    """Keeps the idle processes of a job's engine busy; does nothing where there is one process only.

    Args:
        job: the job.
        context: what its planner may know.
        artifacts: where its snapshots are.
        session: its engine.
        planner: whose next proposal is foreseen, where it can be.
    """

    def __init__(
        self, job: Job, context: JobContext, artifacts: ArtifactStore, session: EngineSession, planner: Planner
    ) -> None:
        self._job = job
        self._context = context
        self._artifacts = artifacts
        self._pool = session if isinstance(session, RunnerPool) else None
        self._planner = planner if isinstance(planner, Foreseeing) else None

    def started(self, snapshot: Snapshot, command: EngineCommand) -> None:
        """Begin a command that will be asked for in a moment."""
        if self._pool is not None:
            self._pool.begin(Wish(snapshot, command))

    def step(self, action: Action, view: GraphView, checks: tuple[GateCheck, ...]) -> None:
        """Begin what would come next if the action that is computed now were refused."""
        if self._pool is not None:
            self._pool.expect(self._after(action, view, checks, self._pool.runners - 1))

    def closing(self, snapshot: Snapshot, *, matched: bool) -> None:
        """Begin the files of a candidate that will be the last if it is accepted, and its profile match.

        Args:
            snapshot: of the candidate.
            matched: whether its profile match will be asked for.
        """
        if self._pool is not None:
            if matched:
                self._pool.begin(Wish(snapshot, PROFILE_MATCH))
            self._pool.expect(Wish(snapshot, (kind,)) for kind in export_kinds(self._job.engine))

    def _after(self, action: Action, view: GraphView, checks: tuple[GateCheck, ...], most: int) -> tuple[Wish, ...]:
        """Return what would be asked next after one refusal, after two and so on."""
        if self._planner is None:
            return ()
        found: list[Wish] = []
        with contextlib.suppress(Exception):  # a guess ends no job: what is wrong, the real proposal will meet
            found += itertools.islice(self._refusals(action, view, checks, self._planner), most)
        return tuple(found)

    def _refusals(
        self, action: Action, view: GraphView, checks: tuple[GateCheck, ...], planner: Foreseeing
    ) -> Iterator[Wish]:
        """Yield what each further refusal would lead to, until the job would end or the planner cannot say."""
        policy, budget = self._job.policy, self._job.budget
        for _ in range(_MOST_REFUSALS):
            decision = reject(action, policy=policy, preflight=checks, reason=_FORESEEN)
            attempt = AttemptView(len(view.attempts) + 1, action.parent, action, decision, None)
            view = replace(view, attempts=[*view.attempts, attempt])
            over = len(view.attempts) + view.forfeits >= budget.steps
            answer = None if over else planner.foresee(view, self._context)
            if not isinstance(answer, Proposal):
                return
            action = answer.action
            checks = check_action(action, view, policy)
            if all(check.passed for check in checks):
                parent = view.states[action.parent]
                snapshot = Snapshot(parent.engine, self._artifacts.get(parent.snapshot))
                seen = seen_in(self._artifacts, parent)
                yield Wish(snapshot, command_for(action, parent, self._job, seen))
