"""Which messages are to be sent to whom? Written in the transaction of the event that they tell of, sent later.

A message is sent at least once: its id stays the same over all attempts, and a receiver knows by it what it has had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update

from autoxrd.errors import NotFound
from autoxrd.primitives import canonical_json
from autoxrd.store.models import table_of
from autoxrd.store.service.database import Database, Transaction, new_id, now_text, time_text
from autoxrd.store.service.models import DeliveryRow, ServiceJobRow, WebhookRow

__all__ = ["KINDS", "DeliveryView", "Outcome", "Parcel", "deliveries", "due", "enqueue", "note", "redeliver"]

KINDS = ("job.accepted", "step.recorded", "job.completed", "job.abstained", "job.failed")
"""What can be sent."""

BACKOFF_SECONDS = (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
"""Pauses after the first, second, ... failed attempt; the schedule that the Standard Webhooks specification gives
(version 1.0, "Deliverability and reliability"). After the last of them a message counts as failed."""

CLAIM_SECONDS = 60
"""So long nobody else takes a message that is being sent; longer than an attempt may last."""

KEPT_ATTEMPTS = 50
_INSERT = insert(table_of(DeliveryRow))
_WEBHOOKS = table_of(WebhookRow)
_HOOKS = select(_WEBHOOKS.c.id, _WEBHOOKS.c.url, _WEBHOOKS.c.kinds, _WEBHOOKS.c.every_job).where(
    _WEBHOOKS.c.owner_id == bindparam("owner"), _WEBHOOKS.c.disabled_at.is_(None)
)

HOOKS_OF_OWNER = (
    select(func.count())
    .where(_WEBHOOKS.c.owner_id == bindparam("owner"), _WEBHOOKS.c.disabled_at.is_(None))
    .scalar_subquery()
)
"""How many an owner has; the parameter is named ``owner``."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message that is to be sent now.

    Args:
        attempt: 1, 2, ...
        secrets: with which it is signed, the newest first.
    """

    id: str
    webhook_id: str
    url: str
    body: str
    attempt: int
    secrets: Sequence[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt.

    Args:
        status: HTTP status; None where there was no answer.
        error: why it failed; None where it was taken.
        seconds: how long it took.
        gone: True where the receiver wants nothing more, ever.
        wait_seconds: how long the receiver asks to be left alone.
    """

    status: int | None
    error: str | None
    seconds: float = 0.0
    gone: bool = False
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """A message and what was done to deliver it; ``history`` has one entry an attempt."""

    id: str
    job_id: str
    kind: str
    status: str
    attempts: int
    next_at: str | None
    history: Sequence[Mapping[str, Any]]
    created_at: str
    body: Mapping[str, Any]


def enqueue(session: Transaction, job: ServiceJobRow, kind: str, number: int, data: Mapping[str, Any]) -> None:
    """Put an event of the feed into the outbox, for every webhook of the job's owner that wants it."""
    told = _told(kind, data)
    if told is None:
        return
    hooks = session.execute(_HOOKS, {"owner": job.owner_id}).all()
    callback = json.loads(job.request).get("callback") if hooks else None
    now = now_text()
    content = {"job": job.id, "event": number, "title": job.title, **data}
    body = canonical_json({"type": told, "timestamp": now, "data": content})
    for hook in hooks:
        if told in json.loads(hook.kinds) and (hook.every_job or hook.url == callback):
            row = {"id": new_id(), "webhook_id": hook.id, "job_id": job.id, "kind": told, "body": body}
            state = {"status": "pending", "attempts": 0, "next_at": now, "history": "[]", "created_at": now}
            session.execute(_INSERT, {**row, **state})


def _told(kind: str, data: Mapping[str, Any]) -> str | None:
    if kind != "job.state":
        return kind if kind in KINDS else None
    if data["to"] == "completed":
        return "job.abstained" if data.get("verdict") == "abstained" else "job.completed"
    return "job.failed" if data["to"] in ("failed", "crashed") else None


