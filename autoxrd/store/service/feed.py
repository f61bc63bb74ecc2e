"""What has happened to a job, in order? Events numbered without gaps, written in the transaction that they tell of.

Whoever follows a job (a browser, a webhook, a script) names the last number it saw and gets all after it: nothing is
lost over a broken connection, and nothing is told that was not committed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select

from autoxrd.primitives import canonical_json
from autoxrd.store.models import table_of
from autoxrd.store.service import outbox
from autoxrd.store.service.database import Database, Transaction, now_text
from autoxrd.store.service.models import FeedRow, ServiceJobRow

__all__ = ["FeedEvent", "append", "events_after", "write"]

_INSERT = insert(table_of(FeedRow))


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """One event.

    Args:
        number: 1, 2, ... within the job.
        kind: ``job.accepted``, ``job.state``, ``step.started``, ``step.recorded``, ...: docs/service.md lists them.
        at: ISO 8601, UTC.
    """

    job_id: str
    number: int
    kind: str
    at: str
    data: Mapping[str, Any]


def append(session: Transaction, job: ServiceJobRow, kind: str, data: Mapping[str, Any]) -> None:
    """Add an event; the caller holds the lock on the job's row, so numbers follow the order of commits."""
    write(session, job, kind, data)
    outbox.enqueue(session, job, kind, job.feed_last, data)


def write(session: Transaction, job: ServiceJobRow, kind: str, data: Mapping[str, Any]) -> None:
    """Add an event as `append` does, for a caller who sees to the outbox in the same transaction."""
    job.feed_last += 1
    row = {"number": job.feed_last, "kind": kind, "at": now_text(), "data": canonical_json(dict(data))}
    session.execute(_INSERT, {"job_id": job.id, **row})


def events_after(database: Database, job_id: str, number: int, *, limit: int = 500) -> Sequence[FeedEvent]:
    """Return the events of a job after a number, at most ``limit``, in order."""
    query = (
        select(FeedRow).where(FeedRow.job_id == job_id, FeedRow.number > number).order_by(FeedRow.number).limit(limit)
    )
    with database.reading() as session:
        return [
            FeedEvent(row.job_id, row.number, row.kind, row.at, json.loads(row.data)) for row in session.scalars(query)
        ]
