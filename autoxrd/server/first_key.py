"""How does an owner get a first key, before there is any to ask with? Straight into the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from autoxrd.errors import UserInputError
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database
from autoxrd.store.service.keys import Scope, ensure_owner, issue_key

__all__ = ["create"]


def create(settings: Settings, *, owner: str, name: str, scopes: Sequence[str], days: float) -> str:
    """Make a key for an owner, who is made where there is none, and return its token.

    Raises:
        UserInputError: ``scope_unknown``.
        StorageError: the database cannot be reached.
    """
    unknown = sorted(set(scopes) - set(Scope))
    if unknown:
        raise UserInputError("scope_unknown", f"There is no scope {unknown[0]!r}; scopes are {', '.join(Scope)}.")
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with Database(settings.database(), settings.artifacts_dir()) as database:
        database.migrate()
        owner_id = ensure_owner(database, owner)
        return issue_key(database, owner_id, name, scopes, lifetime=timedelta(days=days)).token