def due(database: Database, now: datetime, *, limit: int = 20) -> list[Parcel]:
    """Claim messages whose time has come; each is counted as attempted."""
    query = (
        select(DeliveryRow, WebhookRow)
        .join(WebhookRow, WebhookRow.id == DeliveryRow.webhook_id)
        .where(DeliveryRow.status == "pending", DeliveryRow.next_at <= time_text(now))
        .order_by(DeliveryRow.next_at, DeliveryRow.id)
        .limit(limit)
    )
    with database.reading() as session:  # most often there is nothing: ask without taking the writer's lock
        if not session.execute(query.limit(1)).first():
            return []
    parcels = []
    query = query.with_for_update(of=DeliveryRow, skip_locked=True)
    with database.writing() as session:
        for row, hook in session.execute(query).all():
            row.attempts += 1
            row.next_at = time_text(now + timedelta(seconds=CLAIM_SECONDS))
            valid = [s["secret"] for s in json.loads(hook.secrets) if (s["until"] or "9") > time_text(now)]
            parcels.append(Parcel(row.id, hook.id, hook.url, row.body, row.attempts, valid))
    return parcels


def note(database: Database, parcel: Parcel, outcome: Outcome, now: datetime) -> None:
    """Write down what came of an attempt, and when the next one is due."""
    entry = {"at": time_text(now), "status": outcome.status, "error": outcome.error, "seconds": outcome.seconds}
    with database.writing() as session:
        row = session.get_one(DeliveryRow, parcel.id, with_for_update=True)
        row.history = canonical_json([*json.loads(row.history), entry][-KEPT_ATTEMPTS:])
        if row.attempts != parcel.attempt or row.status != "pending":
            return  # it took longer than the claim, or was asked for anew: whoever has it now says what becomes of it
        if outcome.error is None:
            row.status = "delivered"
        elif outcome.gone or parcel.attempt > len(BACKOFF_SECONDS):
            row.status = "failed"
        else:
            pause = max(BACKOFF_SECONDS[parcel.attempt - 1], min(outcome.wait_seconds, BACKOFF_SECONDS[-1]))
            row.next_at = time_text(now + timedelta(seconds=pause))
        if outcome.gone:
            gone = update(WebhookRow).where(WebhookRow.id == parcel.webhook_id)
            session.execute(gone.values(disabled_at=time_text(now)))


def deliveries(
    database: Database, webhook_id: str, *, status: str | None = None, before: str | None = None, limit: int = 50
) -> list[DeliveryView]:
    """Return the messages of a webhook, newest first, older than one of them."""
    query = select(DeliveryRow).where(DeliveryRow.webhook_id == webhook_id).order_by(DeliveryRow.id.desc()).limit(limit)
    if status is not None:
        query = query.where(DeliveryRow.status == status)
    if before is not None:
        query = query.where(DeliveryRow.id < before)
    with database.reading() as session:
        return [_view(row) for row in session.scalars(query)]


def redeliver(database: Database, webhook_id: str, delivery_id: str) -> DeliveryView:
    """Send a message again, under its old id, with a new series of attempts.

    Raises:
        NotFound: ``delivery_not_found``.
    """
    with database.writing() as session:
        row = session.get(DeliveryRow, delivery_id, with_for_update=True)
        if row is None or row.webhook_id != webhook_id:
            raise NotFound("delivery_not_found", f"The webhook has no delivery {delivery_id!r:.60}.")
        row.status, row.attempts, row.next_at = "pending", 0, time_text(datetime.now(UTC))
        return _view(row)


def _view(row: DeliveryRow) -> DeliveryView:
    return DeliveryView(
        id=row.id,
        job_id=row.job_id,
        kind=row.kind,
        status=row.status,
        attempts=row.attempts,
        next_at=row.next_at if row.status == "pending" else None,
        history=json.loads(row.history),
        created_at=row.created_at,
        body=json.loads(row.body),
    )
