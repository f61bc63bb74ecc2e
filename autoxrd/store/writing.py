"""How does a step become rows, whatever database holds them? One transaction a step, nothing ever changed.

`GraphWriter` knows the rules of appending; where the rows go and who may write them is its subclasses' business:
`autoxrd.store.graph.Graph` (one job in one directory) and `autoxrd.store.service.job_graph.JobGraph` (many jobs in
one database).
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.domain.state import FitState
from autoxrd.errors import StorageError
from autoxrd.primitives import StateId
from autoxrd.store.artifacts import ArtifactStore
from autoxrd.store.models import JobRow, Row
from autoxrd.store.place import Link, Place, append_row, is_recorded, place_of
from autoxrd.store.reading import GraphReader
from autoxrd.store.records import Attempt, EventKind
from autoxrd.store.rows import EdgeEnds, edge_content, edge_row, event_row, json_text, state_artifacts, state_row

__all__ = ["Clock", "GraphWriter", "require_artifacts", "utc_now"]

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the present time, UTC."""
    return datetime.now(UTC)


def require_artifacts(artifacts: ArtifactStore, named: Iterable[str]) -> None:
    """Let no row name a file that is not there.

    Raises:
        StorageError: ``artifact_missing``.
    """
    for artifact in named:
        artifacts.size(artifact)


class GraphWriter(GraphReader, abc.ABC):
    """The appending half of a decision graph.

    Args:
        engine: for the reading half.
        artifacts: where the bytes are.
        job: the job's row, detached.
        clock: source of the times in the telemetry.
    """

    def __init__(self, engine: Engine, artifacts: ArtifactStore, job: JobRow, *, clock: Clock = utc_now) -> None:
        super().__init__(engine, artifacts, job)
        self._clock = clock

    @abc.abstractmethod
    def _transaction(self) -> contextlib.AbstractContextManager[Session]:
        """Return one transaction in which the writer may append: committed on leaving, rolled back on an error."""

    def _wrote(
        self, session: Session, row: Row, *, attempt: Attempt | None = None, state: FitState | None = None
    ) -> None:
        """Called with each row before its commit; a service keeps its own books in the same transaction.

        Args:
            session: the transaction.
            row: what was just inserted: the root, an edge, or an event.
            attempt: what an edge says.
            state: the root, or the edge's candidate.
        """

    def add_root(self, state: FitState, telemetry: Mapping[str, Any] | None = None) -> StateId:
        """Record the state that the engine's ``prepare`` gave.

        Raises:
            StorageError: ``root_exists``, ``artifact_missing``, ``not_recordable``, ``job_finished``.
        """
        require_artifacts(self.artifacts, state_artifacts(state))
        with self._transaction() as session:
            place = place_of(session, self._job)
            place.require_open()
            if place.next_state:
                raise StorageError("root_exists", "This graph has its root already: record attempts from it.")
            row = state_row(self._job, None, state, ordinal=0, telemetry=self._telemetry(telemetry))
            append_row(session, row)
            self._wrote(session, row, state=state)
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
        require_artifacts(self.artifacts, [*named.values(), *(state_artifacts(candidate) if candidate else ())])
        if decision.accepted and (candidate is None or action.parent != parent):
            raise StorageError(
                "accepted_without_candidate",
                "An accepted attempt needs the state it led to, and an action that starts from its parent.",
            )
        proposal: dict[str, Any] = {"action": action, "decision": decision, "planner": planner, "files": named}
        proposal |= {"preflight": preflight, "error": error}
        text = self._telemetry(telemetry)
        with self._transaction() as session:
            place = place_of(session, self._job, parent)
            place.require_open()
            origin = place.origin(parent)
            node = None if candidate is None else self._node_for(session, place, origin, candidate, text)
            content = edge_content(place.next_edge, parent, None if node is None else node.id, **proposal)
            ends = EdgeEnds(origin, node, place.last_edge)
            edge, attempt = edge_row(self._job, ends, content, telemetry=text)
            append_row(session, edge)
            self._wrote(session, edge, attempt=attempt, state=candidate)
            return attempt

    def add_event(
        self,
        kind: str,
        data: Mapping[str, Any] | None = None,
        telemetry: Mapping[str, Any] | None = None,
        *,
        files: Mapping[str, str] | None = None,
    ) -> None:
        """Append to the job's log. ``resumed`` reopens a finished job; ``finished`` is written by `finish`.

        Args:
            kind: an `EventKind`.
            data: what happened.
            telemetry: times and durations.
            files: artifacts by name, which become the data's ``files``.

        Raises:
            StorageError: ``event_unknown``, ``artifact_missing``.
        """
        if kind not in set(EventKind) - {EventKind.FINISHED}:
            raise StorageError("event_unknown", f"{kind!r:.40} is no event that can be added: use {list(EventKind)}.")
        content = dict(data or {})
        if files:
            require_artifacts(self.artifacts, files.values())
            content["files"] = dict(files)
        with self._transaction() as session:
            self._append(session, place_of(session, self._job), EventKind(kind), content, telemetry)

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
        with self._transaction() as session:
            place = place_of(session, self._job)
            place.require_open()
            said = {"final_state": final, "verdict": dict(verdict)}
            self._append(session, place, EventKind.FINISHED, said, telemetry)

    def _node_for(self, session: Session, place: Place, origin: Link, candidate: FitState, telemetry: str) -> Link:
        row = state_row(self._job, origin, candidate, ordinal=place.next_state, telemetry=telemetry)
        if not is_recorded(session, self._job, row.id):
            append_row(session, row)
        return Link(row.id, row.chain_hash)

    def _append(
        self,
        session: Session,
        place: Place,
        kind: EventKind,
        data: dict[str, Any],
        telemetry: Mapping[str, Any] | None,
    ) -> None:
        n_states, n_edges, root = self._position(session)
        content = {"kind": str(kind), "data": data, "n_states": n_states, "n_edges": n_edges, "graph_root": root}
        text = self._telemetry(telemetry)
        row = event_row(self._job, place.next_event, place.last_event, content, telemetry=text)
        append_row(session, row)
        self._wrote(session, row)

    def _telemetry(self, given: Mapping[str, Any] | None) -> str:
        return json_text({"recorded_at": self._clock().isoformat(), **(given or {})})
