"""What does a graph answer? All questions that change nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from autoxrd.domain.state import FitState
from autoxrd.errors import NotFound
from autoxrd.primitives import StateId
from autoxrd.store.artifacts import ArtifactStore
from autoxrd.store.export import export_rows, finish_of
from autoxrd.store.hashing import graph_root
from autoxrd.store.models import EdgeRow, EventRow, JobRow, StateRow
from autoxrd.store.records import Attempt, Event, EventKind, Finish, JobRecord, Node, NodeStatus
from autoxrd.store.rows import attempt_of

__all__ = ["GraphReader"]

OrdinalT = TypeVar("OrdinalT", StateRow, EdgeRow, EventRow)


class GraphReader:
    """The reading half of `autoxrd.store.graph.Graph`.

    Args:
        engine: on a database of the newest revision.
        artifacts: where the bytes are.
        job: the job's row, detached.
    """

    def __init__(self, engine: Engine, artifacts: ArtifactStore, job: JobRow) -> None:
        self._engine = engine
        self._job = job
        self.artifacts = artifacts

    @property
    def job_id(self) -> str:
        """Id of the job in its database."""
        return self._job.job_id

    @property
    def job(self) -> JobRecord:
        """The specification."""
        content = json.loads(self._job.content)
        content.pop("schema")
        return JobRecord.model_validate(content)

    def root(self) -> StateId | None:
        """Return the root state, None where none was recorded yet."""
        with Session(self._engine) as session:
            found = session.scalar(
                select(StateRow.id).where(StateRow.job_id == self.job_id, StateRow.parent_id.is_(None))
            )
        return None if found is None else StateId(found)

    def state(self, state: str) -> FitState:
        """Return a recorded state.

        Raises:
            NotFound: ``state_unknown``.
        """
        with Session(self._engine) as session:
            return FitState.model_validate_json(self._state_row(session, state).content)

    def node(self, state: str) -> Node:
        """Return a state with its place in the graph.

        Raises:
            NotFound: ``state_unknown``.
        """
        with Session(self._engine) as session:
            return _node(self._state_row(session, state), self._reached(session))

    def states(self) -> list[Node]:
        """Return all states, accepted and rejected, in the order of recording."""
        with Session(self._engine) as session:
            reached = self._reached(session)
            return [_node(row, reached) for row in self._rows(session, StateRow)]

    def attempts(self, parent: str | None = None) -> list[Attempt]:
        """Return the attempts from one state, or all, in the order of recording."""
        query = select(EdgeRow).where(EdgeRow.job_id == self.job_id).order_by(EdgeRow.ordinal)
        if parent is not None:
            query = query.where(EdgeRow.parent_id == parent)
        with Session(self._engine) as session:
            return [attempt_of(row) for row in session.scalars(query)]

    def attempt(self, ordinal: int) -> Attempt:
        """Return one attempt.

        Raises:
            NotFound: ``attempt_unknown``.
        """
        query = select(EdgeRow).where(EdgeRow.job_id == self.job_id, EdgeRow.ordinal == ordinal)
        with Session(self._engine) as session:
            row = session.scalars(query).one_or_none()
            if row is None:
                raise NotFound("attempt_unknown", f"There is no attempt {ordinal} in this graph (yet).")
            return attempt_of(row)

    def n_attempts(self) -> int:
        """Return how many attempts were recorded."""
        query = select(func.count()).where(EdgeRow.job_id == self.job_id)
        with Session(self._engine) as session:
            return int(session.scalar(query) or 0)

    def events(self) -> list[Event]:
        """Return the log in order."""
        with Session(self._engine) as session:
            return [_event(row) for row in self._rows(session, EventRow)]

    def current(self) -> StateId | None:
        """Return the last accepted state; the root where none was accepted; None without a root."""
        query = (
            select(EdgeRow.candidate_id)
            .where(EdgeRow.job_id == self.job_id, EdgeRow.status == "accepted")
            .order_by(EdgeRow.ordinal.desc())
            .limit(1)
        )
        with Session(self._engine) as session:
            found = session.scalar(query)
        return self.root() if found is None else StateId(found)

    def leaves(self) -> list[StateId]:
        """Return the accepted states (or the root) from which no accepted attempt leads on, oldest first."""
        with Session(self._engine) as session:
            reached = self._reached(session)
            states = self._rows(session, StateRow)
        inner = {row.parent_id for row in states if row.id in reached}
        return [StateId(r.id) for r in states if r.id not in inner and (r.id in reached or r.parent_id is None)]

    def accepted_path(self, to: str | None = None) -> list[tuple[Attempt, FitState]]:
        """Return the accepted attempts with the states they gave, from the root to a state.

        Args:
            to: a root or accepted state; the current one where None.

        Raises:
            NotFound: ``state_unknown``, or ``path_unknown`` where no accepted attempt leads there.
        """
        target = self.current() if to is None else to
        path: list[tuple[Attempt, FitState]] = []
        if target is None:
            return path
        with Session(self._engine) as session:
            row = self._state_row(session, target)
            while row.parent_id is not None:
                edge = self._accepted_edge(session, row)
                if edge is None:
                    raise NotFound("path_unknown", f"State {row.id} was rejected: no accepted path leads to it.")
                path.append((attempt_of(edge), FitState.model_validate_json(row.content)))
                row = self._state_row(session, row.parent_id)
        return path[::-1]

    def finished(self) -> Finish | None:
        """Return how the job ended, None while it is open (not finished yet, or resumed since)."""
        with Session(self._engine) as session:
            return self._finish(session)

    def root_hash(self) -> str:
        """Return ``graph_root``: one hash over the ordered chain hashes of the job, all states and all edges."""
        with Session(self._engine) as session:
            return self._position(session)[2]

    def export(self) -> dict[str, Any]:
        """Return the content of graph.json: everything but clocks, so equal jobs give equal text.

        Raises:
            StorageError: ``artifact_missing``.
        """
        with Session(self._engine) as session:
            return export_rows(
                self._job,
                self._rows(session, StateRow),
                self._rows(session, EdgeRow),
                self._rows(session, EventRow),
                size=self.artifacts.size,
            )

    def _rows(self, session: Session, table: type[OrdinalT]) -> Sequence[OrdinalT]:
        return session.scalars(select(table).where(table.job_id == self.job_id).order_by(table.ordinal)).all()

    def _finish(self, session: Session) -> Finish | None:
        return finish_of(self._rows(session, EventRow))

    def _state_row(self, session: Session, state: str) -> StateRow:
        row = session.get(StateRow, (self.job_id, state))
        if row is None:
            raise NotFound("state_unknown", f"There is no state {state!r:.40} in this graph: list them with `graph`.")
        return row

    def _accepted_edge(self, session: Session, state: StateRow) -> EdgeRow | None:
        query = (
            select(EdgeRow)
            .where(EdgeRow.job_id == self.job_id, EdgeRow.candidate_id == state.id, EdgeRow.status == "accepted")
            .order_by(EdgeRow.ordinal)
            .limit(1)
        )
        return session.scalars(query).one_or_none()

    def _reached(self, session: Session) -> frozenset[str]:
        query = select(EdgeRow.candidate_id).where(EdgeRow.job_id == self.job_id, EdgeRow.status == "accepted")
        return frozenset(found for found in session.scalars(query) if found is not None)

    def _position(self, session: Session) -> tuple[int, int, str]:
        states, edges = (
            session.scalars(select(t.chain_hash).where(t.job_id == self.job_id).order_by(t.ordinal)).all()
            for t in (StateRow, EdgeRow)
        )
        return len(states), len(edges), graph_root(self._job.chain_hash, states, edges)


def _node(row: StateRow, reached: frozenset[str]) -> Node:
    status = NodeStatus.ACCEPTED if row.id in reached else NodeStatus.REJECTED
    return Node(
        id=StateId(row.id),
        ordinal=row.ordinal,
        parent=None if row.parent_id is None else StateId(row.parent_id),
        status=NodeStatus.ROOT if row.parent_id is None else status,
        state=FitState.model_validate_json(row.content),
        content_hash=row.content_hash,
        chain_hash=row.chain_hash,
        telemetry=json.loads(row.telemetry),
    )


def _event(row: EventRow) -> Event:
    content = json.loads(row.content)
    return Event(
        ordinal=row.ordinal,
        kind=EventKind(row.kind),
        data=content["data"],
        n_states=content["n_states"],
        n_edges=content["n_edges"],
        graph_root=content["graph_root"],
        telemetry=json.loads(row.telemetry),
    )
