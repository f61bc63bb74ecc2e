"""Who did what, when? A log that is only ever appended to, by the database's own rules too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, select

from autoxrd.primitives import canonical_json
from autoxrd.store.models import table_of
from autoxrd.store.service.database import Database, Transaction, new_id, now_text
from autoxrd.store.service.models import AuditRow

__all__ = ["Actor", "AuditView", "list_audit", "note", "write"]

_INSERT = insert(table_of(AuditRow))


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts.

    Args:
        owner_id: for whom.
        key_id: with which key; None for the service itself and for its own commands.
        request_id: as in the log of requests.
    """

    owner_id: str
    key_id: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class AuditView:
    """An entry."""

    id: str
    at: str
    owner_id: str
    key_id: str | None
    action: str
    subject: str
    request_id: str | None
    details: Mapping[str, Any]


def note(
    session: Transaction, actor: Actor, action: str, subject: str, details: Mapping[str, Any] | None = None
) -> None:
    """Append an entry in the transaction of what it tells of.

    Args:
        session: the transaction.
        actor: who acts.
        action: ``job.delete``, ``key.create``, ...
        subject: id of what it was done to.
        details: JSON content without secrets.
    """
    entry = {"id": new_id(), "at": now_text(), "owner_id": actor.owner_id, "key_id": actor.key_id}
    told = {"action": action, "subject": subject, "request_id": actor.request_id}
    session.execute(_INSERT, {**entry, **told, "details": canonical_json(dict(details or {}))})


def write(
    database: Database, actor: Actor, action: str, subject: str, details: Mapping[str, Any] | None = None
) -> None:
    """Append an entry of its own."""
    with database.writing() as session:
        note(session, actor, action, subject, details)


def list_audit(
    database: Database, owner_id: str | None, *, before: str | None = None, limit: int = 100
) -> Sequence[AuditView]:
    """Return entries, newest first, older than one of them; of all owners where None is named."""
    query = select(AuditRow).order_by(AuditRow.id.desc()).limit(limit)
    if owner_id is not None:
        query = query.where(AuditRow.owner_id == owner_id)
    if before is not None:
        query = query.where(AuditRow.id < before)
    names = [name for name in AuditView.__dataclass_fields__ if name != "details"]
    with database.reading() as session:
        return [
            AuditView(**{name: getattr(row, name) for name in names}, details=json.loads(row.details))
            for row in session.scalars(query)
        ]
