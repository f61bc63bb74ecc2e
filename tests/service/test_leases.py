"""Who may work on a job, and in which order: fencing, heartbeats without clocks, fairness."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from autoxrd.domain.lifecycle import JobState
from autoxrd.errors import Conflict, LeaseLost, NotFound
from autoxrd.jobs.local import QUEUES
from autoxrd.jobs.reaper import Reaper
from autoxrd.store.records import HistogramRecord, JobRecord
from autoxrd.store.service import leases
from autoxrd.store.service.database import Database
from autoxrd.store.service.feed import events_after
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.keys import ensure_owner
from autoxrd.store.service.leases import MAX_LOSSES, Ended, Lease
from autoxrd.store.service.listing import find_job
from autoxrd.store.service.transition import ask

from .factory import queued

RECORD = JobRecord(
    histograms=(HistogramRecord(name="1", pattern={}, instrument={}),),
    structures=(),
    settings={},
    engine={"name": "stub", "version": "1"},
    planner={"name": "stub"},
    policy={},
)


def claimed(database: Database, holder: str = "w1") -> Lease:
    lease = leases.claim(database, holder, QUEUES)
    assert lease is not None
    return lease


def state_of(database: Database, job_id: str) -> str:
    return find_job(database, job_id, None).state


def test_a_job_is_held_by_one_worker(database: Database) -> None:
    job = queued(database)
    lease = claimed(database)
    assert (lease.job_id, lease.fence) == (job, 1)
    assert leases.claim(database, "w2", QUEUES) is None
    assert leases.beat(database, lease) is JobState.RUNNING
    leases.release(database, lease, Ended(seconds=1.0, queue="engine"))
    assert claimed(database, "w2").fence == 2
    with pytest.raises(LeaseLost):
        leases.beat(database, lease)


def test_parallel_claims_never_meet(database: Database) -> None:
    jobs = {queued(database) for _ in range(20)}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: leases.claim(database, f"w{i}", QUEUES), range(30)))
    taken = [lease.job_id for lease in found if lease is not None]
    assert len(taken) == len(set(taken)) == 20
    assert set(taken) == jobs


def test_a_worker_thought_dead_can_record_nothing(database: Database) -> None:
    job = queued(database)
    old = claimed(database)
    (seen,) = leases.held(database)
    assert leases.expire(database, seen)
    new = claimed(database, "w2")
    with pytest.raises(LeaseLost):
        JobGraph.create(database, old, RECORD)
    JobGraph.create(database, new, RECORD)
    with pytest.raises(LeaseLost, match="has this row already"):
        JobGraph.create(database, new, RECORD)
    leases.release(database, old, Ended(problem={"code": "x", "detail": "y"}))  # changes nothing
    assert state_of(database, job) == "running"


def test_a_lease_ends_when_its_heartbeat_stands_still_by_the_reapers_own_clock(database: Database) -> None:
    queued(database)
    lease = claimed(database)
    now = [1000.0]
    reaper = Reaper(database, 10.0, clock=lambda: now[0])
    assert reaper.sweep() == []
    for _ in range(5):
        now[0] += 9.0
        leases.beat(database, lease)
        assert reaper.sweep() == []
    now[0] += 10.5
    assert reaper.sweep() == [lease.job_id]
    assert reaper.sweep() == []
    assert find_job(database, lease.job_id, None).state == "queued"


def test_a_heartbeat_between_look_and_reap_saves_the_lease(database: Database) -> None:
    queued(database)
    lease = claimed(database)
    (seen,) = leases.held(database)
    leases.beat(database, lease)
    assert not leases.expire(database, seen)
    assert leases.beat(database, lease) is JobState.RUNNING


def test_a_step_lost_again_and_again_crashes_the_job_and_a_person_can_retry(database: Database) -> None:
    job = queued(database)
    for count in range(1, MAX_LOSSES + 1):
        leases.release(database, claimed(database), Ended(lost=True, reason="host_died"))
        assert state_of(database, job) == ("queued" if count < MAX_LOSSES else "crashed")
    view = find_job(database, job, None)
    assert view.error is not None
    assert view.error["code"] == "step_lost"
    with pytest.raises(Conflict):
        ask(database, job, ensure_owner(database, "ada"), "resume")
    assert ask(database, job, ensure_owner(database, "ada"), "retry") is JobState.QUEUED
    assert find_job(database, job, None).error is None


def test_trouble_of_the_machine_is_not_counted_against_the_job(database: Database) -> None:
    job = queued(database)
    for _ in range(3 * MAX_LOSSES):
        leases.release(database, claimed(database), Ended(machine=True, reason="artifact_not_written"))
    assert state_of(database, job) == "queued"


@pytest.mark.parametrize("dead", [False, True])
def test_cancelling_while_a_step_runs(database: Database, dead: bool) -> None:
    job = queued(database)
    lease = claimed(database)
    owner = ensure_owner(database, "ada")
    assert ask(database, job, owner, "cancel") is JobState.CANCELLING
    assert ask(database, job, owner, "cancel") is JobState.CANCELLING
    assert leases.beat(database, lease) is JobState.CANCELLING
    with pytest.raises(LeaseLost):
        JobGraph.create(database, lease, RECORD)
    if dead:
        assert leases.expire(database, leases.held(database)[0])
    else:
        leases.release(database, lease, Ended())
    assert state_of(database, job) == "cancelled"
    assert leases.claim(database, "w2", QUEUES) is None
    assert ask(database, job, owner, "resume") is JobState.QUEUED
    assert claimed(database, "w2").job_id == job


def test_pausing_keeps_the_step_in_flight(database: Database) -> None:
    job = queued(database)
    lease = claimed(database)
    owner = ensure_owner(database, "ada")
    assert ask(database, job, owner, "pause") is JobState.WAITING
    JobGraph.create(database, lease, RECORD)
    leases.release(database, lease, Ended(queue="engine"))
    assert leases.claim(database, "w2", QUEUES) is None
    assert ask(database, job, owner, "resume") is JobState.QUEUED
    assert claimed(database, "w2").job_id == job


def test_the_feed_tells_each_change_once_and_without_gaps(database: Database) -> None:
    job = queued(database)
    lease = claimed(database)
    leases.release(database, lease, Ended(problem={"code": "pattern_nan", "detail": "Line 3."}))
    events = events_after(database, job, 0)
    assert [e.number for e in events] == [1, 2, 3]
    assert [e.kind for e in events] == ["job.accepted", "job.state", "job.state"]
    assert events[-1].data["to"] == "failed"
    assert events_after(database, job, 2) == events[2:]


def test_owners_are_served_in_turn_however_many_jobs_one_has(database: Database) -> None:
    for _ in range(30):
        queued(database, owner="ada")
    for owner in ("bob", "eve"):
        for _ in range(5):
            queued(database, owner=owner)
    names = {ensure_owner(database, n): n for n in ("ada", "bob", "eve")}
    order = []
    for _ in range(15):
        lease = claimed(database)
        order.append(names[owner_of(database, lease.job_id)])
        leases.release(database, lease, Ended(seconds=1.0, problem={"code": "x", "detail": "y"}))
    assert Counter(order) == {"ada": 5, "bob": 5, "eve": 5}
    for i in range(0, 15, 3):
        assert set(order[i : i + 3]) == {"ada", "bob", "eve"}


def test_an_owner_who_was_away_has_saved_up_nothing(database: Database) -> None:
    for _ in range(10):
        queued(database, owner="ada")
    for _ in range(5):
        leases.release(database, claimed(database), Ended(seconds=100.0, problem={"code": "x", "detail": "y"}))
    for _ in range(5):
        queued(database, owner="bob")
    bob = ensure_owner(database, "bob")
    order = []
    for _ in range(4):
        lease = claimed(database)
        order.append(owner_of(database, lease.job_id) == bob)
        leases.release(database, lease, Ended(seconds=100.0, problem={"code": "x", "detail": "y"}))
    assert order.count(True) == 2


def test_priority_orders_the_jobs_of_one_owner(database: Database) -> None:
    queued(database, priority=0)
    urgent = queued(database, priority=5)
    assert claimed(database).job_id == urgent


def test_a_worker_stays_with_its_job(database: Database) -> None:
    first = queued(database)
    queued(database)
    queued(database, owner="bob")
    lease: Lease | None = claimed(database)
    for _ in range(5):
        assert lease is not None
        assert lease.job_id == first
        lease = leases.exchange(database, lease, Ended(seconds=1.0, queue="engine"), QUEUES)


def owner_of(database: Database, job_id: str) -> str:
    for name in ("ada", "bob", "eve"):
        owner = ensure_owner(database, name)
        try:
            find_job(database, job_id, owner)
        except NotFound:
            continue
        return owner
    raise AssertionError(job_id)
