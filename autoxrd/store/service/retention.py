"""How long is what kept? A deleted job loses its files and its request; that it was, and what was done, stays.

The rows of its graph, its feed and the audit log are append-only and stay too: figures, hashes and reasons, no file.
The bytes go in a sweep: what no job, no upload and no graph names any more, and nobody has stored of late.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete as delete_rows
from sqlalchemy import func, select, update

from autoxrd.domain.lifecycle import FINAL, JobState
from autoxrd.errors import Conflict, NotFound
from autoxrd.store.models import EdgeRow, EventRow, JobRow, StateRow
from autoxrd.store.service import audit
from autoxrd.store.service.audit import Actor
from autoxrd.store.service.database import Database, now_text, time_text
from autoxrd.store.service.models import JobFileRow, OwnerRow, ServiceJobRow, UploadRow
from autoxrd.store.service.transition import locked, touch

__all__ = ["GRACE", "Swept", "delete_job", "delete_upload", "expire", "sweep"]

GRACE = timedelta(hours=6)
"""What was stored within this time is never swept: the row that will name it may not be committed yet."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep removed."""

    files: int
    bytes: int


def delete_job(database: Database, job_id: str, actor: Actor, *, why: str = "asked") -> None:
    """Delete a job that is over: its files, its title and what was told of the sample.

    Raises:
        NotFound: ``job_not_found``; also where it belongs to somebody else.
        Conflict: ``job_state``, it is not over.
    """
    with database.writing() as session:
        job = locked(session, job_id, actor.owner_id)
        if JobState(job.state) not in FINAL:
            raise Conflict("job_state", f"The job is {job.state}: cancel it first, then delete it.")
        owner = update(OwnerRow).where(OwnerRow.id == job.owner_id)
        session.execute(owner.values(stored_bytes=OwnerRow.stored_bytes - job.stored_bytes))
        session.execute(delete_rows(JobFileRow).where(JobFileRow.job_id == job_id))
        told = {"state": job.state, "verdict": job.verdict, "bytes": job.stored_bytes, "why": why}
        audit.note(session, actor, "job.delete", job_id, told)
        job.title, job.request, job.error, job.stored_bytes = "", "{}", None, 0
        job.deleted_at = now_text()
        touch(job)


def delete_upload(database: Database, actor: Actor, sha256: str) -> None:
    """Forget that an owner uploaded these bytes; jobs that name them keep them.

    Raises:
        NotFound: ``artifact_not_found``.
    """
    with database.writing() as session:
        row = session.get(UploadRow, (actor.owner_id, sha256))
        if row is None:
            raise NotFound("artifact_not_found", f"You have uploaded no artifact {sha256:.64}.")
        owner = update(OwnerRow).where(OwnerRow.id == actor.owner_id)
        session.execute(owner.values(stored_bytes=OwnerRow.stored_bytes - row.size))
        audit.note(session, actor, "upload.delete", sha256, {"bytes": row.size})
        session.delete(row)


def expire(database: Database, keep: timedelta, now: datetime | None = None) -> list[str]:
    """Delete jobs that have been over for longer than they are kept; return their ids."""
    before = time_text((now or datetime.now(UTC)) - keep)
    query = select(ServiceJobRow.id, ServiceJobRow.owner_id).where(
        ServiceJobRow.finished_at < before, ServiceJobRow.deleted_at.is_(None)
    )
    with database.reading() as session:
        found = session.execute(query).all()
    for job_id, owner_id in found:
        delete_job(database, job_id, Actor(owner_id), why="retention")
    return [job_id for job_id, _ in found]


def sweep(database: Database, *, grace: timedelta = GRACE, now: datetime | None = None) -> Swept:
    """Remove the bytes that nothing names any more."""
    # The list of files comes first: what is stored and named while the names are read is not in it.
    latest = ((now or datetime.now(UTC)) - grace).timestamp()
    store = database.artifacts
    old = {a: s.st_size for a in store.ids() if (s := store.path(a).stat()).st_mtime < latest}
    named = _named(database)
    files, size = 0, 0
    for artifact, length in old.items():
        if artifact not in named and store.path(artifact).stat().st_mtime < latest:
            store.path(artifact).unlink(missing_ok=True)
            files, size = files + 1, size + length
    return Swept(files, size)


def _named(database: Database) -> set[str]:
    live = select(ServiceJobRow.id).where(ServiceJobRow.deleted_at.is_(None))
    with database.reading() as session:
        named = set(session.scalars(select(JobFileRow.sha256))) | set(session.scalars(select(UploadRow.sha256)))
        for table in (JobRow, StateRow, EdgeRow, EventRow):
            named |= _listed(session.scalars(select(table.artifacts).where(table.job_id.in_(live))))
    return named


def _listed(texts: Iterable[str]) -> set[str]:
    return {artifact for text in texts for artifact in json.loads(text)}


def stored_bytes(database: Database, owner_id: str) -> int:
    """Return how many bytes an owner's jobs and uploads name; equal contents count each time."""
    with database.reading() as session:
        return int(session.scalar(select(func.max(OwnerRow.stored_bytes)).where(OwnerRow.id == owner_id)) or 0)
