"""Where does a new row go, and what does it hang on? One question to the database for all that an append must know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, Insert, ScalarSelect, Table, bindparam, exists, insert, select
from sqlalchemy.orm import Session

from autoxrd.errors import NotFound, StorageError
from autoxrd.store.models import EdgeRow, EventRow, JobRow, Row, StateRow, column_values, table_of
from autoxrd.store.records import EventKind

__all__ = ["Link", "Place", "append_row", "is_recorded", "place_of"]


@dataclass(frozen=True, slots=True)
class Link:
    """A row that another one hangs on."""

    id: str
    chain_hash: str


@dataclass(frozen=True, slots=True)
class Place:
    """The end of a job's graph, and the state that something is to be tried from.

    Args:
        next_state, next_edge, next_event: ordinals of the next rows.
        last_edge, last_event: chain hashes of the last rows, the job's where there is none.
        finished: whether the log says that the job has ended and was not reopened.
        parent: the state asked for; None where it is not there, or none was asked for.
        parent_open: whether it is the root or was accepted.
    """

    next_state: int
    next_edge: int
    next_event: int
    last_edge: str
    last_event: str
    finished: bool
    parent: Link | None
    parent_open: bool

    def origin(self, asked: str) -> Link:
        """Return the state that an attempt starts from.

        Raises:
            NotFound: ``state_unknown``.
            StorageError: ``parent_rejected``.
        """
        if self.parent is None:
            raise NotFound("state_unknown", f"There is no state {asked!r:.40} in this graph: list them with `graph`.")
        if not self.parent_open:
            raise StorageError("parent_rejected", f"State {asked} was rejected: go on from an accepted state.")
        return self.parent

    def require_open(self) -> None:
        """Let nothing be appended to a job that has ended.

        Raises:
            StorageError: ``job_finished``.
        """
        if self.finished:
            raise StorageError("job_finished", "This job is finished: add the event 'resumed' to go on with it.")


_JOB: BindParameter[str] = bindparam("job")
_STATE: BindParameter[str | None] = bindparam("state")


# Of tables, not of mapped classes, and built once: the mapping and the building would cost more than the execution.
_STATES, _EDGES, _EVENTS = table_of(StateRow), table_of(EdgeRow), table_of(EventRow)


def _newest(table: Table, name: str) -> ScalarSelect[Any]:
    query = select(table.c[name]).where(table.c.job_id == _JOB).order_by(table.c.ordinal.desc()).limit(1)
    return query.scalar_subquery()


def _asked(name: str) -> ScalarSelect[Any]:
    return select(_STATES.c[name]).where(_STATES.c.job_id == _JOB, _STATES.c.id == _STATE).scalar_subquery()


_PLACE = select(
    _newest(_STATES, "ordinal"),
    _newest(_EDGES, "ordinal"),
    _newest(_EVENTS, "ordinal"),
    _newest(_EDGES, "chain_hash"),
    _newest(_EVENTS, "chain_hash"),
    select(_EVENTS.c.kind)
    .where(_EVENTS.c.job_id == _JOB, _EVENTS.c.kind.in_([EventKind.FINISHED.value, EventKind.RESUMED.value]))
    .order_by(_EVENTS.c.ordinal.desc())
    .limit(1)
    .scalar_subquery(),
    _asked("chain_hash"),
    _asked("parent_id"),
    exists().where(_EDGES.c.job_id == _JOB, _EDGES.c.candidate_id == _STATE, _EDGES.c.status == "accepted"),
)
_RECORDED = select(exists().where(_STATES.c.job_id == _JOB, _STATES.c.id == _STATE))
_INSERTS: dict[type[Row], Insert] = {row: insert(table_of(row)) for row in (JobRow, StateRow, EdgeRow, EventRow)}


def place_of(session: Session, job: JobRow, parent: str | None = None) -> Place:
    """Ask where the next rows of a job go, and for one of its states."""
    found = session.execute(_PLACE, {"job": job.job_id, "state": parent}).one()
    state, edge, event, last_edge, last_event, ending, chain, grandparent, accepted = found
    return Place(
        next_state=0 if state is None else state + 1,
        next_edge=1 if edge is None else edge + 1,
        next_event=1 if event is None else event + 1,
        last_edge=last_edge or job.chain_hash,
        last_event=last_event or job.chain_hash,
        finished=ending == EventKind.FINISHED,
        parent=None if parent is None or chain is None else Link(parent, chain),
        parent_open=grandparent is None or bool(accepted),
    )


def is_recorded(session: Session, job: JobRow, state: str) -> bool:
    """Return whether a state is in the graph already."""
    return bool(session.scalar(_RECORDED, {"job": job.job_id, "state": state}))


def append_row(session: Session, row: Row) -> None:
    """Insert a sealed row."""
    session.execute(_INSERTS[type(row)], {**column_values(row), "row_hash": row.row_hash})
