"""A session: restarts what died, keeps the time, and turns a refusal into the right exception."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoxrd.engines.executor import ProtocolSession, SessionSettings
from autoxrd.engines.protocol import EngineCommand, Snapshot
from autoxrd.engines.registry import engine_names, get_engine
from autoxrd.errors import (
    AutoxrdError,
    EngineCrashed,
    EngineDiverged,
    EngineError,
    EngineOutputInvalid,
    EngineTimeout,
    NotFound,
    UserInputError,
)
from tests.engines.programs import is_running, toy_launcher


@pytest.fixture
def session(tmp_path: Path) -> Iterator[ProtocolSession]:
    opened = ProtocolSession("toy", toy_launcher(tmp_path), SessionSettings(command_seconds=0.5))
    yield opened
    opened.close()


def ask(session: ProtocolSession, what: str) -> None:
    """Let the toy engine do something; see its program."""
    session.execute(Snapshot("toy", b""), EngineCommand(released=(what,)))


def test_the_next_command_after_a_wall_clock_starts_a_new_process(session: ProtocolSession) -> None:
    first = session.hello()["pid"]
    with pytest.raises(EngineTimeout):
        ask(session, "sleep 60")
    assert session.hello()["pid"] != first
    assert session.starts == 2


def test_a_command_that_ends_its_process_is_tried_once_more_and_no_oftener(session: ProtocolSession) -> None:
    session.hello()
    with pytest.raises(EngineCrashed):
        ask(session, "crash")
    assert session.starts == 2
    session.hello()
    assert session.starts == 3


@pytest.mark.parametrize(("kills", "starts"), [(1, 2), (4, 5)])
def test_a_killed_process_is_started_again_a_few_times(session: ProtocolSession, kills: int, starts: int) -> None:
    session.hello()
    with pytest.raises(EngineOutputInvalid):  # the toy's answer to a command that went well holds no state
        ask(session, f"killed {kills}")
    assert session.starts == starts


def test_a_process_that_is_killed_every_time_is_given_up(session: ProtocolSession) -> None:
    session.hello()
    with pytest.raises(EngineCrashed):
        ask(session, "killed 99")
    assert session.starts == 5


def test_waiting_is_counted_as_engine_time(session: ProtocolSession) -> None:
    session.hello()
    before, wall = session.engine_seconds, time.perf_counter()
    with pytest.raises(EngineOutputInvalid):
        ask(session, "sleep 0.2")
    wall = time.perf_counter() - wall
    assert 0.2 <= session.engine_seconds - before <= wall


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("input", UserInputError),
        ("diverged", EngineDiverged),
        ("timeout", EngineTimeout),
        ("internal", EngineCrashed),
        ("anything", EngineOutputInvalid),
    ],
)
def test_a_refusal_becomes_the_exception_it_stands_for(
    session: ProtocolSession, kind: str, error: type[AutoxrdError]
) -> None:
    with pytest.raises(error) as caught:
        ask(session, f"refuse {kind}")
    assert caught.value.code == "refused"


def test_a_snapshot_of_another_engine_is_refused(session: ProtocolSession) -> None:
    with pytest.raises(UserInputError) as caught:
        session.execute(Snapshot("gsasii", b""), EngineCommand())
    assert caught.value.code == "snapshot_of_other_engine"


def test_an_answer_without_its_files_is_invalid_output(session: ProtocolSession) -> None:
    with pytest.raises(EngineOutputInvalid):
        ask(session, "nothing")


def test_a_command_that_nobody_waits_for_is_given_up_and_its_process_lives_on(session: ProtocolSession) -> None:
    first = session.hello()["pid"]
    session.cancel()  # nothing runs: nothing happens
    threading.Timer(0.1, session.cancel).start()
    with pytest.raises(EngineError) as caught:
        ask(session, "wait")
    assert caught.value.code == "engine_command_unwanted"
    assert session.hello()["pid"] == first


def test_a_session_that_is_ended_from_another_thread_leaves_nothing_behind(tmp_path: Path) -> None:
    session = ProtocolSession("toy", toy_launcher(tmp_path, scratch_root=tmp_path))
    pid = session.hello()["pid"]
    assert isinstance(pid, int)
    threading.Timer(0.1, session.abort).start()
    began = time.perf_counter()
    with pytest.raises(EngineCrashed):
        ask(session, "sleep 60")
    assert time.perf_counter() - began < 10.0
    with pytest.raises(EngineCrashed) as caught:
        ask(session, "nothing")
    assert caught.value.code == "engine_aborted"
    assert session.starts == 1
    assert not is_running(pid)
    assert not list(tmp_path.glob("autoxrd-engine-*"))


def test_the_registry_knows_its_engines() -> None:
    assert "rietx" in engine_names()
    assert get_engine("rietx").name == "rietx"
    with pytest.raises(NotFound):
        get_engine("shelx")
