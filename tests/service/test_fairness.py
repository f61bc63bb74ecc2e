"""Owners are served alike, whatever they did before and in whichever order they came."""

from __future__ import annotations

from collections import Counter, deque

from sqlalchemy import select

from autoxrd.jobs.local import QUEUES
from autoxrd.store.service import leases
from autoxrd.store.service.database import Database
from autoxrd.store.service.keys import ensure_owner
from autoxrd.store.service.leases import Ended, Lease
from autoxrd.store.service.models import ServiceJobRow
from autoxrd.store.service.transition import ask

from .factory import queued

SLOTS = 4
OVER = {"code": "x", "detail": "y"}


def owners(database: Database) -> dict[str, str]:
    with database.reading() as session:
        return dict(session.execute(select(ServiceJobRow.id, ServiceJobRow.owner_id)).all())


def drained(database: Database, *, steps: int = 2, seconds: float = 1.0, jobs: int = 10_000) -> list[str]:
    """Work in several slots until nothing waits; return the owner of each job in the order in which they ended."""
    done: dict[str, int] = {}
    order: list[str] = []
    owner_of = owners(database)
    held: deque[Lease] = deque()

    def take(lease: Lease | None) -> None:
        if lease is not None:
            held.append(lease)

    for i in range(SLOTS):
        take(leases.claim(database, f"slot{i}", QUEUES))
    while held and len(order) < jobs:
        lease = held.popleft()
        done[lease.job_id] = done.get(lease.job_id, 0) + 1
        over = done[lease.job_id] == steps
        if over:
            order.append(owner_of[lease.job_id])
        ended = Ended(seconds=seconds, queue="engine", problem=OVER if over else None)
        take(leases.exchange(database, lease, ended, QUEUES))
    for lease in held:
        leases.release(database, lease, Ended(problem=OVER))
    return order


def widest_gap(order: list[str], owners: list[str], each: int) -> int:
    """Return how many jobs two owners were apart at most while all of them had jobs left."""
    counts: Counter[str] = Counter(dict.fromkeys(owners, 0))
    widest = 0
    for owner in order:
        counts[owner] += 1
        if max(counts.values()) == each:
            break
        widest = max(widest, max(counts.values()) - min(counts.values()))
    return widest


def test_ten_owners_are_served_in_turn_whoever_came_first_and_worked_before(database: Database) -> None:
    names = [f"owner{i}" for i in range(10)]
    ids = [ensure_owner(database, name) for name in names]
    queued(database, owner="owner0")
    assert drained(database, seconds=500.0) == [ids[0]]  # alone, on a machine that nobody else wanted
    for name in (*names[1:], names[0]):
        for _ in range(6):
            queued(database, owner=name)
    order = drained(database)
    assert len(order) == 60
    assert widest_gap(order, ids, 6) <= 2


def test_who_used_an_idle_machine_does_not_pay_for_it(database: Database) -> None:
    ada, bob = (ensure_owner(database, name) for name in ("ada", "bob"))
    for _ in range(3):
        queued(database, owner="ada")
    drained(database, seconds=1000.0)
    for owner in ("bob", "ada"):
        for _ in range(8):
            queued(database, owner=owner)
    assert widest_gap(drained(database), [ada, bob], 8) <= 2


def test_a_paused_job_saves_up_nothing(database: Database) -> None:
    ada, bob = (ensure_owner(database, name) for name in ("ada", "bob"))
    paused = queued(database, owner="bob")
    ask(database, paused, bob, "pause")
    for _ in range(3):
        queued(database, owner="ada")
    drained(database, seconds=1000.0)
    for owner in ("ada", "bob"):
        for _ in range(8):
            queued(database, owner=owner)
    ask(database, paused, bob, "resume")
    assert widest_gap(drained(database), [ada, bob], 8) <= 2


def test_a_job_that_has_a_worker_saves_up_nothing_for_others(database: Database) -> None:
    ada, bob = (ensure_owner(database, name) for name in ("ada", "bob"))
    queued(database, owner="bob")
    lease = leases.claim(database, "slow", QUEUES)  # its one long job has a slot: bob waits for nothing
    assert lease is not None
    for _ in range(20):
        queued(database, owner="ada")
    drained(database, seconds=100.0, jobs=10)
    for _ in range(8):
        queued(database, owner="bob")
    assert widest_gap(drained(database), [ada, bob], 8) <= 2
