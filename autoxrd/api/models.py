"""What does a client get to see? The answers of the REST interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from autoxrd.domain.lifecycle import JobState
from autoxrd.store.service.feed import FeedEvent
from autoxrd.store.service.files import StoredFile
from autoxrd.store.service.listing import JobView

__all__ = ["Budget", "EventList", "EventOut", "FileOut", "JobError", "JobList", "JobOut", "StepList", "StepOut"]


class _Out(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class JobError(_Out):
    """Why a job failed or crashed."""

    code: str
    detail: str


class Budget(_Out):
    """What a job has used."""

    steps: int
    wall_seconds: float
    engine_seconds: float
    model_tokens: int
    money: float


class JobOut(_Out):
    """A job."""

    id: str
    title: str
    state: JobState
    verdict: str | None
    """``accepted``, ``accepted_with_warnings`` or ``abstained``, once it is concluded."""
    engine: str
    planner: str
    priority: int
    created_at: str
    updated_at: str
    finished_at: str | None
    current_state: str | None
    """The state that stands for the result so far."""
    rwp: float | None
    """Rwp of that state, as a fraction."""
    gof: float | None
    used: Budget
    last_event: int
    request: Mapping[str, Any]
    error: JobError | None
    links: Mapping[str, str]

    @classmethod
    def of(cls, job: JobView) -> Self:
        """Show a job."""
        base = f"/api/v1/jobs/{job.id}"
        names = ("events", "graph", "files") + (("report.html", "report.json", "report.zip") if job.finished_at else ())
        used = {
            "steps": job.steps_used,
            "wall_seconds": job.wall_seconds_used,
            "engine_seconds": job.engine_seconds_used,
            "model_tokens": job.tokens_used,
            "money": job.money_used,
        }
        plain = {name: getattr(job, name) for name in cls.model_fields if hasattr(job, name)}
        links = {"self": base, **{name: f"{base}/{name}" for name in names}}
        return cls(**plain, used=Budget(**used), last_event=job.feed_last, links=links)


class JobList(_Out):
    """A page of jobs, newest first."""

    jobs: list[JobOut]
    next_cursor: str | None
    """Pass it as ``cursor`` to get the next page; null at the end."""


class EventOut(_Out):
    """An event of a job."""

    number: int
    kind: str
    at: str
    data: Mapping[str, Any]

    @classmethod
    def of(cls, event: FeedEvent) -> Self:
        """Show an event."""
        return cls(number=event.number, kind=event.kind, at=event.at, data=event.data)


class EventList(_Out):
    """Events in order."""

    events: list[EventOut]
    last: int
    """Pass it as ``after`` to get what follows."""


class StepOut(_Out):
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
    n_free: int | None
    seconds: float | None
    at: str


class StepList(_Out):
    """A page of the decision graph, in the order of recording."""

    steps: list[StepOut]
    next_cursor: int | None


class FileOut(_Out):
    """A file of a job."""

    role: str
    name: str
    sha256: str
    size: int
    media_type: str

    @classmethod
    def of(cls, file: StoredFile) -> Self:
        """Show a file."""
        return cls.model_validate(file)
