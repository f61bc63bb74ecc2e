"""What does the service answer? As frozen values; a field that a newer service adds is kept in ``raw``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from autoxrd.errors import ServiceUnavailable

__all__ = ["FINAL", "Event", "File", "Job", "Review", "Step"]

FINAL = frozenset({"completed", "failed", "crashed", "cancelled"})
"""States in which nothing more happens by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """Read an answer.

        Raises:
            ServiceUnavailable: ``answer_unreadable``, it lacks something: another version, or no AutoXRD service.
        """
        try:
            known = {f.name: answer[f.name] for f in fields(cls) if f.name != "raw"}
        except (KeyError, TypeError) as error:
            raise ServiceUnavailable(
                "answer_unreadable", f"The answer has no {error}: is this an AutoXRD service of the same version?"
            ) from error
        return cls(**known, raw=answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(_Answer):
    """A job.

    Args:
        state: queued, running, waiting, cancelling, completed, failed, crashed or cancelled.
        verdict: accepted, accepted_with_warnings or abstained, once it is concluded.
        rwp, gof: of the state that stands for the result so far; Rwp as a fraction.
        used: steps, wall and engine seconds, tokens and money.
        last_event: number of its newest event.
        error: code and detail where it failed or crashed.
    """

    id: str
    title: str
    state: str
    verdict: str | None
    engine: str
    planner: str
    created_at: str
    finished_at: str | None
    current_state: str | None
    rwp: float | None
    gof: float | None
    used: Mapping[str, float]
    last_event: int
    error: Mapping[str, Any] | None

    @property
    def over(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.state in FINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(_Answer):
    """An event of a job, numbered 1, 2, ...; docs/service.md lists the kinds."""

    number: int
    kind: str
    at: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(_Answer):
    """An attempt in short; ordinal 0 is the root."""

    ordinal: int
    parent: str | None
    state: str | None
    status: str
    kind: str
    stage: str
    planner: str
    rationale: str
    reasons: list[str]
    rwp: float | None
    gof: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Review(_Answer):
    """A step that the planner asked a person about, or an action that a person added.

    Args:
        status: asked, answered, done, refused or withdrawn.
        decision: accept, reject or add; None while it is asked.
        attempt: ordinal of the step that it became.
        reason: why it was refused.
    """

    id: str
    status: str
    decision: str | None
    action: Mapping[str, Any]
    note: str
    attempt: int | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class File(_Answer):
    """A file of a job; ``role`` is ``input`` or ``report``."""

    role: str
    name: str
    sha256: str
    size: int
    media_type: str
