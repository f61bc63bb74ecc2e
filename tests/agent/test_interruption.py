"""Killing a job at any moment loses at most the running step; resume ends in the same final state."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from autoxrd.agent.controller import rejudge
from autoxrd.store.verify import verify
from tests.agent.conftest import COMMAND, Run


def _parents() -> dict[int, int]:
    """Return pid -> parent's pid of all processes that are no zombies (Linux)."""
    found: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found[int(stat.parent.name)] = int(parent)
    return found


def _running() -> set[int]:
    return set(_parents())


def _descendants(pid: int) -> set[int]:
    parents, found = _parents(), {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def _start(
    inputs: tuple[Path, Path], out: Path, runners: int = 1, scratch: Path | None = None
) -> subprocess.Popen[bytes]:
    words = ["refine", str(inputs[0]), "-s", str(inputs[1]), "--anode", "Cu", "--out", str(out), "--json"]
    words += ["--runners", str(runners)]
    # A shell starts what runs in its background with SIGINT ignored; a person's terminal does not.
    return subprocess.Popen(
        [*COMMAND, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=None if scratch is None else {**os.environ, "TMPDIR": str(scratch)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def _wait_for_job(out: Path, child: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while not (out / "graph.sqlite").exists() and child.poll() is None and time.monotonic() < end:
        time.sleep(0.02)


@pytest.mark.parametrize(("seed", "runners"), [(0, 1), (1, 1), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_kill_at_a_random_moment(
    seed: int, runners: int, finished: tuple[Path, str], inputs: tuple[Path, Path], autoxrd: Run, tmp_path: Path
) -> None:
    expected = json.loads(finished[1])
    out = tmp_path / "out"
    child = _start(inputs, out, runners)
    _wait_for_job(out, child)
    time.sleep(random.Random(seed).uniform(0.0, 9.0))
    helpers = _descendants(child.pid) if child.poll() is None else set()
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=30)
    end = time.monotonic() + 5
    while (alive := helpers & _running()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive, "an engine outlived its job"
    done = autoxrd("resume", out, "--json")
    got = json.loads(done.stdout)
    assert got["final_state"] == expected["final_state"]
    assert got["graph_root"] == expected["graph_root"]
    assert verify(out, judge=rejudge).ok


@pytest.mark.parametrize(("number", "runners"), [(signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGINT, 2)])
def test_an_interruption_is_recorded(
    number: signal.Signals,
    runners: int,
    finished: tuple[Path, str],
    inputs: tuple[Path, Path],
    autoxrd: Run,
    tmp_path: Path,
) -> None:
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    scratch.mkdir()
    child = _start(inputs, out, runners, scratch)
    _wait_for_job(out, child)
    end = time.monotonic() + 20
    while len(helpers := _descendants(child.pid)) < runners and time.monotonic() < end:
        time.sleep(0.02)
    assert len(helpers) == runners
    time.sleep(0.3)
    os.kill(child.pid, number)
    assert child.wait(timeout=60) == 130
    assert not helpers & _running(), "an engine outlived its job"
    assert not list(scratch.iterdir())
    report = verify(out, judge=rejudge)
    assert report.ok
    assert not report.finished
    got = json.loads(autoxrd("resume", out, "--json").stdout)
    assert got["graph_root"] == json.loads(finished[1])["graph_root"]
