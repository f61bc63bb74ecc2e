"""Which tables hold a graph? Four, all append-only; the migrations make them, these classes map them.

Every row has ``content`` (canonical JSON, free of clocks), ``content_hash``, ``artifacts`` (JSON list of the
artifact ids it names), ``chain_hash``, ``telemetry`` (JSON: times and durations) and ``row_hash``; see
`autoxrd.store.hashing`. The other columns repeat parts of the content for queries and are checked against it.
JSON is stored as text because the hashes are over its exact bytes.
"""

from __future__ import annotations

from sqlalchemy import ForeignKeyConstraint, Index, Integer, MetaData, String, Table, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

__all__ = ["Base", "EdgeRow", "EventRow", "JobRow", "Row", "StateRow", "column_values", "table_of"]


class Base(DeclarativeBase):
    """Declarative base with constraint names that are the same on every database."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Row(Base):
    """What every row has."""

    __abstract__ = True

    job_id: Mapped[str] = mapped_column(String(64), primary_key=True, sort_order=-10)
    content: Mapped[str] = mapped_column(Text, sort_order=10)
    content_hash: Mapped[str] = mapped_column(String(64), sort_order=11)
    artifacts: Mapped[str] = mapped_column(Text, sort_order=12)
    chain_hash: Mapped[str] = mapped_column(String(64), sort_order=13)
    telemetry: Mapped[str] = mapped_column(Text, sort_order=14)
    row_hash: Mapped[str] = mapped_column(String(64), sort_order=15)


class JobRow(Row):
    """What was asked: the specification, complete."""

    __tablename__ = "jobs"


class StateRow(Row):
    """A node: a fit that was computed. Whether it was accepted stands on the edges."""

    __tablename__ = "states"
    __table_args__ = (
        UniqueConstraint("job_id", "ordinal"),
        ForeignKeyConstraint(["job_id"], ["jobs.job_id"]),
        ForeignKeyConstraint(["job_id", "parent_id"], ["states.job_id", "states.id"]),
    )

    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    ordinal: Mapped[int] = mapped_column(Integer)
    parent_id: Mapped[str | None] = mapped_column(String(16))
    stage: Mapped[str] = mapped_column(String(32))


class EdgeRow(Row):
    """An attempt, accepted or rejected."""

    __tablename__ = "edges"
    __table_args__ = (
        UniqueConstraint("job_id", "id"),
        ForeignKeyConstraint(["job_id"], ["jobs.job_id"]),
        ForeignKeyConstraint(["job_id", "parent_id"], ["states.job_id", "states.id"]),
        ForeignKeyConstraint(["job_id", "candidate_id"], ["states.job_id", "states.id"]),
        Index(None, "job_id", "parent_id"),
        Index(None, "job_id", "candidate_id"),
    )

    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    id: Mapped[str] = mapped_column(String(16))
    parent_id: Mapped[str] = mapped_column(String(16))
    candidate_id: Mapped[str | None] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16))
    kind: Mapped[str] = mapped_column(String(32))
    planner: Mapped[str] = mapped_column(String(64))


class EventRow(Row):
    """What happened to the job as a whole: started, interrupted, resumed, finished, ..."""

    __tablename__ = "events"
    __table_args__ = (ForeignKeyConstraint(["job_id"], ["jobs.job_id"]),)

    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(32))


def table_of(row: type[DeclarativeBase]) -> Table:
    """Return the table of a mapped class, for statements that need no mapping."""
    table = row.__table__
    assert isinstance(table, Table)
    return table


def column_values(row: Row) -> dict[str, object]:
    """Return every column of a row but ``row_hash``, for `autoxrd.store.hashing.row_hash`."""
    return {c.key: getattr(row, c.key) for c in row.__table__.columns if c.key != "row_hash"}
