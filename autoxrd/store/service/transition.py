"""How does a job's state change? Here and nowhere else, by the table of `autoxrd.domain.lifecycle`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from autoxrd.domain.lifecycle import CLAIMABLE, FINAL, JobState, Trigger, target
from autoxrd.errors import NotFound
from autoxrd.primitives import canonical_json
from autoxrd.store.service import audit, feed
from autoxrd.store.service.audit import Actor
from autoxrd.store.service.database import Database, now_text
from autoxrd.store.service.fairness import level
from autoxrd.store.service.models import ServiceJobRow

__all__ = ["ask", "locked", "move"]

_RUNNING = (Trigger.CLAIM,)


def locked(session: Session, job_id: str, owner_id: str | None = None) -> ServiceJobRow:
    """Return a job's row, locked until the transaction ends.

    Raises:
        NotFound: ``job_not_found``; also where it belongs to somebody else.
    """
    query = select(ServiceJobRow).where(ServiceJobRow.id == job_id).with_for_update()
    if owner_id is not None:
        query = query.where(ServiceJobRow.owner_id == owner_id)
    job = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if job is None or job.deleted_at is not None:
        raise NotFound("job_not_found", f"There is no job {job_id!r:.60}.")
    return job


def move(session: Session, job: ServiceJobRow, trigger: Trigger, data: Mapping[str, Any] | None = None) -> JobState:
    """Change a locked job's state and say so in its feed.

    Args:
        session: the transaction that locked the row.
        job: the row.
        trigger: what happens.
        data: what the event tells beside the states.

    Raises:
        Conflict: ``job_state``, the table has no such transition.
    """
    before = JobState(job.state)
    after = target(before, trigger)
    job.state = after.value
    touch(job)
    if after in FINAL:
        job.finished_at = job.updated_at
    elif before in FINAL:
        job.finished_at = None
        job.error = None
    if after is not before:
        told = {"from": before.value, "to": after.value, "trigger": trigger.value, **(data or {})}
        feed.append(session, job, "job.state", told)
    if after in CLAIMABLE and before not in CLAIMABLE:
        level(session, job.owner_id, job.id)
    return after


def touch(job: ServiceJobRow) -> None:
    """Count a visible change: the entity tag follows from it."""
    job.version += 1
    job.updated_at = now_text()


def ask(database: Database, job_id: str, owner_id: str, wish: str, *, actor: Actor | None = None) -> JobState:
    """Do what a person asks for: ``cancel``, ``pause``, ``resume`` or ``retry``. To ask again changes nothing.

    Returns:
        The state after it.

    Raises:
        NotFound: ``job_not_found``.
        Conflict: ``job_state``.
    """
    with database.writing() as session:
        job = locked(session, job_id, owner_id)
        state = JobState(job.state)
        audit.note(session, actor or Actor(owner_id), f"job.{wish}", job_id, {"state": job.state})
        if wish == "cancel":
            if state in {JobState.CANCELLING, JobState.CANCELLED}:
                return state
            return move(session, job, Trigger.CANCEL if job.lease_holder is None else Trigger.CANCEL_STEP)
        if wish == "pause" and state is JobState.WAITING:
            return state
        if wish in {"resume", "retry"}:
            if state in {JobState.QUEUED, JobState.RUNNING}:
                return state
            job.losses = 0
        return move(session, job, Trigger(wish))


def fail(session: Session, job: ServiceJobRow, trigger: Trigger, problem: Mapping[str, Any]) -> None:
    """End a locked job with an error that its owner can read."""
    move(session, job, trigger, {"error": dict(problem)})
    job.error = canonical_json(dict(problem))
