"""An engine's process: it cannot outlive its parent, its wall clock or its limits, and it tells why it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoxrd.engines.launcher import ChildProcess, Launcher
from autoxrd.errors import EngineCrashed, EngineOutputInvalid, EngineTimeout, EngineUnavailable
from tests.engines.programs import ends_within, is_running, toy_launcher

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")

PARENT = """
import sys, time
from pathlib import Path
sys.path.append(sys.argv[2])
from tests.engines.programs import toy_launcher
child = toy_launcher(Path(sys.argv[1])).start()
child.request({"id": 1, "command": "pid"}, 30.0)
print(child.pid, child.scratch, flush=True)
time.sleep(float(sys.argv[3]))
"""


def parent(folder: Path, seconds: float) -> subprocess.Popen[bytes]:
    """A process that starts an engine, tells its id and directory, and then does nothing for a while."""
    root = str(Path(__file__).resolve().parents[2])
    command = [sys.executable, "-c", PARENT, str(folder), root, str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def told(process: subprocess.Popen[bytes]) -> tuple[int, Path]:
    assert process.stdout is not None
    pid, scratch = process.stdout.readline().split()
    return int(pid), Path(scratch.decode())


@pytest.fixture
def child(tmp_path: Path) -> Iterator[ChildProcess]:
    process = toy_launcher(tmp_path).start()
    yield process
    process.close()


def test_killing_the_parent_ends_the_engine_within_two_seconds(tmp_path: Path) -> None:
    with parent(tmp_path, 60.0) as process:
        pid, _ = told(process)
        assert is_running(pid)
        os.kill(process.pid, signal.SIGKILL)
        assert ends_within(pid, 2.0)


def test_a_parent_that_ends_leaves_no_process_and_no_directory(tmp_path: Path) -> None:
    with parent(tmp_path, 0.0) as process:
        pid, scratch = told(process)
        assert process.wait(timeout=20.0) == 0
        assert ends_within(pid, 2.0)
        assert not scratch.exists()


def test_an_engine_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started: list[ChildProcess] = []
    thread = threading.Thread(target=lambda: started.append(toy_launcher(tmp_path).start()))
    thread.start()
    thread.join()
    try:
        time.sleep(0.3)
        assert started[0].request({"id": 1, "command": "pid"}, 30.0)["pid"] == started[0].pid
    finally:
        started[0].close()


def test_starting_returns_at_once(tmp_path: Path) -> None:
    """Before the program has begun: one that sleeps first does not hold up its caller."""
    launcher = toy_launcher(tmp_path)
    program = Path(launcher.command[-1])
    program.write_text(f"import time; time.sleep(20.0)\n{program.read_text(encoding='utf-8')}", encoding="utf-8")
    before = time.perf_counter()
    process = launcher.start()
    seconds = time.perf_counter() - before
    process.close()
    assert seconds < 10.0


def test_a_command_past_its_wall_clock_is_stopped(child: ChildProcess) -> None:
    child.request({"id": 1, "command": "pid"}, 30.0)
    before = time.monotonic()
    with pytest.raises(EngineTimeout) as caught:
        child.request({"id": 2, "command": "sleep", "seconds": 60}, 0.5)
    assert time.monotonic() - before < 10.0  # a command of 60 s, ended after 0.5: how soon is a matter of the machine
    assert caught.value.code == "engine_wall_clock"
    assert not child.alive
    assert ends_within(child.pid, 1.0)


def test_a_crash_tells_its_exit_status_and_the_end_of_its_log(child: ChildProcess) -> None:
    with pytest.raises(EngineCrashed) as caught:
        child.request({"id": 1, "command": "crash"}, 30.0)
    assert caught.value.context["exit_status"] == 7
    assert "the reason of the crash" in str(caught.value.context["log"])


def test_a_request_to_a_dead_engine_is_a_crash(child: ChildProcess) -> None:
    os.kill(child.pid, signal.SIGKILL)
    assert ends_within(child.pid, 2.0)
    with pytest.raises(EngineCrashed):
        child.request({"id": 1, "command": "pid"}, 30.0)


def test_text_in_place_of_an_answer_is_invalid_output(child: ChildProcess) -> None:
    with pytest.raises(EngineOutputInvalid):
        child.request({"id": 1, "command": "garbage"}, 30.0)
    assert not child.alive


def test_closing_ends_the_whole_group_and_removes_the_scratch_directory(child: ChildProcess) -> None:
    grandchild = child.request({"id": 1, "command": "spawn"}, 30.0)["pid"]
    assert isinstance(grandchild, int)
    assert is_running(grandchild)
    assert child.scratch.is_dir()
    child.close()
    assert ends_within(grandchild, 2.0)
    assert not child.scratch.exists()
    child.close()  # a second time does nothing


def test_the_environment_is_short_and_private(
    child: ChildProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    process = toy_launcher(tmp_path).start()
    try:
        answer = process.request({"id": 1, "command": "environment"}, 30.0)
    finally:
        process.close()
    environment = answer["environment"]
    assert isinstance(environment, dict)
    assert "SOME_API_KEY" not in environment
    assert environment["HOME"] == str(process.scratch) == answer["folder"]
    assert environment["OMP_NUM_THREADS"] == environment["OPENBLAS_NUM_THREADS"] == "1"
    assert answer["session"] == process.pid != os.getsid(0)


def test_memory_has_a_limit(tmp_path: Path) -> None:
    process = toy_launcher(tmp_path, address_space_bytes=512 * 2**20).start()
    try:
        assert process.request({"id": 1, "command": "allocate", "size": 2**20}, 30.0)["size"] == 2**20
        with pytest.raises(EngineCrashed) as caught:
            process.request({"id": 2, "command": "allocate", "size": 2**30}, 30.0)
        assert "MemoryError" in str(caught.value.context["log"])
    finally:
        process.close()


def test_files_have_a_limit(tmp_path: Path) -> None:
    process = toy_launcher(tmp_path, file_size_bytes=2**20).start()
    try:
        with pytest.raises(EngineCrashed):
            process.request({"id": 1, "command": "write", "size": 2**22}, 30.0)
    finally:
        process.close()


def test_a_long_log_keeps_its_ends(tmp_path: Path) -> None:
    process = toy_launcher(tmp_path, log_bytes=1000).start()
    try:
        process.request({"id": 1, "command": "chatter", "size": 500_000}, 30.0)
        assert len(process.log_tail(10_000)) < 1100
    finally:
        process.close()


def test_a_program_that_is_not_there_crashes_with_a_reason() -> None:
    process = Launcher(command=("/nonexistent/engine",)).start()
    with pytest.raises(EngineCrashed):
        process.request({"id": 1, "command": "pid"}, 30.0)
    process.close()


def test_a_scratch_root_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises((EngineUnavailable, FileNotFoundError)):
        toy_launcher(tmp_path, scratch_root=tmp_path / "missing").start()
