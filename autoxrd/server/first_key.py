"""How does an owner get a first key and limits, before there is any key to ask with? Straight into the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from autoxrd.errors import UserInputError
from autoxrd.settings import Settings
from autoxrd.store.service import audit
from autoxrd.store.service.audit import Actor
from autoxrd.store.service.budgets import set_limits
from autoxrd.store.service.database import Database
from autoxrd.store.service.keys import Scope, ensure_owner, issue_key

__all__ = ["create", "limit"]


def create(settings: Settings, *, owner: str, name: str, scopes: Sequence[str], days: float) -> str:
    """Make a key for an owner, who is made where there is none, and return its token.

    Raises:
        UserInputError: ``scope_unknown``.
        StorageError: the database cannot be reached.
    """
    unknown = sorted(set(scopes) - set(Scope))
    if unknown:
        raise UserInputError("scope_unknown", f"There is no scope {unknown[0]!r}; scopes are {', '.join(Scope)}.")
    with _database(settings) as database:
        owner_id = ensure_owner(database, owner)
        return issue_key(database, owner_id, name, scopes, lifetime=timedelta(days=days)).token


def limit(settings: Settings, *, owner: str, limits: Mapping[str, float]) -> dict[str, float]:
    """Set limits of an owner, who is made where there is none, and return all that hold.

    Raises:
        StorageError: the database cannot be reached.
    """
    with _database(settings) as database:
        owner_id = ensure_owner(database, owner)
        if limits:
            audit.write(database, Actor(owner_id), "owner.limit", owner_id, dict(limits))
        return set_limits(database, owner_id, limits)


def _database(settings: Settings) -> Database:
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = Database(settings.database(), settings.artifacts_dir())
    database.migrate()
    return database
