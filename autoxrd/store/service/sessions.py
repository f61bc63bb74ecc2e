"""How does a browser stay logged in? By a key of its own, made from the one that was typed in, that ends with it.

The cookie of a browser never holds the key that a person copied, and the database holds hashes only, as of every key.
A session has the scopes of its key, lives for `SESSION_HOURS` and never longer than the key, and is revoked with it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from autoxrd.store.service.database import Database
from autoxrd.store.service.keys import Identity, NewKey, issue_key, revoke, session_name
from autoxrd.store.service.models import KeyRow

__all__ = ["SESSION_HOURS", "begin_session", "end_session"]

SESSION_HOURS = 12.0


def begin_session(database: Database, identity: Identity) -> NewKey:
    """Make the key of a browser session for somebody who has just shown a valid key."""
    with database.reading() as session:
        key = session.get_one(KeyRow, identity.key_id)
    lifetime = timedelta(hours=SESSION_HOURS)
    if key.expires_at is not None:
        lifetime = min(lifetime, datetime.fromisoformat(key.expires_at) - datetime.now(UTC))
    name = session_name(identity.key_id)
    return issue_key(
        database, identity.owner_id, name, sorted(identity.scopes), lifetime=lifetime, actor=identity.actor
    )


def end_session(database: Database, identity: Identity) -> None:
    """Log out: the session's key is revoked.

    Raises:
        NotFound: ``key_not_found``.
    """
    revoke(database, identity.owner_id, identity.key_id, actor=identity.actor)
