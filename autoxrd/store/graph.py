"""How is a job recorded? `Graph` writes one job into one directory, one transaction a step, nothing ever changed.

Layout of a job directory (the full description is docs/graph.md)::

    graph.sqlite            jobs, states, edges, events: append-only, hashed (`autoxrd.store.models`, `.hashing`)
    artifacts/ab/cdef...    files by SHA-256, written and flushed before a row names them
    job.lock                held (flock) by the one process that writes

Killing the process at any moment loses at most the step that was not yet committed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Engine, select
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from autoxrd.errors import NotFound, StorageError
from autoxrd.store import migrate
from autoxrd.store.artifacts import ArtifactStore
from autoxrd.store.durable import sync_directory
from autoxrd.store.lock import JobLock
from autoxrd.store.models import JobRow
from autoxrd.store.records import JobRecord
from autoxrd.store.rows import job_row, json_text
from autoxrd.store.session import ARTIFACTS_NAME, DATABASE_NAME, LOCK_NAME, recover, sqlite_engine
from autoxrd.store.writing import Clock, GraphWriter, require_artifacts, utc_now

__all__ = ["ARTIFACTS_NAME", "DATABASE_NAME", "LOCK_NAME", "Clock", "Graph", "utc_now"]


class Graph(GraphWriter):
    """The decision graph of one job in one directory. Make it with `create` or `open`; use it as a context manager."""

    def __init__(
        self, engine: Engine, artifacts: ArtifactStore, job: JobRow, *, lock: JobLock | None, clock: Clock
    ) -> None:
        super().__init__(engine, artifacts, job, clock=clock)
        self._lock = lock

    @classmethod
    def create(cls, directory: Path, job: JobRecord, *, job_id: str | None = None, clock: Clock = utc_now) -> Self:
        """Start the graph of a new job. The artifacts it names must already lie below ``directory/artifacts``.

        Args:
            directory: made where it is missing.
            job: the specification.
            job_id: where a service names the job; else derived from the specification.
            clock: source of the times in the telemetry.

        Raises:
            StorageError: ``job_exists``, ``job_locked``, ``job_not_writable`` or ``artifact_missing``.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                "job_not_writable", f"Cannot make {directory}: {error.strerror}. Choose a writable directory."
            ) from error
        with contextlib.ExitStack() as undo:
            lock = JobLock(directory / LOCK_NAME)
            undo.callback(lock.release)
            database = directory / DATABASE_NAME
            if database.exists():
                raise StorageError(
                    "job_exists", f"{directory} already holds a job: resume it, or give another directory."
                )
            artifacts = ArtifactStore(directory / ARTIFACTS_NAME)
            require_artifacts(artifacts, job.files.values())
            row = job_row(job, json_text({"recorded_at": clock().isoformat()}), job_id)
            # Built aside and renamed, so that a graph without its job is never seen.
            unfinished = directory / f"{DATABASE_NAME}.new"
            unfinished.unlink(missing_ok=True)
            _write_first(unfinished, row)
            unfinished.replace(database)
            sync_directory(directory)
            graph = cls._opened(directory, read_only=False, lock=lock, clock=clock)
            undo.pop_all()
            return graph

    @classmethod
    def open(cls, directory: Path, *, read_only: bool = False, clock: Clock = utc_now) -> Self:
        """Open the graph of an existing job.

        Args:
            directory: where it lies.
            read_only: take no lock and never write: for looking at a job, also while another process runs it.
            clock: source of the times in the telemetry.

        Raises:
            NotFound: ``job_not_found``, there is no graph in this directory.
            StorageError: ``job_locked``, ``job_not_writable``, ``graph_damaged``, ``schema_unknown``, ``schema_old``.
        """
        database = directory / DATABASE_NAME
        if not database.is_file():
            raise NotFound("job_not_found", f"{directory} holds no {DATABASE_NAME}: give the directory of a job.")
        with contextlib.ExitStack() as undo:
            lock = None
            if read_only:
                recover(database)
            else:
                lock = JobLock(directory / LOCK_NAME)
                undo.callback(lock.release)
            graph = cls._opened(directory, read_only=read_only, lock=lock, clock=clock)
            if not read_only:
                graph.artifacts.clear_scratch()
            undo.pop_all()
            return graph

    @classmethod
    def _opened(cls, directory: Path, *, read_only: bool, lock: JobLock | None, clock: Clock) -> Self:
        engine = sqlite_engine(directory / DATABASE_NAME, read_only=read_only)
        try:
            migrate.ensure_current(engine, read_only=read_only)
            with Session(engine) as session:
                job = session.scalars(select(JobRow)).one()
        except DatabaseError as error:
            engine.dispose()
            raise StorageError(
                "graph_damaged",
                f"{directory / DATABASE_NAME} cannot be read as a graph ({error.orig}): restore it from a copy.",
            ) from error
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, ArtifactStore(directory / ARTIFACTS_NAME), job, lock=lock, clock=clock)

    def close(self) -> None:
        """Close the database and give up the lock; the directory is then plain files. A second call does nothing."""
        self._engine.dispose()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Session]:
        if self._lock is None:
            raise StorageError("graph_read_only", "This graph was opened for reading: open it for writing.")
        try:
            with Session(self._engine, expire_on_commit=False) as session, session.begin():
                yield session
        except DatabaseError as error:
            raise StorageError(
                "graph_not_written",
                f"The step could not be recorded ({error.orig}): free space or restore permissions, then resume.",
            ) from error


def _write_first(path: Path, row: JobRow) -> None:
    engine = sqlite_engine(path)
    try:
        migrate.upgrade(engine)
        with Session(engine) as session, session.begin():
            session.add(row)
    finally:
        engine.dispose()
