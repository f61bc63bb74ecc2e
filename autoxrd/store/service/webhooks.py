"""Where does an owner want events to be sent, and with which secrets are they signed?

A secret must be known to sign with it, so it is kept as it is; it is shown when it is made and never again.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from autoxrd.errors import LimitExceeded, NotFound
from autoxrd.primitives import canonical_json
from autoxrd.store.service.database import Database, new_id, now_text, time_text
from autoxrd.store.service.models import DeliveryRow, WebhookRow

__all__ = ["NewWebhook", "WebhookView", "delete", "find", "has_url", "list_webhooks", "register", "rotate"]

MOST_WEBHOOKS = 20
"""So many may one owner have: each event is copied for each of them."""


@dataclass(frozen=True, slots=True)
class WebhookView:
    """A webhook as its owner sees it.

    Args:
        kinds: events that are sent.
        every_job: False where only jobs that name its address as ``callback`` are told of.
        disabled_at: since when nothing is sent, because the receiver said that it is gone.
        secrets: how many are valid; two while one replaces another.
    """

    id: str
    url: str
    kinds: Sequence[str]
    every_job: bool
    created_at: str
    disabled_at: str | None
    secrets: int


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """A webhook or a secret just made; ``secret`` is shown once."""

    webhook: WebhookView
    secret: str = field(repr=False)


def register(database: Database, owner_id: str, url: str, kinds: Sequence[str], *, every_job: bool) -> NewWebhook:
    """Make a webhook; its address has been checked.

    Raises:
        LimitExceeded: ``webhooks``.
    """
    secret = _new_secret()
    row = WebhookRow(
        id=new_id(),
        owner_id=owner_id,
        url=url,
        kinds=canonical_json(sorted(set(kinds))),
        every_job=every_job,
        secrets=canonical_json([{"secret": secret, "until": None}]),
        created_at=now_text(),
    )
    with database.writing() as session:
        mine = select(func.count()).where(WebhookRow.owner_id == owner_id, WebhookRow.deleted_at.is_(None))
        if (session.scalar(mine) or 0) >= MOST_WEBHOOKS:
            raise LimitExceeded("webhooks", f"You have {MOST_WEBHOOKS} webhooks: delete one first.")
        session.add(row)
    return NewWebhook(_view(row), secret)


def list_webhooks(database: Database, owner_id: str) -> list[WebhookView]:
    """Return an owner's webhooks, newest first."""
    query = select(WebhookRow).where(WebhookRow.owner_id == owner_id, WebhookRow.deleted_at.is_(None))
    with database.reading() as session:
        return [_view(row) for row in session.scalars(query.order_by(WebhookRow.id.desc()))]


def find(database: Database, owner_id: str, webhook_id: str) -> WebhookView:
    """Return one webhook.

    Raises:
        NotFound: ``webhook_not_found``; also where it belongs to somebody else.
    """
    with database.reading() as session:
        return _view(_mine(session, owner_id, webhook_id))


def has_url(database: Database, owner_id: str, url: str) -> bool:
    """Return whether one of an owner's webhooks has this address."""
    query = select(WebhookRow.id).where(
        WebhookRow.owner_id == owner_id, WebhookRow.url == url, WebhookRow.deleted_at.is_(None)
    )
    with database.reading() as session:
        return session.scalar(query.limit(1)) is not None


def rotate(database: Database, owner_id: str, webhook_id: str, *, overlap: timedelta) -> NewWebhook:
    """Make a new secret; for a while messages carry signatures by the last one too.

    Raises:
        NotFound: ``webhook_not_found``.
    """
    secret, now = _new_secret(), datetime.now(UTC)
    with database.writing() as session:
        row = _mine(session, owner_id, webhook_id, lock=True)
        last = json.loads(row.secrets)[0]
        kept = [{"secret": last["secret"], "until": time_text(now + overlap)}] if overlap else []
        row.secrets = canonical_json([{"secret": secret, "until": None}, *kept])
        row.disabled_at = None
        return NewWebhook(_view(row), secret)


def delete(database: Database, owner_id: str, webhook_id: str) -> None:
    """Send nothing more to a webhook, and forget its secrets; what was sent stays in the record.

    Raises:
        NotFound: ``webhook_not_found``.
    """
    with database.writing() as session:
        row = _mine(session, owner_id, webhook_id, lock=True)
        row.deleted_at = row.disabled_at = now_text()
        row.secrets = "[]"
        waiting = update(DeliveryRow).where(DeliveryRow.webhook_id == webhook_id, DeliveryRow.status == "pending")
        session.execute(waiting.values(status="failed"))


def _new_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode("ascii")


def _mine(session: Session, owner_id: str, webhook_id: str, *, lock: bool = False) -> WebhookRow:
    row = session.get(WebhookRow, webhook_id, with_for_update=True if lock else None)
    if row is None or row.owner_id != owner_id or row.deleted_at is not None:
        raise NotFound("webhook_not_found", f"You have no webhook {webhook_id!r:.60}.")
    return row


def _view(row: WebhookRow) -> WebhookView:
    now = now_text()
    valid = sum((s["until"] or "9") > now for s in json.loads(row.secrets))
    return WebhookView(row.id, row.url, json.loads(row.kinds), row.every_job, row.created_at, row.disabled_at, valid)
