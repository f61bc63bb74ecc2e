"""API keys for tests."""

from __future__ import annotations

from datetime import timedelta

from autoxrd.store.service.database import Database
from autoxrd.store.service.keys import Scope, ensure_owner, issue_key


def token(database: Database, owner: str = "ada", *scopes: Scope, days: float = 1.0) -> str:
    owner_id = ensure_owner(database, owner)
    chosen = list(scopes) or [Scope.READ, Scope.WRITE, Scope.KEYS, Scope.WEBHOOKS, Scope.METRICS]
    return issue_key(database, owner_id, "test", chosen, lifetime=timedelta(days=days)).token


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}
