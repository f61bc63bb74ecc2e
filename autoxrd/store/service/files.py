"""Which files belong to a job or an owner? Names for artifacts; the bytes lie by content in the artifact store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from autoxrd.errors import NotFound
from autoxrd.store.models import EdgeRow, EventRow, JobRow, StateRow, table_of
from autoxrd.store.service.database import Database, Transaction, now_text
from autoxrd.store.service.models import JobFileRow, OwnerRow, UploadRow

__all__ = [
    "NewFile",
    "StoredFile",
    "add_files",
    "add_upload",
    "artifact_of_job",
    "job_file",
    "job_files",
    "put_files",
    "upload_of",
]

_INSERT = insert(table_of(JobFileRow))


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file whose bytes are already in the artifact store.

    Args:
        sha256: artifact id.
        size: bytes.
        media_type: as HTTP names it.
    """

    sha256: str
    size: int
    media_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file with its name; ``role`` is ``input`` or ``report``."""

    role: str
    name: str
    sha256: str
    size: int
    media_type: str


def add_files(session: Transaction, job_id: str, role: str, files: Mapping[str, NewFile]) -> None:
    """Name the first files of a job."""
    named = {"job_id": job_id, "role": role}
    rows = [
        {**named, "name": name, "sha256": file.sha256, "size": file.size, "media_type": file.media_type}
        for name, file in files.items()
    ]
    if rows:
        session.execute(_INSERT, rows)


def put_files(session: Session, job_id: str, role: str, files: Mapping[str, NewFile]) -> None:
    """Name files of a job; a name that it has already gets the new content."""
    for name, file in files.items():
        session.merge(
            JobFileRow(
                job_id=job_id, role=role, name=name, sha256=file.sha256, size=file.size, media_type=file.media_type
            )
        )


def job_files(database: Database, job_id: str, role: str | None = None) -> list[StoredFile]:
    """Return the files of a job, by role and name."""
    query = select(JobFileRow).where(JobFileRow.job_id == job_id).order_by(JobFileRow.role, JobFileRow.name)
    if role is not None:
        query = query.where(JobFileRow.role == role)
    with database.reading() as session:
        return [_stored(row) for row in session.scalars(query)]


def job_file(database: Database, job_id: str, role: str, name: str) -> StoredFile:
    """Return one file of a job.

    Raises:
        NotFound: ``file_not_found``.
    """
    with database.reading() as session:
        row = session.get(JobFileRow, (job_id, role, name))
    if row is None:
        raise NotFound("file_not_found", f"The job has no file {name!r:.80} (yet).")
    return _stored(row)


def artifact_of_job(database: Database, job_id: str, sha256: str) -> str:
    """Return the media type of an artifact that the job's graph or files name.

    Raises:
        NotFound: ``artifact_not_found``; also where it belongs to other jobs only.
    """
    files = select(JobFileRow).where(JobFileRow.job_id == job_id, JobFileRow.sha256 == sha256).limit(1)
    with database.reading() as session:
        row = session.scalars(files).one_or_none()
        if row is not None:
            return row.media_type
        for table in (JobRow, StateRow, EdgeRow, EventRow):
            named = select(table.job_id).where(table.job_id == job_id, table.artifacts.like(f'%"{sha256}"%')).limit(1)
            if session.scalar(named) is not None:
                return "application/octet-stream"
    raise NotFound("artifact_not_found", f"The job names no artifact {sha256:.64}.")


def add_upload(database: Database, owner_id: str, name: str, file: NewFile) -> None:
    """Note that an owner has uploaded these bytes and may name them."""
    with database.writing() as session:
        known = session.get(UploadRow, (owner_id, file.sha256))
        if known is None:
            owner = update(OwnerRow).where(OwnerRow.id == owner_id)
            session.execute(owner.values(stored_bytes=OwnerRow.stored_bytes + file.size))
        session.merge(
            UploadRow(owner_id=owner_id, sha256=file.sha256, name=name, size=file.size, created_at=now_text())
        )


def upload_of(database: Database, owner_id: str, sha256: str) -> StoredFile:
    """Return what an owner uploaded under this digest.

    Raises:
        NotFound: ``artifact_not_found``; also where somebody else uploaded it.
    """
    with database.reading() as session:
        row = session.get(UploadRow, (owner_id, sha256))
    if row is None:
        raise NotFound("artifact_not_found", f"You have uploaded no artifact {sha256:.64}.")
    return StoredFile("upload", row.name, row.sha256, row.size, "application/octet-stream")


def _stored(row: JobFileRow) -> StoredFile:
    return StoredFile(row.role, row.name, row.sha256, row.size, row.media_type)
