"""Which jobs are there, and how does one stand? As their owners see them; a job of somebody else is not there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from autoxrd.errors import NotFound
from autoxrd.store.service.database import Database
from autoxrd.store.service.models import ServiceJobRow

__all__ = [
    "Filters",
    "JobPage",
    "JobView",
    "SeriesView",
    "count_states",
    "find_job",
    "list_jobs",
    "list_series",
    "owner_of",
    "view_of",
]


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as its owner sees it.

    Args:
        version: rises with every visible change.
        error: problem (code, detail) of a failed or crashed job.
        feed_last: number of its newest event.
    """

    id: str
    title: str
    state: str
    queue: str
    priority: int
    engine: str
    planner: str
    version: int
    created_at: str
    updated_at: str
    finished_at: str | None
    verdict: str | None
    current_state: str | None
    rwp: float | None
    gof: float | None
    steps_used: int
    wall_seconds_used: float
    engine_seconds_used: float
    tokens_used: int
    money_used: float
    stored_bytes: int
    feed_last: int
    request: Mapping[str, Any]
    error: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Filters:
    """What to list; None and empty let everything through.

    Args:
        text: part of the title, letter case ignored.
        created_after, created_before: ISO 8601, UTC.
    """

    states: Sequence[str] = ()
    engine: str | None = None
    planner: str | None = None
    verdict: str | None = None
    text: str | None = None
    series: str | None = None
    created_after: str | None = None
    created_before: str | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of jobs, newest first; ``next_cursor`` leads to the next page, None at the end."""

    jobs: Sequence[JobView]
    next_cursor: str | None


def find_job(database: Database, job_id: str, owner_id: str | None) -> JobView:
    """Return one job.

    Args:
        database: the service's database.
        job_id: its id.
        owner_id: whose job it must be; None for the machinery itself.

    Raises:
        NotFound: ``job_not_found``.
    """
    with database.reading() as session:
        row = session.get(ServiceJobRow, job_id)
    if row is None or row.deleted_at is not None or (owner_id is not None and row.owner_id != owner_id):
        raise NotFound("job_not_found", f"There is no job {job_id!r:.60}.")
    return view_of(row)


def owner_of(database: Database, job_id: str) -> str:
    """Return the id of a job's owner.

    Raises:
        NotFound: ``job_not_found``.
    """
    with database.reading() as session:
        found = session.scalar(select(ServiceJobRow.owner_id).where(ServiceJobRow.id == job_id))
    if found is None:
        raise NotFound("job_not_found", f"There is no job {job_id!r:.60}.")
    return found


def list_jobs(
    database: Database, owner_id: str, filters: Filters, *, cursor: str | None = None, limit: int = 50
) -> JobPage:
    """Return a page of an owner's jobs, newest first.

    Args:
        database: the service's database.
        owner_id: whose jobs.
        filters: which of them.
        cursor: id of the last job of the page before.
        limit: largest number of jobs.
    """
    mine = (ServiceJobRow.owner_id == owner_id, ServiceJobRow.deleted_at.is_(None))
    query = select(ServiceJobRow).where(*mine).order_by(ServiceJobRow.id.desc())
    if cursor is not None:
        query = query.where(ServiceJobRow.id < cursor)
    if filters.states:
        query = query.where(ServiceJobRow.state.in_(list(filters.states)))
    for column, wanted in (
        (ServiceJobRow.engine, filters.engine),
        (ServiceJobRow.planner, filters.planner),
        (ServiceJobRow.verdict, filters.verdict),
        (ServiceJobRow.series, filters.series),
    ):
        if wanted is not None:
            query = query.where(column == wanted)
    if filters.text:
        query = query.where(func.lower(ServiceJobRow.title).contains(filters.text.lower(), autoescape=True))
    if filters.created_after is not None:
        query = query.where(ServiceJobRow.created_at >= filters.created_after)
    if filters.created_before is not None:
        query = query.where(ServiceJobRow.created_at < filters.created_before)
    with database.reading() as session:
        rows = session.scalars(query.limit(limit + 1)).all()
    jobs = [view_of(row) for row in rows[:limit]]
    return JobPage(jobs, jobs[-1].id if len(rows) > limit else None)


@dataclass(frozen=True, slots=True)
class SeriesView:
    """A series: how many jobs it has, and when the newest was submitted."""

    name: str
    jobs: int
    newest: str


def list_series(database: Database, owner_id: str, *, limit: int = 200) -> list[SeriesView]:
    """Return an owner's series, the one with the newest job first."""
    newest = func.max(ServiceJobRow.created_at)
    mine = (ServiceJobRow.owner_id == owner_id, ServiceJobRow.deleted_at.is_(None), ServiceJobRow.series.is_not(None))
    query = select(ServiceJobRow.series, func.count(), newest).where(*mine).group_by(ServiceJobRow.series)
    with database.reading() as session:
        rows = session.execute(query.order_by(newest.desc()).limit(limit)).all()
        return [SeriesView(str(name), int(count), str(at)) for name, count, at in rows]


def count_states(database: Database) -> Mapping[str, int]:
    """Return the number of jobs in each state, of all owners: for the metrics."""
    with database.reading() as session:
        found = session.execute(select(ServiceJobRow.state, func.count()).group_by(ServiceJobRow.state))
        return {state: int(count) for state, count in found}


_PLAIN = tuple(name for name in JobView.__dataclass_fields__ if name not in ("request", "error"))


def view_of(row: ServiceJobRow) -> JobView:
    """Return a job as its owner sees it."""
    return JobView(
        **{name: getattr(row, name) for name in _PLAIN},
        request=json.loads(row.request),
        error=None if row.error is None else json.loads(row.error),
    )
