"""What may an owner still use? Limits on open jobs, steps and engine time, and what counts against them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select

from autoxrd.errors import LimitExceeded
from autoxrd.primitives import canonical_json
from autoxrd.store.service.database import Database
from autoxrd.store.service.models import OwnerRow, ServiceJobRow

__all__ = ["LIMITS", "Spent", "has_room", "require_room", "set_limits", "spent", "spent_by"]

LIMITS = ("open_jobs", "steps", "engine_seconds", "model_tokens", "money_usd", "stored_bytes")
"""What can be limited for an owner, all jobs together."""


_UNITS = {
    "steps": "steps",
    "engine_seconds": "s of engine time",
    "model_tokens": "tokens of language models",
    "money_usd": "USD for language models",
}


@dataclass(frozen=True, slots=True)
class Spent:
    """A budget of an owner that is used up.

    Args:
        name: ``steps``, ``engine_seconds``, ``model_tokens`` or ``money_usd``.
        limit: how much it was, in the unit of its name.
    """

    name: str
    limit: float

    @property
    def text(self) -> str:
        """One sentence."""
        return f"The owner's budget of {self.limit:g} {_UNITS[self.name]} is spent."


def spent_by(owner: OwnerRow | Row[Any]) -> Spent | None:
    """Return the first budget of an owner that is used up, None where there is none."""
    limits: Mapping[str, float] = json.loads(owner.limits)
    used: Mapping[str, float] = {
        "steps": owner.steps_used,
        "engine_seconds": owner.engine_seconds_used,
        "model_tokens": owner.tokens_used,
        "money_usd": owner.money_used,
    }
    over = (Spent(name, limits[name]) for name, amount in used.items() if name in limits and amount >= limits[name])
    return next(over, None)


def has_room(owner: OwnerRow | Row[Any], *, new: int = 0) -> None:
    """Let nothing more be stored for an owner who has used what is allowed.

    Args:
        owner: whose files they are.
        new: bytes that are counted already, and that the question is about.

    Raises:
        LimitExceeded: ``storage_spent``.
    """
    limit = json.loads(owner.limits).get("stored_bytes")
    stored = owner.stored_bytes - new
    if limit is not None and stored >= limit:
        raise LimitExceeded(
            "storage_spent",
            f"Your files and jobs have {stored} bytes of {limit:.0f} allowed: delete some, then try again.",
        )


def require_room(database: Database, owner_id: str) -> None:
    """Let nothing more be stored for an owner who has used what is allowed.

    Raises:
        LimitExceeded: ``storage_spent``.
    """
    with database.reading() as session:
        has_room(session.get_one(OwnerRow, owner_id))


def spent(database: Database, job_id: str) -> Spent | None:
    """Return the first budget of a job's owner that is used up."""
    query = select(OwnerRow).join(ServiceJobRow, ServiceJobRow.owner_id == OwnerRow.id)
    with database.reading() as session:
        return spent_by(session.scalars(query.where(ServiceJobRow.id == job_id)).one())


def set_limits(database: Database, owner_id: str, limits: Mapping[str, float]) -> dict[str, float]:
    """Set limits of an owner, leave the others as they are, and return all of them."""
    with database.writing() as session:
        owner = session.get_one(OwnerRow, owner_id, with_for_update=True)
        merged: dict[str, float] = {**json.loads(owner.limits), **limits}
        owner.limits = canonical_json(merged)
    return merged
