"""Cancelling kills: five seconds later no process of the step is left. And no clock of the wall decides anything."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from autoxrd.domain.lifecycle import JobState
from autoxrd.jobs.local import LocalDispatcher
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database, new_id
from autoxrd.store.service.feed import events_after
from autoxrd.store.service.keys import ensure_owner
from autoxrd.store.service.listing import find_job
from autoxrd.store.service.transition import ask

from .conftest import STUB
from .factory import queued
from .test_chaos import waited_for


@pytest.fixture
def quick(tmp_path: Path) -> Settings:
    """Settings of a service with one slot, as `autoxrd serve` has it but for the stub."""
    return Settings(data_dir=tmp_path, step_host=STUB, slots=1, poll_seconds=0.1)


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def engines() -> list[psutil.Process]:
    return [p for p in children() if "time.sleep(600)" in _command_line(p)]


def _command_line(process: psutil.Process) -> str:
    """Return what a process runs, nothing of one that has just ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # a zombie too
        return ""


def test_five_seconds_after_a_cancellation_no_process_of_the_step_is_left(quick: Settings) -> None:
    before = {p.pid for p in children()}
    with Database(quick.database(), quick.artifacts_dir(), durable=False) as database:
        database.migrate()
        stuck = queued(database, title="stuck")
        local = LocalDispatcher(database, quick)
        local.start()
        try:
            waited_for(lambda: bool(engines()))
            processes = [p for p in children() if p.pid not in before]
            assert len(processes) >= 2, "the host and its engine"
            began = time.monotonic()
            assert ask(database, stuck, ensure_owner(database, "ada"), "cancel") is JobState.CANCELLING
            waited_for(lambda: find_job(database, stuck, None).state == "cancelled", 5.0)
            _, alive = psutil.wait_procs(processes, timeout=max(0.0, 5.0 - (time.monotonic() - began)))
            assert alive == []
            steps = [e for e in events_after(database, stuck, 0) if e.kind == "step.recorded"]
            assert [e.data["ordinal"] for e in steps] == [0]
            good = queued(database, title="good")
            waited_for(lambda: find_job(database, good, None).state == "completed")
        finally:
            local.stop()
        assert {p.pid for p in children()} <= before


def test_a_clock_that_is_set_disturbs_nothing(quick: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock jumps by a day, forth and back, while jobs run: ids still rise, leases hold, the feed is whole."""
    offset = [0.0]
    true_time, true_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: true_time() + offset[0])
    monkeypatch.setattr(time, "time_ns", lambda: true_ns() + int(offset[0] * 1e9))
    with Database(quick.database(), quick.artifacts_dir(), durable=False) as database:
        database.migrate()
        local = LocalDispatcher(database, quick.model_copy(update={"lease_seconds": 3.0}))
        local.start()
        try:
            jobs = []
            for offset[0] in (0.0, 86400.0, -86400.0, 0.0):
                jobs.append(queued(database, steps=5))
                time.sleep(0.2)
            waited_for(lambda: all(find_job(database, job, None).finished_at for job in jobs))
        finally:
            local.stop()
        for job in jobs:
            events = events_after(database, job, 0)
            assert [e.number for e in events] == list(range(1, len(events) + 1))
            assert find_job(database, job, None).state == "completed"
            assert not any(e.data.get("reason") for e in events), "a lease was lost"
    assert jobs == sorted(jobs)


def test_ids_are_uuids_of_version_7_and_rise() -> None:
    ids = [new_id() for _ in range(5000)]
    assert ids == sorted(set(ids))
    assert {i[14] for i in ids} == {"7"}
    assert {i[19] for i in ids} <= set("89ab")
