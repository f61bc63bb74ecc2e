"""Who is asking, and what may they do? Owners and their API keys; of a key's secret only the hash is kept.

A key reads ``axr_ID_SECRET``. The secret has 256 random bits, so a plain SHA-256 of it cannot be searched; a slow
password hash would only slow every request down. Keys expire, can be revoked, and carry scopes.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import bindparam, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from autoxrd.errors import AccessDenied, NotFound
from autoxrd.primitives import canonical_json, sha256_hex
from autoxrd.store.models import table_of
from autoxrd.store.service import audit
from autoxrd.store.service.audit import Actor
from autoxrd.store.service.database import Database, new_id, now_text
from autoxrd.store.service.models import KeyRow, OwnerRow

__all__ = [
    "Identity",
    "KeyView",
    "NewKey",
    "Scope",
    "authenticate",
    "ensure_owner",
    "issue_key",
    "list_keys",
    "revoke",
    "revoke_named",
    "session_name",
]

_FORM = re.compile(r"axr_([0-9a-f]{32})_([A-Za-z0-9_-]{43})")

_KEYS, _OWNERS = table_of(KeyRow), table_of(OwnerRow)
_KEY = (
    select(*_KEYS.c, _OWNERS.c.name.label("owner_name"))
    .join(_OWNERS, _OWNERS.c.id == _KEYS.c.owner_id)
    .where(_KEYS.c.id == bindparam("key"))
)
"""Built once: every request asks it."""


class Scope(StrEnum):
    """What a key may be used for."""

    READ = "jobs:read"
    WRITE = "jobs:write"
    KEYS = "keys:manage"
    WEBHOOKS = "webhooks:manage"
    METRICS = "metrics:read"
    ADMIN = "service:admin"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is asking.

    Args:
        owner_id: whose jobs they see.
        key_id: the key they used.
        request_id: in which request, as in the log.
    """

    owner_id: str
    owner_name: str
    key_id: str
    scopes: frozenset[str]
    request_id: str | None = None

    @property
    def actor(self) -> Actor:
        """Who that is in the audit log."""
        return Actor(self.owner_id, self.key_id, self.request_id)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key just made; ``token`` is shown once and kept nowhere."""

    id: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyView:
    """A key as its owner sees it."""

    id: str
    name: str
    scopes: Sequence[str]
    created_at: str
    expires_at: str | None
    revoked_at: str | None


def ensure_owner(database: Database, name: str, *, limits: Mapping[str, Any] | None = None) -> str:
    """Return the id of the owner of that name, made where there is none."""
    query = select(OwnerRow.id).where(OwnerRow.name == name)
    with database.reading() as session:
        found = session.scalar(query)
    if found is not None:
        return found
    owner = OwnerRow(id=new_id(), name=name, limits=canonical_json(dict(limits or {})), created_at=now_text())
    try:
        with database.writing() as session:
            session.add(owner)
    except IntegrityError:
        with database.reading() as session:
            return str(session.scalar(query))
    return owner.id


def issue_key(
    database: Database,
    owner_id: str,
    name: str,
    scopes: Sequence[str],
    *,
    lifetime: timedelta | None,
    actor: Actor | None = None,
) -> NewKey:
    """Make a key.

    Args:
        database: the service's database.
        owner_id: whose it is.
        name: what it is for, as its owner says.
        scopes: what it may be used for.
        lifetime: how long it is valid; None for ever.
        actor: who makes it, for the audit log; None for the owner without a key.
    """
    key_id, secret = new_id(), secrets.token_urlsafe(32)
    expires = None if lifetime is None else (datetime.now(UTC) + lifetime).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    row = KeyRow(
        id=key_id,
        owner_id=owner_id,
        name=name,
        secret_hash=sha256_hex(secret.encode()),
        scopes=canonical_json(sorted(set(scopes))),
        created_at=now_text(),
        expires_at=expires,
    )
    with database.writing() as session:
        session.add(row)
        audit.note(
            session, actor or Actor(owner_id), "key.create", key_id, {"name": name, "scopes": sorted(set(scopes))}
        )
    return NewKey(key_id, f"axr_{key_id.replace('-', '')}_{secret}")


def authenticate(database: Database, token: str) -> Identity:
    """Return who a token belongs to.

    Raises:
        AccessDenied: ``key_invalid``, unknown, revoked or expired: which of them is not said.
    """
    form = _FORM.fullmatch(token)
    if form is not None:
        digits, secret = form.groups()
        key_id = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        with database.reading() as session:
            found = session.execute(_KEY, {"key": key_id}).one_or_none()
        if found is not None and _valid(found, secret):
            return Identity(found.owner_id, found.owner_name, found.id, frozenset(json.loads(found.scopes)))
    raise AccessDenied("key_invalid", "The API key is not valid: make a new one, or check that it was copied whole.")


def list_keys(database: Database, owner_id: str) -> list[KeyView]:
    """Return an owner's keys, newest first."""
    query = select(KeyRow).where(KeyRow.owner_id == owner_id).order_by(KeyRow.id.desc())
    with database.reading() as session:
        return [
            KeyView(r.id, r.name, json.loads(r.scopes), r.created_at, r.expires_at, r.revoked_at)
            for r in session.scalars(query)
        ]


def revoke(database: Database, owner_id: str, key_id: str, *, actor: Actor | None = None) -> None:
    """End a key at once, and the browser sessions that were begun with it.

    Raises:
        NotFound: ``key_not_found``.
    """
    with database.writing() as session:
        mine = select(KeyRow.id).where(KeyRow.id == key_id, KeyRow.owner_id == owner_id)
        if session.scalar(mine) is None:
            raise NotFound("key_not_found", f"You have no key {key_id!r:.60}.")
        _end(session, owner_id, [key_id])
        audit.note(session, actor or Actor(owner_id), "key.revoke", key_id)


def revoke_named(database: Database, owner_id: str, name: str) -> None:
    """End all of an owner's keys of one name: a new start of the local service ends the key of the last."""
    named = select(KeyRow.id).where(KeyRow.owner_id == owner_id, KeyRow.name == name, KeyRow.revoked_at.is_(None))
    with database.writing() as session:
        _end(session, owner_id, session.scalars(named).all())


def session_name(key_id: str) -> str:
    """Return the name of the keys of browser sessions that were begun with a key."""
    return f"browser session of {key_id}"


def _end(session: Session, owner_id: str, key_ids: Sequence[str]) -> None:
    sessions = KeyRow.name.in_([session_name(key_id) for key_id in key_ids])
    query = update(KeyRow).where(KeyRow.owner_id == owner_id, or_(KeyRow.id.in_(key_ids), sessions))
    session.execute(query.where(KeyRow.revoked_at.is_(None)).values(revoked_at=now_text()))


def _valid(row: Any, secret: str) -> bool:
    if not hmac.compare_digest(row.secret_hash, sha256_hex(secret.encode())):
        return False
    return row.revoked_at is None and (row.expires_at is None or row.expires_at > now_text())
