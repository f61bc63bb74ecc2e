"""Who works on which job? Leases with a fencing number and a heartbeat, and the order in which jobs are taken.

* A claim raises the job's ``fence``. Every transaction of a step checks it, so that a worker which was thought dead
  and wakes up again can record nothing.
* A heartbeat is a counter, not a time. Whoever reaps compares it with what it saw before, on its own monotonic clock:
  no clock of any machine has to be right, and setting one does no harm.
* Fair queueing: of all jobs that could be taken, the one whose owner was served least (work done over the owner's
  weight, counted as `autoxrd.store.service.fairness` says) comes first; then a job that is under way, then the higher
  priority, then the older. A worker stays with its job until that owner is a quantum ahead, because a change costs the
  start of an engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, case, func, select, update
from sqlalchemy.orm import Session

from autoxrd.domain.lifecycle import CLAIMABLE, FINAL, JobState, Trigger
from autoxrd.errors import LeaseLost
from autoxrd.store.service.database import Database
from autoxrd.store.service.models import OwnerRow, ServiceJobRow
from autoxrd.store.service.transition import fail, locked, move

__all__ = ["Ended", "Held", "Lease", "beat", "check", "claim", "exchange", "expire", "held", "release", "waiting_jobs"]

QUANTUM_SECONDS = 30.0
"""How far an owner may get ahead of the others before a worker leaves that owner's running job."""

CHARGE_SECONDS = 0.05
"""Charged to the owner with each claim, so that two workers who claim at once take jobs of two owners."""

