"""Does the accepted path give the same figures again? Re-execution without a planner."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from autoxrd.agent.codec import encode_result
from autoxrd.agent.estimating import observed_of_result
from autoxrd.agent.events import Listener, nobody
from autoxrd.agent.fitting import command_for, prepared
from autoxrd.agent.job import Job
from autoxrd.agent.starting import root_command
from autoxrd.domain.action import Action
from autoxrd.domain.state import FitState
from autoxrd.engines.protocol import EngineResult, EngineSession, Snapshot
from autoxrd.engines.registry import get_engine
from autoxrd.errors import NotFound
from autoxrd.primitives import sha256_hex
from autoxrd.science.absolute import absolute_quantities
from autoxrd.science.statistics import weighted_profile_r
from autoxrd.store.graph import Graph

__all__ = ["ReplayOutcome", "ReplayStep", "replay_job"]

RELATIVE_TOLERANCE = 1e-9
"""Figures of a replay may differ by this much and still be called equal (issue: figures equal to 1e-9)."""


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One state computed again.

    Args:
        label: kind of the action, ``root`` for the first.
        state: id of the recorded state.
        rwp_recorded, rwp_replayed: fractions.
        largest_difference: largest relative difference of any parameter value.
        identical: whether snapshot and arrays are the same to the bit.
    """

    label: str
    state: str
    rwp_recorded: float
    rwp_replayed: float
    largest_difference: float
    identical: bool

    @property
    def equal(self) -> bool:
        """Whether all figures agree within the tolerance."""
        rwp = abs(self.rwp_replayed - self.rwp_recorded) <= RELATIVE_TOLERANCE * self.rwp_recorded
        return rwp and self.largest_difference <= RELATIVE_TOLERANCE


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """The whole path computed again."""

    steps: tuple[ReplayStep, ...]
    seconds: float

    @property
    def equal(self) -> bool:
        """Whether every step agrees."""
        return all(step.equal for step in self.steps)

    def as_dict(self) -> dict[str, object]:
        """Return JSON content."""
        steps = [asdict(step) | {"equal": step.equal} for step in self.steps]
        return {"equal": self.equal, "seconds": self.seconds, "tolerance": RELATIVE_TOLERANCE, "steps": steps}


def replay_job(directory: Path, *, listener: Listener = nobody) -> ReplayOutcome:
    """Execute the accepted path of a job again from its inputs, and compare with the record.

    Raises:
        NotFound: there is no job, or it has no root yet.
        EngineError: the engine failed where it had not.
    """
    began = time.monotonic()
    with Graph.open(directory, read_only=True) as graph:
        root = graph.root()
        if root is None:
            raise NotFound("root_missing", f"{directory} has no root state yet: resume the job first.")
        finish = graph.finished()
        path = graph.accepted_path(finish.final_state if finish else None)
        job = Job.from_record(graph.job, graph.artifacts)
        session = get_engine(job.engine).start()
        try:
            steps = _replay(session, job, root, graph.state(root), [(a.action, s, str(a.candidate)) for a, s in path])
        finally:
            session.close()
    return ReplayOutcome(tuple(steps), time.monotonic() - began)


def _replay(
    session: EngineSession, job: Job, root_id: str, root: FitState, path: list[tuple[Action, FitState, str]]
) -> list[ReplayStep]:
    snapshot = prepared(session, job)
    snapshot, result = session.execute(snapshot, root_command(job.start, job.mode))
    steps = [_compare(job, "root", root_id, root, snapshot, result)]
    parent = root
    for action, state, state_id in path:
        snapshot, result = session.execute(snapshot, command_for(action, parent, job, observed_of_result(result)))
        steps.append(_compare(job, action.kind.value, state_id, state, snapshot, result))
        parent = state
    return steps


def _compare(
    job: Job, label: str, state_id: str, recorded: FitState, snapshot: Snapshot, result: EngineResult
) -> ReplayStep:
    values = {p.name: p.value for p in (*result.parameters, *absolute_quantities(result, job.standard))}
    differences = [_relative(p.value, values.get(p.name, math.nan)) for p in recorded.parameters]
    rwp = weighted_profile_r(result.y_obs, result.sigma, result.y_calc)
    identical = (
        sha256_hex(snapshot.payload) == recorded.snapshot and sha256_hex(encode_result(result)) == recorded.arrays
    )
    return ReplayStep(label, state_id, recorded.quality.rwp, rwp, max(differences, default=0.0), identical)


def _relative(recorded: float, replayed: float) -> float:
    if math.isnan(replayed):
        return math.inf
    return abs(replayed - recorded) / max(abs(recorded), 1e-12) if recorded != replayed else 0.0
