"""What did the planner ask a person, and what did a person say? Questions and answers about single steps of a job.

A person's word changes nothing by itself: it waits here until a worker takes it as the job's next step, through the
same gates as any planner's action. The transaction that records the step settles it, so that it is taken once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from autoxrd.domain.lifecycle import FINAL, JobState, Trigger
from autoxrd.errors import Conflict
from autoxrd.primitives import canonical_json
from autoxrd.store.service import audit, feed
from autoxrd.store.service.audit import Actor
from autoxrd.store.service.database import Database, new_id, now_text
from autoxrd.store.service.models import ReviewRow, ServiceJobRow
from autoxrd.store.service.transition import locked, move, touch

__all__ = ["Answer", "Decision", "ReviewView", "answer", "answered", "ask", "list_reviews", "settle"]

MOST_WAITING = 100
"""So many actions may wait for a job's worker."""


class Decision(StrEnum):
    """What a person can say."""

    ACCEPT = "accept"
    REJECT = "reject"
    ADD = "add"


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's word.

    Args:
        action: JSON of an added action; None for the other two.
        note: why, in the person's words.
    """

    decision: Decision
    action: Mapping[str, Any] | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class ReviewView:
    """A question or an answer.

    Args:
        status: ``asked`` (a person's turn), ``answered`` (a worker's), ``done``, ``refused`` or ``withdrawn``.
        source: where a proposed action came from, as the record will say.
        files: artifacts behind it, by name.
        attempt: ordinal of the attempt that it became.
        reason: why it was refused.
    """

    id: str
    status: str
    decision: str | None
    action: Mapping[str, Any]
    source: Mapping[str, Any]
    files: Mapping[str, str]
    note: str
    attempt: int | None
    reason: str | None
    created_at: str
    answered_at: str | None


def ask(
    session: Session,
    job: ServiceJobRow,
    action: Mapping[str, Any],
    *,
    source: Mapping[str, Any],
    files: Mapping[str, str],
) -> None:
    """Put a proposed action before a person, and let the job wait. A question that is open already stays."""
    if _open(session, job.id) is None:
        row = _row(job.id, action, status="asked", decision=None, note="")
        row.source, row.files = canonical_json(dict(source)), canonical_json(dict(files))
        session.add(row)
        told = {"review": row.id, "kind": action.get("kind"), "stage": action.get("stage")}
        feed.append(session, job, "review.asked", {**told, "rationale": action.get("rationale")})
    if job.state == JobState.RUNNING:
        move(session, job, Trigger.PAUSE, {"reason": "review"})


def answer(database: Database, job_id: str, owner_id: str, said: Answer, *, actor: Actor | None = None) -> ReviewView:
    """Take a person's word; a job that waited for it goes on.

    Raises:
        NotFound: ``job_not_found``.
        Conflict: ``job_state``, the job is over; ``review_not_asked``, nothing was asked; ``reviews_waiting``.
    """
    with database.writing() as session:
        job = locked(session, job_id, owner_id)
        if JobState(job.state) in FINAL or job.state == JobState.CANCELLING:
            raise Conflict("job_state", f"The job is {job.state}: there is no step to be said anything about.")
        question = _open(session, job_id)
        if said.decision is Decision.ADD:
            row = _added(session, job, said, question)
        elif question is None:
            raise Conflict("review_not_asked", "The planner has asked nothing: only an action can be added now.")
        else:
            row = question
            row.status, row.decision, row.note, row.answered_at = "answered", said.decision.value, said.note, now_text()
        feed.append(session, job, "review.answered", {"review": row.id, "decision": said.decision.value})
        told = {"review": row.id, "decision": said.decision.value}
        audit.note(session, actor or Actor(owner_id), "job.review", job_id, told)
        touch(job)
        if question is not None and job.state == JobState.WAITING:
            move(session, job, Trigger.RESUME)
        session.flush()
        return _view(row)


def answered(database: Database, job_id: str) -> ReviewView | None:
    """Return the oldest answer that no worker has taken yet."""
    query = select(ReviewRow).where(ReviewRow.job_id == job_id, ReviewRow.status == "answered")
    with database.reading() as session:
        row = session.scalars(query.order_by(ReviewRow.answered_at, ReviewRow.id).limit(1)).one_or_none()
        return None if row is None else _view(row)


def settle(
    session: Session, job: ServiceJobRow, review_id: str, *, attempt: int | None = None, reason: str | None = None
) -> None:
    """Note what became of an answer: an attempt, or the reason why it was refused."""
    row = session.get_one(ReviewRow, review_id)
    row.status, row.attempt, row.reason = "refused" if reason else "done", attempt, reason
    if reason:
        feed.append(session, job, "review.refused", {"review": review_id, "reason": reason})


def list_reviews(database: Database, job_id: str, *, limit: int = 1000) -> Sequence[ReviewView]:
    """Return questions and answers of a job, oldest first."""
    query = select(ReviewRow).where(ReviewRow.job_id == job_id).order_by(ReviewRow.id).limit(limit)
    with database.reading() as session:
        return [_view(row) for row in session.scalars(query)]


def _added(session: Session, job: ServiceJobRow, said: Answer, question: ReviewRow | None) -> ReviewRow:
    waiting = session.scalars(
        select(ReviewRow.id).where(ReviewRow.job_id == job.id, ReviewRow.status == "answered").limit(MOST_WAITING)
    ).all()
    if len(waiting) >= MOST_WAITING:
        raise Conflict("reviews_waiting", f"{MOST_WAITING} actions wait for this job's worker already.")
    if question is not None:  # it was asked of a graph that will have one more step
        session.execute(update(ReviewRow).where(ReviewRow.id == question.id).values(status="withdrawn"))
    row = _row(job.id, said.action or {}, status="answered", decision=said.decision.value, note=said.note)
    row.answered_at = row.created_at
    session.add(row)
    return row


def _row(job_id: str, action: Mapping[str, Any], *, status: str, decision: str | None, note: str) -> ReviewRow:
    return ReviewRow(
        id=new_id(),
        job_id=job_id,
        status=status,
        decision=decision,
        action=canonical_json(dict(action)),
        source="{}",
        files="{}",
        note=note,
        created_at=now_text(),
    )


def _open(session: Session, job_id: str) -> ReviewRow | None:
    query = select(ReviewRow).where(ReviewRow.job_id == job_id, ReviewRow.status == "asked")
    return session.scalars(query.order_by(ReviewRow.id).limit(1)).one_or_none()


def _view(row: ReviewRow) -> ReviewView:
    return ReviewView(
        id=row.id,
        status=row.status,
        decision=row.decision,
        action=json.loads(row.action),
        source=json.loads(row.source),
        files=json.loads(row.files),
        note=row.note,
        attempt=row.attempt,
        reason=row.reason,
        created_at=row.created_at,
        answered_at=row.answered_at,
    )
