"""Who may append to a job's graph in the service? Only the holder of its lease, checked in the same transaction."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Self

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from autoxrd.domain.lifecycle import Trigger
from autoxrd.domain.state import FitState
from autoxrd.errors import LeaseLost, NotFound, StorageError
from autoxrd.store.models import EventRow, JobRow, Row
from autoxrd.store.place import append_row, place_of
from autoxrd.store.records import Attempt, EventKind, JobRecord
from autoxrd.store.rows import job_row, json_text, state_artifacts
from autoxrd.store.service import feed, leases, reviews
from autoxrd.store.service.books import book, store
from autoxrd.store.service.database import Database
from autoxrd.store.service.files import NewFile, put_files
from autoxrd.store.service.leases import Lease
from autoxrd.store.service.models import ServiceJobRow
from autoxrd.store.service.transition import move, touch
from autoxrd.store.writing import GraphWriter, require_artifacts, utc_now

__all__ = ["JobGraph"]


class JobGraph(GraphWriter):
    """The graph of one job in the service's database.

    Args:
        database: where it lies.
        lease: the right to append; None for reading.
        job: the job's row of the graph.
    """

    def __init__(self, database: Database, lease: Lease | None, job: JobRow) -> None:
        super().__init__(database.reader, database.artifacts, job)
        self._database = database
        self._lease = lease
        self._booked: ServiceJobRow | None = None
        self._settles: str | None = None

    @classmethod
    def create(cls, database: Database, lease: Lease, record: JobRecord) -> Self:
        """Record the specification of a leased job, and that it was started.

        Raises:
            LeaseLost: somebody else holds the job now.
            StorageError: ``artifact_missing``, ``not_recordable``.
        """
        require_artifacts(database.artifacts, record.files.values())
        row = job_row(record, json_text({"recorded_at": utc_now().isoformat()}), lease.job_id)
        graph = cls(database, lease, row)
        with graph._transaction() as session:
            append_row(session, row)
            graph._append(session, place_of(session, row), EventKind.STARTED, {}, None)
        return graph

    @classmethod
    def open(cls, database: Database, job_id: str, lease: Lease | None = None) -> Self:
        """Open a job's graph.

        Raises:
            NotFound: ``graph_not_begun``, the input has not been read yet.
        """
        with database.reading() as session:
            row = session.get(JobRow, job_id)
            if row is None:
                raise NotFound("graph_not_begun", "This job has no graph yet: its input is still to be read.")
            session.expunge(row)
        return cls(database, lease, row)

    def with_lease(self, lease: Lease) -> None:
        """Go on under a new lease: each claim has its own number."""
        self._lease = lease

    def tell(self, kind: str, data: Mapping[str, Any]) -> None:
        """Add an event to the job's feed, which nothing in the graph says.

        Raises:
            LeaseLost: somebody else holds the job now.
        """
        with self._transaction() as session:
            feed.append(session, self._row(), kind, data)
            touch(self._row())

    def ask_review(self, action: Mapping[str, Any], *, source: Mapping[str, Any], files: Mapping[str, str]) -> None:
        """Put a proposed action before a person; the job waits.

        Raises:
            LeaseLost: somebody else holds the job now.
        """
        with self._transaction() as session:
            reviews.ask(session, self._row(), action, source=source, files=files)

    def refuse_review(self, review_id: str, reason: str) -> None:
        """Say that a person's word cannot be done.

        Raises:
            LeaseLost: somebody else holds the job now.
        """
        with self._transaction() as session:
            reviews.settle(session, self._row(), review_id, reason=reason)

    @contextlib.contextmanager
    def settling(self, review_id: str) -> Iterator[None]:
        """Let the next attempt be what a person asked for: one transaction records it and settles that."""
        self._settles = review_id
        try:
            yield
        finally:
            self._settles = None

    def complete(self, files: Mapping[str, NewFile]) -> None:
        """Make the files of the report known and the job complete, together.

        Raises:
            LeaseLost: somebody else holds the job now.
        """
        require_artifacts(self.artifacts, [f.sha256 for f in files.values()])
        with self._transaction() as session:
            put_files(session, self.job_id, "report", files)
            store(session, self._row(), sum(f.size for f in files.values()))
            move(session, self._row(), Trigger.COMPLETE, {"verdict": self._row().verdict})

    def _row(self) -> ServiceJobRow:
        if self._booked is None:
            raise StorageError("graph_read_only", "The books are kept inside a transaction of the graph only.")
        return self._booked

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Session]:
        if self._lease is None:
            raise StorageError("graph_read_only", "This graph was opened for reading: only a worker appends to it.")
        try:
            # One flush, at the end: the job's row changes with all that is booked, and nothing reads it back.
            with self._database.writing() as session, session.no_autoflush:
                self._booked = leases.check(session, self._lease)
                yield session
        except IntegrityError as error:
            # the fence is checked first, so this is a row that the lease's own holder had already written
            raise LeaseLost("step_recorded_already", f"Job {self.job_id} has this row already.") from error
        finally:
            self._booked = None

    def _wrote(
        self, session: Session, row: Row, *, attempt: Attempt | None = None, state: FitState | None = None
    ) -> None:
        named = [] if state is None else state_artifacts(state)
        named += [] if attempt is None else attempt.files.values()
        if isinstance(row, EventRow):
            named = json.loads(row.artifacts)
        stored = sum(self.artifacts.size(artifact) for artifact in named)
        book(session, self._row(), row, stored, attempt=attempt, state=state)
        if attempt is not None and self._settles is not None:
            reviews.settle(session, self._row(), self._settles, attempt=attempt.ordinal)
