"""What an owner may use: over it nothing is queued, and what runs is concluded."""

from __future__ import annotations

import pytest

from autoxrd.errors import LimitExceeded
from autoxrd.jobs.local import QUEUES
from autoxrd.store.service import leases
from autoxrd.store.service.budgets import set_limits, spent
from autoxrd.store.service.database import Database
from autoxrd.store.service.keys import ensure_owner
from autoxrd.store.service.leases import Ended

from .expected import load_stub
from .factory import queued


def work_off(database: Database) -> None:
    stub = load_stub().Stub(database)
    while (lease := leases.claim(database, "w", QUEUES)) is not None:
        leases.release(database, lease, Ended(queue=stub.advance(lease).queue))


def test_open_jobs(database: Database) -> None:
    set_limits(database, ensure_owner(database, "ada"), {"open_jobs": 2})
    queued(database)
    queued(database)
    with pytest.raises(LimitExceeded, match="2 are allowed") as error:
        queued(database)
    assert error.value.code == "jobs_open"
    queued(database, owner="bob")
    work_off(database)
    queued(database)


def test_steps_and_engine_time_of_all_jobs_together(database: Database) -> None:
    owner = ensure_owner(database, "ada")
    assert set_limits(database, owner, {"steps": 5}) == {"steps": 5}
    first = queued(database, steps=3)
    assert spent(database, first) is None
    second = queued(database, steps=3)
    work_off(database)
    over = spent(database, second)
    assert over is not None
    assert (over.name, over.limit) == ("steps", 5)
    with pytest.raises(LimitExceeded, match="budget of 5 steps is spent") as error:
        queued(database)
    assert error.value.code == "budget_spent"
    assert set_limits(database, owner, {"steps": 100, "engine_seconds": 0.0}) == {"steps": 100, "engine_seconds": 0.0}
    over = spent(database, second)
    assert over is not None
    assert over.name == "engine_seconds"