MAX_LOSSES = 3
"""So often in a row may a step be lost without one recorded in between; then the job is crashed."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to do one job's next step.

    Args:
        fence: number of this claim; a later claim has a higher one.
        holder: name of the worker's slot.
    """

    job_id: str
    fence: int
    holder: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How a step ended, for the books.

    Args:
        seconds: wall time.
        queue: where the job's next step belongs; None leaves it.
        problem: why the job has failed (code, detail), None where it has not.
        lost: True where the step broke: its process died or hung, or its worker is gone. Counted.
        machine: True where the disk or the database did not work: the job waits for them, uncounted.
        waits: True where the planner cannot go on until somebody resumes the job.
        reason: code of any of them.
    """

    seconds: float = 0.0
    queue: str | None = None
    problem: Mapping[str, Any] | None = None
    lost: bool = False
    machine: bool = False
    waits: bool = False
    reason: str = ""

    @property
    def goes_on(self) -> bool:
        """Whether the step was done and there is a next one."""
        return self.queue is not None and not (self.lost or self.machine or self.waits or self.problem)


@dataclass(frozen=True, slots=True)
class Held:
    """A lease as a reaper sees it."""

    job_id: str
    fence: int
    heartbeat: int


def claim(database: Database, holder: str, queues: Sequence[str]) -> Lease | None:
    """Take the job whose turn it is; None where nothing is to be done."""
    with database.writing() as session:
        return _claim(session, holder, queues)


def exchange(database: Database, lease: Lease, ended: Ended, queues: Sequence[str]) -> Lease | None:
    """Give one job back and take the next, which may be the same, in one transaction."""
    with database.writing() as session:
        _release(session, lease, ended)
        return _claim(session, lease.holder, queues)


def release(database: Database, lease: Lease, ended: Ended) -> None:
    """Give a job back after a step. Where the lease was lost meanwhile, nothing is changed."""
    with database.writing() as session:
        _release(session, lease, ended)


def beat(database: Database, lease: Lease) -> JobState:
    """Show that the worker lives; return the job's state, which may ask it to stop.

    Raises:
        LeaseLost: ``lease_lost``.
    """
    mine = _is_held(lease)
    with database.writing() as session:
        query = update(ServiceJobRow).where(*mine).values(heartbeat=ServiceJobRow.heartbeat + 1)
        state = session.execute(query.returning(ServiceJobRow.state)).scalar_one_or_none()
    if state is None:
        raise _lost(lease)
    return JobState(state)


def check(session: Session, lease: Lease) -> ServiceJobRow:
    """Lock the job's row and make sure that this lease still holds and the job may go on.

    Raises:
        LeaseLost: ``lease_lost`` or ``job_cancelled``.
    """
    query = select(ServiceJobRow).where(*_is_held(lease)).with_for_update()
    job = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if job is None:
        raise _lost(lease)
    if job.state == JobState.CANCELLING or JobState(job.state) in FINAL:
        raise LeaseLost("job_cancelled", f"Job {job.id} is {job.state}: nothing more is recorded.")
    return job


def held(database: Database) -> list[Held]:
    """Return all leases."""
    columns = (ServiceJobRow.id, ServiceJobRow.fence, ServiceJobRow.heartbeat)
    with database.reading() as session:
        found = session.execute(select(*columns).where(ServiceJobRow.lease_holder.is_not(None)))
        return [Held(*row) for row in found]


def expire(database: Database, seen: Held) -> bool:
    """Take a lease away unless it was renewed since it was seen; return whether it was."""
    with database.writing() as session:
        job = locked(session, seen.job_id)
        if job.lease_holder is None or (job.fence, job.heartbeat) != (seen.fence, seen.heartbeat):
            return False
        _end(session, job, Ended(lost=True, reason="lease_expired"))
        return True


def waiting_jobs(database: Database, queues: Sequence[str]) -> Mapping[str, int]:
    """Return how many jobs could be taken now, by queue."""
    query = select(ServiceJobRow.queue, func.count()).where(*_claimable(queues)).group_by(ServiceJobRow.queue)
    with database.reading() as session:
        return {queue: int(count) for queue, count in session.execute(query)}


def _claim(session: Session, holder: str, queues: Sequence[str]) -> Lease | None:
    under_way = ServiceJobRow.state == JobState.RUNNING.value
    mine = ServiceJobRow.last_holder == holder
    bonus = case((under_way & mine, -QUANTUM_SECONDS), (under_way, QUANTUM_SECONDS), else_=0.0)
    query = (
        select(ServiceJobRow)
        .join(OwnerRow, OwnerRow.id == ServiceJobRow.owner_id)
        .where(*_claimable(queues))
        .order_by(
            OwnerRow.served + bonus / OwnerRow.weight,
            case((under_way, 0), else_=1),
            ServiceJobRow.priority.desc(),
            ServiceJobRow.id,
        )
        .limit(1)
        .with_for_update(of=ServiceJobRow, skip_locked=True)
    )
    job = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if job is None:
        return None
    move(session, job, Trigger.CLAIM)
    job.fence += 1
    job.heartbeat = 0
    job.lease_holder = holder
    session.flush()
    _charge(session, job.owner_id, CHARGE_SECONDS)
    return Lease(job.id, job.fence, holder)


def _release(session: Session, lease: Lease, ended: Ended) -> None:
    job = session.scalars(
        select(ServiceJobRow).where(*_is_held(lease)).with_for_update().execution_options(populate_existing=True)
    ).one_or_none()
    if job is not None:
        _end(session, job, ended)


def _end(session: Session, job: ServiceJobRow, ended: Ended) -> None:
    job.last_holder, job.lease_holder = job.lease_holder, None
    job.wall_seconds_used += ended.seconds
    state = JobState(job.state)
    if ended.queue is not None:
        job.queue = ended.queue
    if state is JobState.CANCELLING:
        move(session, job, Trigger.STOPPED)
    elif ended.problem is not None and state not in FINAL:
        fail(session, job, Trigger.FAIL, ended.problem)
    elif ended.machine and state is JobState.RUNNING:
        move(session, job, Trigger.REQUEUE, {"reason": ended.reason})
    elif ended.waits and state is JobState.RUNNING:
        move(session, job, Trigger.PAUSE, {"reason": ended.reason})
    elif ended.lost and state not in FINAL:
        _lose(session, job, ended.reason)
    session.flush()
    if ended.seconds:
        _charge(session, job.owner_id, max(ended.seconds - CHARGE_SECONDS, 0.0))


def _lose(session: Session, job: ServiceJobRow, reason: str) -> None:
    job.losses += 1
    told = {"reason": reason, "losses": job.losses}
    if job.state != JobState.RUNNING:
        return  # paused meanwhile: it waits as it was asked to
    if job.losses < MAX_LOSSES:
        move(session, job, Trigger.REQUEUE, told)
        return
    detail = f"The same step was lost {job.losses} times ({reason}): look at the workers' logs, then retry the job."
    fail(session, job, Trigger.CRASH, {"code": "step_lost", "detail": detail, "reason": reason})


def _charge(session: Session, owner_id: str, seconds: float) -> None:
    query = update(OwnerRow).where(OwnerRow.id == owner_id)
    session.execute(query.values(served=OwnerRow.served + seconds / OwnerRow.weight))


def _claimable(queues: Sequence[str]) -> tuple[ColumnElement[bool], ...]:
    return (
        ServiceJobRow.queue.in_(list(queues)),
        ServiceJobRow.state.in_([s.value for s in CLAIMABLE]),
        ServiceJobRow.lease_holder.is_(None),
    )


def _is_held(lease: Lease) -> tuple[ColumnElement[bool], ...]:
    return (
        ServiceJobRow.id == lease.job_id,
        ServiceJobRow.fence == lease.fence,
        ServiceJobRow.lease_holder == lease.holder,
    )


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost("lease_lost", f"Job {lease.job_id} is no longer held under number {lease.fence}.")
