"""In which states can a job of the service be, and what leads from one to another? One table, nothing else decides.

The page docs/job-life.md is generated from :data:`TRANSITIONS`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from autoxrd.errors import Conflict

__all__ = ["CLAIMABLE", "FINAL", "TRANSITIONS", "JobState", "Transition", "Trigger", "allowed", "table", "target"]


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CRASHED = "crashed"
    CANCELLED = "cancelled"


class Trigger(StrEnum):
    """What can happen to a job."""

    CLAIM = "claim"
    REQUEUE = "requeue"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    CANCEL_STEP = "cancel_step"
    STOPPED = "stopped"
    COMPLETE = "complete"
    FAIL = "fail"
    CRASH = "crash"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Transition:
    """One row of the table.

    Args:
        sources: states in which the trigger is allowed.
        target: state after it.
        text: what it means, for the documentation.
    """

    sources: frozenset[JobState]
    target: JobState
    text: str


_S = JobState
_HELD = frozenset({_S.QUEUED, _S.RUNNING, _S.WAITING})
"""A step may be in flight in each of these: a job can be paused, and even resumed, while one runs."""

TRANSITIONS: Mapping[Trigger, Transition] = {
    Trigger.CLAIM: Transition(
        frozenset({_S.QUEUED, _S.RUNNING}), _S.RUNNING, "A worker takes the lease and works on one step."
    ),
    Trigger.REQUEUE: Transition(
        frozenset({_S.RUNNING}), _S.QUEUED, "The lease was lost, or the machine failed a step: another try is due."
    ),
    Trigger.PAUSE: Transition(
        frozenset({_S.QUEUED, _S.RUNNING}),
        _S.WAITING,
        "A person pauses the job, or its planner cannot go on; a step in flight is recorded first.",
    ),
    Trigger.RESUME: Transition(
        frozenset({_S.WAITING, _S.CANCELLED}), _S.QUEUED, "A person lets a job go on from its record."
    ),
    Trigger.CANCEL: Transition(_HELD, _S.CANCELLED, "A person cancels a job of which no step runs."),
    Trigger.CANCEL_STEP: Transition(_HELD, _S.CANCELLING, "A person cancels a job while a step runs."),
    Trigger.STOPPED: Transition(
        frozenset({_S.CANCELLING}), _S.CANCELLED, "The worker has killed the step's processes, or was lost itself."
    ),
    Trigger.COMPLETE: Transition(_HELD, _S.COMPLETED, "The report stands; the verdict is accepted or abstained."),
    Trigger.FAIL: Transition(_HELD, _S.FAILED, "The input cannot be used, or the engine refuses the model."),
    Trigger.CRASH: Transition(
        frozenset({_S.RUNNING}), _S.CRASHED, "The same step was lost too often: the machine needs a look."
    ),
    Trigger.RETRY: Transition(
        frozenset({_S.FAILED, _S.CRASHED}),
        _S.QUEUED,
        "A person lets a failed or crashed job go on from its record.",
    ),
}

CLAIMABLE = TRANSITIONS[Trigger.CLAIM].sources
"""States whose jobs a worker may take."""

FINAL = frozenset({_S.COMPLETED, _S.FAILED, _S.CRASHED, _S.CANCELLED})
"""States in which nothing more happens by itself."""


def allowed(state: JobState, trigger: Trigger) -> bool:
    """Return whether the trigger may happen in this state."""
    return state in TRANSITIONS[trigger].sources


def target(state: JobState, trigger: Trigger) -> JobState:
    """Return the state after a trigger.

    Raises:
        Conflict: ``job_state``, the table has no such transition.
    """
    row = TRANSITIONS[trigger]
    if state not in row.sources:
        verb = trigger.value.replace("_", " ")
        raise Conflict(
            "job_state",
            f"A {state.value} job cannot take '{verb}': that needs one that is {_listed(row.sources)}.",
            context={"state": state.value, "trigger": trigger.value},
        )
    return row.target


def table() -> str:
    """Return the transitions as a Markdown table, the body of the documentation page."""
    lines = ["| trigger | from | to | meaning |", "|---|---|---|---|"]
    for trigger, row in TRANSITIONS.items():
        lines.append(f"| `{trigger}` | {_listed(row.sources, ', ')} | {row.target} | {row.text} |")
    return "\n".join(lines) + "\n"


def _listed(states: frozenset[JobState], last: str = " or ") -> str:
    names = [s.value for s in JobState if s in states]
    return last.join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
