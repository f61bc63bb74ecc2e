"""How is a job recorded? `Graph` writes one job into one directory, one transaction a step, nothing ever changed.

Layout of a job directory (the full description is docs/graph.md)::

    graph.sqlite            jobs, states, edges, events: append-only, hashed (`autoxrd.store.models`, `.hashing`)
    artifacts/ab/cdef...    files by SHA-256, written and flushed before a row names them
    job.lock                held (flock) by the one process that writes

Killing the process at any moment loses at most the step that was not yet committed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Engine, select
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.domain.state import FitState
from autoxrd.errors import NotFound, StorageError
from autoxrd.primitives import StateId
from autoxrd.store import migrate
from autoxrd.store.artifacts import ArtifactStore
from autoxrd.store.durable import sync_directory
from autoxrd.store.lock import JobLock
from autoxrd.store.models import EdgeRow, EventRow, JobRow, StateRow
from autoxrd.store.reading import GraphReader, attempt_of
from autoxrd.store.records import Attempt, EventKind, JobRecord
from autoxrd.store.rows import edge_content, edge_row, event_row, job_row, json_text, state_artifacts, state_row
from autoxrd.store.session import ARTIFACTS_NAME, DATABASE_NAME, LOCK_NAME, recover, sqlite_engine

__all__ = ["ARTIFACTS_NAME", "DATABASE_NAME", "LOCK_NAME", "Clock", "Graph", "utc_now"]

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the present time, UTC."""
    return datetime.now(UTC)


