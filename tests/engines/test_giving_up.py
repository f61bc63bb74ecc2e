"""A command that is given up half-way leaves the engine as it was: the next one gives the same to the bit."""

from __future__ import annotations

import threading

import pytest

from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import EngineCommand, Snapshot
from autoxrd.errors import EngineError
from tests.engines.samples import FLUORITE, LAB, ZINCITE, simulated, values

FREE = EngineCommand(
    released=("phase.*.scale", "background", "sample.displacement", "phase.*.cell", "profile.SH/L", "phase.*.size")
)


def root(session: ProtocolSession) -> Snapshot:
    truth = values(
        phase__fluorite__scale=2e-4,
        phase__zincite__scale=6e-4,
        phase__fluorite__cell__a=5.4648,
        sample__displacement=0.1,
        background__0=200.0,
    )
    pattern, _ = simulated(session, LAB, (FLUORITE, ZINCITE), truth)
    return session.prepare(pattern, LAB, (FLUORITE, ZINCITE), {})


def test_a_fit_that_is_given_up_changes_nothing_of_the_next(either: ProtocolSession) -> None:
    start = root(either)
    expected, _ = either.execute(start, FREE)
    processes, given_up = either.starts, 0
    for number in range(8):
        timer = threading.Timer(0.04 * (number + 1), either.cancel)
        timer.start()
        try:
            after, _ = either.execute(start, FREE)
            assert after.payload == expected.payload  # it came too late
        except EngineError as error:
            if error.code != "engine_command_unwanted":
                raise
            given_up += 1
        timer.join()
        after, _ = either.execute(start, FREE)
        assert after.payload == expected.payload
    assert given_up >= 2
    assert either.starts == processes


def test_an_unwanted_command_ends_before_it_computes(either: ProtocolSession, monkeypatch: pytest.MonkeyPatch) -> None:
    start = root(either)
    exchange = either._exchange

    def told_before(*words: object) -> dict[str, object]:
        either.cancel()
        return exchange(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(either, "_exchange", told_before)
    with pytest.raises(EngineError) as caught:
        either.execute(start, FREE)
    assert caught.value.code == "engine_command_unwanted"
