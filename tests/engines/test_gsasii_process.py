"""The process of GSAS-II: killed at any moment, past its wall clock, over many commands."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.run import start_job
from autoxrd.engines.executor import ProtocolSession, SessionSettings
from autoxrd.engines.gsasii import GsasiiEngine
from autoxrd.engines.protocol import EngineCommand, Snapshot
from autoxrd.errors import EngineTimeout
from autoxrd.store.graph import Graph
from tests.agent.small import write_inputs
from tests.engines.samples import FLUORITE, LAB, simulated, values

pytestmark = pytest.mark.gsasii

FREE = EngineCommand(released=("phase.*.scale", "background.*", "sample.displacement", "phase.*.cell", "profile.W"))


@pytest.fixture(scope="module")
def root(gsasii: ProtocolSession) -> Snapshot:
    truth = values(phase__fluorite__scale=20.0, phase__fluorite__cell__a=5.4648, background__0=200.0)
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), truth)
    return gsasii.prepare(pattern, LAB, (FLUORITE,), {})


@contextlib.contextmanager
def killing(session: ProtocolSession, delays: list[float]) -> Iterator[None]:
    """Kill the session's process after each of some delays, seconds."""
    over = threading.Event()

    def kill() -> None:
        for delay in delays:
            if over.wait(delay):
                return
            child = session._child
            if child is not None and child.alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_killed_process_costs_time_and_nothing_else(gsasii: ProtocolSession, root: Snapshot) -> None:
    expected, _ = gsasii.execute(root, FREE)
    session = GsasiiEngine().start()
    try:
        session.hello()
        with killing(session, [0.03]):
            after, _ = session.execute(root, FREE)
        assert after.payload == expected.payload
        assert session.starts == 2
    finally:
        session.close()


def test_a_stuck_fit_ends_within_a_second_of_its_limit(root: Snapshot) -> None:
    session = GsasiiEngine(session=SessionSettings(command_seconds=0.05, soft_share=1e6)).start()
    try:
        session.hello()
        began = time.monotonic()
        with pytest.raises(EngineTimeout) as caught:
            session.execute(root, FREE)
        assert time.monotonic() - began < 1.2
        assert caught.value.code == "engine_wall_clock"
    finally:
        session.close()


@pytest.mark.slow
def test_two_hundred_commands_take_no_more_memory(gsasii: ProtocolSession, root: Snapshot) -> None:
    pid = gsasii.hello()["pid"]

    def resident() -> int:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))

    for _ in range(10):
        gsasii.execute(root, FREE)
    before = resident()
    for _ in range(200):
        gsasii.execute(root, EngineCommand(released=FREE.released, cycles=2))
    assert resident() - before < 20_000


@pytest.mark.slow
def test_a_job_that_is_killed_at_twenty_moments_ends_in_the_same_state(tmp_path: Path) -> None:
    pattern, cif = write_inputs(tmp_path)
    job, sources = load_job(Request(pattern=pattern, structures=(cif,), anode="Cu", engine="gsasii"))
    random, kills, finals = np.random.default_rng(4), 0, []
    while not finals or kills < 20:
        began = time.monotonic()
        session = GsasiiEngine().start()
        session.hello()
        # a busy machine starts a process slowly: the moments go with its pace
        pace = time.monotonic() - began
        delays = (pace * random.uniform(0.8, 2.5, 40)).tolist() if finals else []
        out = tmp_path / f"job-{len(finals)}"
        try:
            with killing(session, delays):
                start_job(job, out, sources=sources, session=session)
        finally:
            session.close()
        kills += session.starts - 1
        with Graph.open(out, read_only=True) as graph:
            finish = graph.finished()
            assert finish is not None
            finals.append(graph.state(finish.final_state).snapshot)
    assert len(set(finals)) == 1