class Graph(GraphReader):
    """The decision graph of one job in one directory. Make it with `create` or `open`; use it as a context manager."""

    def __init__(
        self, engine: Engine, artifacts: ArtifactStore, job: JobRow, *, lock: JobLock | None, clock: Clock
    ) -> None:
        super().__init__(engine, artifacts, job)
        self._lock = lock
        self._clock = clock

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
            _require(artifacts, job.files.values())
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

    def add_root(self, state: FitState, telemetry: Mapping[str, Any] | None = None) -> StateId:
        """Record the state that the engine's ``prepare`` gave.

        Raises:
            StorageError: ``root_exists``, ``artifact_missing``, ``not_recordable``, ``job_finished``.
        """
        _require(self.artifacts, state_artifacts(state))
        with self._step() as session:
            if self._last(session, StateRow) is not None:
                raise StorageError("root_exists", "This graph has its root already: record attempts from it.")
            row = state_row(self._job, None, state, ordinal=0, telemetry=self._telemetry(telemetry))
            session.add(row)
            return StateId(row.id)

    def record(
        self,
        parent: str,
        action: Action,
        decision: Decision,
        candidate: FitState | None = None,
        *,
        planner: Mapping[str, Any],
        error: Mapping[str, Any] | None = None,
        preflight: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        telemetry: Mapping[str, Any] | None = None,
    ) -> Attempt:
        """Record one attempt with its candidate, in one transaction.

        Args:
            parent: the root or an accepted state.
            action: what was proposed.
            decision: what the gate said.
            candidate: what came out; None where nothing did. A candidate equal to an earlier one of the same
                parent is the same node.
            planner: at least ``name``; no times (those are telemetry).
            error: the engine's failure as code, detail, context, where it failed.
            preflight: what the preflight said.
            files: further artifacts by name.
            telemetry: times and durations.

        Raises:
            NotFound: ``state_unknown``, the parent is not in the graph.
            StorageError: ``parent_rejected``, ``accepted_without_candidate``, ``artifact_missing``,
                ``not_recordable``, ``job_finished``.
        """
        named = dict(files or {})
        _require(self.artifacts, [*named.values(), *(state_artifacts(candidate) if candidate else ())])
        if decision.accepted and (candidate is None or action.parent != parent):
            raise StorageError(
                "accepted_without_candidate",
                "An accepted attempt needs the state it led to, and an action that starts from its parent.",
            )
        proposal: dict[str, Any] = {"action": action, "decision": decision, "planner": planner, "files": named}
        proposal |= {"preflight": preflight, "error": error}
        text = self._telemetry(telemetry)
        with self._step() as session:
            origin = self._open_state(session, parent)
            node = None if candidate is None else self._node_for(session, origin, candidate, text)
            previous = self._last(session, EdgeRow)
            ordinal = 1 if previous is None else previous.ordinal + 1
            content = edge_content(ordinal, origin.id, None if node is None else node.id, **proposal)
            edge = edge_row(self._job, origin, node, previous, content, telemetry=text)
            session.add(edge)
            return attempt_of(edge)

    def add_event(
        self, kind: str, data: Mapping[str, Any] | None = None, telemetry: Mapping[str, Any] | None = None
    ) -> None:
        """Append to the job's log. ``resumed`` reopens a finished job; ``finished`` is written by `finish`.

        Raises:
            StorageError: ``event_unknown``.
        """
        if kind not in set(EventKind) - {EventKind.FINISHED}:
            raise StorageError("event_unknown", f"{kind!r:.40} is no event that can be added: use {list(EventKind)}.")
        with self._transaction() as session:
            self._append(session, EventKind(kind), dict(data or {}), telemetry)

    def finish(self, final: str | None, verdict: Mapping[str, Any], telemetry: Mapping[str, Any] | None = None) -> None:
        """Close the job: after this only notes and ``resumed`` can be added, and `verify` finds missing last rows.

        Args:
            final: the state that is the result, root or accepted; None where there is none.
            verdict: what the job says of it.
            telemetry: times and durations.

        Raises:
            NotFound: ``state_unknown`` or ``path_unknown``.
            StorageError: ``job_finished``, ``not_recordable``.
        """
        if final is not None:
            self.accepted_path(final)
        with self._step() as session:
            self._append(session, EventKind.FINISHED, {"final_state": final, "verdict": dict(verdict)}, telemetry)

    def _open_state(self, session: Session, state: str) -> StateRow:
        row = self._state_row(session, state)
        if row.parent_id is not None and self._accepted_edge(session, row) is None:
            raise StorageError("parent_rejected", f"State {state} was rejected: go on from an accepted state.")
        return row

    def _node_for(self, session: Session, origin: StateRow, candidate: FitState, telemetry: str) -> StateRow:
        last = self._last(session, StateRow)
        ordinal = 0 if last is None else last.ordinal + 1
        row = state_row(self._job, origin, candidate, ordinal=ordinal, telemetry=telemetry)
        known = session.get(StateRow, (self.job_id, row.id))
        if known is not None:
            return known
        session.add(row)
        session.flush()  # the edge refers to it
        return row

    def _append(
        self, session: Session, kind: EventKind, data: dict[str, Any], telemetry: Mapping[str, Any] | None
    ) -> None:
        n_states, n_edges, root = self._position(session)
        content = {"kind": str(kind), "data": data, "n_states": n_states, "n_edges": n_edges, "graph_root": root}
        previous = self._last(session, EventRow)
        session.add(event_row(self._job, previous, str(kind), content, telemetry=self._telemetry(telemetry)))

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

    @contextlib.contextmanager
    def _step(self) -> Iterator[Session]:
        with self._transaction() as session:
            if self._finish(session) is not None:
                raise StorageError("job_finished", "This job is finished: add the event 'resumed' to go on with it.")
            yield session

    def _telemetry(self, given: Mapping[str, Any] | None) -> str:
        return json_text({"recorded_at": self._clock().isoformat(), **(given or {})})


def _require(artifacts: ArtifactStore, named: Iterable[str]) -> None:
    for artifact in named:
        artifacts.size(artifact)


def _write_first(path: Path, row: JobRow) -> None:
    engine = sqlite_engine(path)
    try:
        migrate.upgrade(engine)
        with Session(engine) as session, session.begin():
            session.add(row)
    finally:
        engine.dispose()
