"""How does a request become one queued job, however often and however parallel it is sent?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from autoxrd.domain.lifecycle import FINAL, JobState
from autoxrd.errors import Conflict, LimitExceeded
from autoxrd.store.models import table_of
from autoxrd.store.service import audit, feed, outbox
from autoxrd.store.service.audit import Actor
from autoxrd.store.service.budgets import has_room, spent_by
from autoxrd.store.service.database import Database, Transaction, new_id, now_text
from autoxrd.store.service.fairness import level
from autoxrd.store.service.files import NewFile, add_files
from autoxrd.store.service.listing import JobView, find_job, view_of
from autoxrd.store.service.models import IdempotencyRow, OwnerRow, ServiceJobRow

__all__ = ["NewJob", "Submitted", "repeated", "submit"]

# Built once, and of tables.
_JOBS, _OWNERS = table_of(ServiceJobRow), table_of(OwnerRow)
_JOB = insert(_JOBS)
_KEY = insert(table_of(IdempotencyRow))
_STORE = (
    update(_OWNERS)
    .where(_OWNERS.c.id == bindparam("owner"))
    .values(stored_bytes=_OWNERS.c.stored_bytes + bindparam("size"))
    .returning(*_OWNERS.c, outbox.HOOKS_OF_OWNER.label("n_hooks"))
)
_OPEN = select(func.count()).where(
    _JOBS.c.owner_id == bindparam("owner"), _JOBS.c.state.in_([s.value for s in JobState if s not in FINAL])
)
_BLANK = {c.name: getattr(c.default, "arg", None) for c in _JOBS.c}
"""A row of which nothing is said yet."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """What is to be done, for whom.

    Args:
        request: canonical JSON of the request.
        request_hash: SHA-256 over the request and the digests of its files.
        files: inputs by name; their bytes are already stored.
        actor: who asks, for the audit log; None for the owner without a key.
        queue: where its first step belongs.
        series: name of the series that it is part of.
    """

    owner_id: str
    title: str
    engine: str
    planner: str
    priority: int
    request: str
    request_hash: str
    queue: str
    files: Mapping[str, NewFile] = field(default_factory=dict)
    actor: Actor | None = None
    series: str | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The job of a request.

    Args:
        job: as it was written; as it is now where it is repeated.
        repeated: True where the Idempotency-Key had made it before.
    """

    job: JobView
    repeated: bool


def submit(database: Database, job: NewJob, *, idempotency_key: str | None = None) -> Submitted:
    """Make a job, or find the one that the same key made.

    Raises:
        Conflict: ``idempotency_key_reused``, the key belongs to another request.
        LimitExceeded: ``jobs_open``, the owner has as many open jobs as allowed; ``budget_spent``,
            ``storage_spent``, of the owner.
    """
    try:
        return Submitted(_insert(database, job, idempotency_key), repeated=False)
    except IntegrityError:
        # another request with this key was here before; its transaction is over, else ours would still wait
        found = repeated(database, job, idempotency_key)
        if found is None:
            raise
        return found


def repeated(database: Database, job: NewJob, key: str | None) -> Submitted | None:
    """Return the job that a key has made, None where it made none.

    Raises:
        Conflict: ``idempotency_key_reused``.
        NotFound: ``job_not_found``, it was deleted.
    """
    with database.reading() as session:
        row = None if key is None else session.get(IdempotencyRow, (job.owner_id, key))
    if row is None:
        return None
    if row.request_hash != job.request_hash:
        raise Conflict(
            "idempotency_key_reused",
            "This Idempotency-Key was used for another request: send a new key with a new request.",
            context={"job": row.job_id},
        )
    return Submitted(find_job(database, row.job_id, job.owner_id), repeated=True)


def _insert(database: Database, job: NewJob, key: str | None) -> JobView:
    job_id, now = new_id(), now_text()
    stored = sum(file.size for file in job.files.values())
    written = _row(job, job_id, now, stored)
    row = ServiceJobRow(**written)
    with database.committing() as session:
        if key is not None:  # here a parallel equal request waits, and then fails
            used = {"key": key, "request_hash": job.request_hash, "job_id": job_id, "created_at": now}
            session.execute(_KEY, {"owner_id": job.owner_id, **used})
        session.execute(_JOB, {**written, "feed_last": 1})
        add_files(session, job_id, "input", job.files)
        audit.note(session, job.actor or Actor(job.owner_id), "job.submit", job_id)
        told = {"title": job.title, "engine": job.engine, "planner": job.planner}
        feed.write(session, row, "job.accepted", told)  # number 1, as written above
        if _admit(session, job.owner_id, stored):
            outbox.enqueue(session, row, "job.accepted", 1, told)
        level(session, job.owner_id, job_id)
    return view_of(row)


def _row(job: NewJob, job_id: str, now: str, stored: int) -> dict[str, Any]:
    copied = ("owner_id", "title", "queue", "priority", "engine", "planner", "request", "series")
    return {
        **_BLANK,
        "id": job_id,
        "state": JobState.QUEUED.value,
        "created_at": now,
        "updated_at": now,
        "stored_bytes": stored,
        **{name: getattr(job, name) for name in copied},
    }


def _admit(session: Transaction, owner_id: str, stored: int) -> bool:
    """Hold the limits, and return whether the owner has webhooks, which most have not.

    Called late: from here on the owner's row is locked, and whoever else submits for them waits.
    """
    owner = session.execute(_STORE, {"owner": owner_id, "size": stored}).one()
    over = spent_by(owner)
    if over is not None:
        raise LimitExceeded("budget_spent", f"{over.text} Ask who runs the service for more.")
    has_room(owner, new=stored)
    limit = json.loads(owner.limits).get("open_jobs")
    hooks = bool(owner.n_hooks)
    if limit is None:
        return hooks
    n_open = (session.scalar(_OPEN, {"owner": owner_id}) or 0) - 1  # this one is written already
    if n_open >= limit:
        detail = f"You have {n_open} open jobs, and {limit} are allowed: wait for one to end, or cancel one."
        raise LimitExceeded("jobs_open", detail, context={"open": n_open, "limit": limit})
    return hooks
