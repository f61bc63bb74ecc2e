"""Several processes of one engine: what is computed ahead is found, dropped, or fails, and nothing depends on it."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from autoxrd.engines.pool import RunnerPool
from autoxrd.engines.protocol import EngineCommand, Exported, Snapshot
from autoxrd.engines.registry import start_engine
from autoxrd.engines.tasks import Wish
from autoxrd.errors import EngineCrashed, EngineDiverged, EngineError, EngineUnavailable, UserInputError

ROOT = Snapshot("fake", b"root")


class World:
    """What the fake sessions of a test share: which commands wait, which were begun by whom, and how they end."""

    def __init__(self) -> None:
        self.sessions: list[FakeSession] = []
        self.begun: list[str] = []
        self.held: set[str] = set()
        self.errors: dict[str, list[Exception]] = {}
        self.deaf = False
        self.refuses_after = 99
        self.changed = threading.Condition()

    def start(self) -> FakeSession:
        if len(self.sessions) >= self.refuses_after:
            raise EngineUnavailable("engine_not_startable", "no memory")
        session = FakeSession(self)
        self.sessions.append(session)
        return session

    def release(self, name: str) -> None:
        with self.changed:
            self.held.discard(name)
            self.changed.notify_all()

    def wait_until(self, holds: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(holds, timeout=5.0)

    def wait_for(self, name: str) -> None:
        self.wait_until(lambda: name in self.begun)


class FakeSession:
    """Does what its world says; a command is named by its first selector."""

    engine_seconds = 0.0

    def __init__(self, world: World) -> None:
        self.world = world
        self.cancelled = self.aborted = self.closed = False

    def hello(self) -> dict[str, object]:
        return {}

    def execute(self, snapshot: Snapshot, command: EngineCommand) -> tuple[Snapshot, Any]:
        world, name = self.world, command.released[0]
        with world.changed:
            self.cancelled = False
            world.begun.append(name)
            world.changed.notify_all()
            world.changed.wait_for(
                lambda: name not in world.held or self.aborted or (self.cancelled and not world.deaf), timeout=10.0
            )
            if self.aborted:
                raise EngineCrashed("engine_aborted", "ended")
            if self.cancelled and not world.deaf:
                raise EngineError("engine_command_unwanted", "given up")
            if world.errors.get(name):
                raise world.errors[name].pop(0)
        return Snapshot("fake", snapshot.payload + b"/" + name.encode()), name

    def export(self, snapshot: Snapshot, kinds: tuple[str, ...]) -> Exported:
        return Exported(dict.fromkeys(kinds, snapshot.payload))

    def prepare(self, *_: Any) -> Snapshot:
        return ROOT

    prepare_several = prepare

    def cancel(self) -> None:
        with self.world.changed:
            self.cancelled = True
            self.world.changed.notify_all()

    def abort(self) -> None:
        with self.world.changed:
            self.aborted = True
            self.world.changed.notify_all()

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def pool(world: World) -> Iterator[RunnerPool]:
    opened = RunnerPool(world.start, 2)
    yield opened
    opened.close()


def command(name: str) -> EngineCommand:
    return EngineCommand(released=(name,))


def wish(name: str) -> Wish:
    return Wish(ROOT, command(name))


def begin_beside(pool: RunnerPool, world: World, main: str, *guesses: str) -> None:
    """Begin a command that waits, and guesses beside it; return once the first guess is on its way."""
    world.held.add(main)
    pool.begin(wish(main))
    pool.expect([wish(guess) for guess in guesses])
    world.wait_for(main)
    world.wait_for(guesses[0])


def answer(pool: RunnerPool, name: str) -> bytes:
    return pool.execute(ROOT, command(name))[0].payload


def test_a_guess_that_is_asked_for_is_not_computed_again(pool: RunnerPool, world: World) -> None:
    begin_beside(pool, world, "main", "next")
    world.release("main")
    assert answer(pool, "main") == b"root/main"
    assert answer(pool, "next") == b"root/next"
    assert sorted(world.begun) == ["main", "next"]
    assert (pool.guessed, pool.used) == (1, 1)


def test_a_guess_still_on_its_way_is_waited_for(pool: RunnerPool, world: World) -> None:
    world.held.add("next")
    begin_beside(pool, world, "main", "next")
    world.release("main")
    answer(pool, "main")
    threading.Timer(0.1, world.release, ["next"]).start()
    began = time.perf_counter()
    assert answer(pool, "next") == b"root/next"
    assert world.begun.count("next") == 1
    assert pool.engine_seconds >= 0.09
    assert time.perf_counter() - began < 5.0


def test_what_was_not_guessed_is_computed_while_the_wrong_guess_runs(pool: RunnerPool, world: World) -> None:
    world.held.add("wrong")
    begin_beside(pool, world, "main", "wrong")
    world.release("main")
    answer(pool, "main")
    assert answer(pool, "right") == b"root/right"
    assert pool.used == 0


def test_the_same_command_on_another_snapshot_is_another_one(pool: RunnerPool, world: World) -> None:
    begin_beside(pool, world, "main", "next")
    world.release("main")
    answer(pool, "main")
    assert pool.execute(Snapshot("fake", b"other"), command("next"))[0].payload == b"other/next"
    assert world.begun.count("next") == 2


@pytest.mark.parametrize("change", [{"cycles": 3}, {"mode": "lebail"}, {"gains": False}, {"released": ("a", "b")}])
def test_commands_that_differ_have_different_names(change: dict[str, Any]) -> None:
    assert Wish(ROOT, EngineCommand(**({"released": ("a",)} | change))).key != wish("a").key


def test_a_guess_that_nobody_wants_any_more_is_given_up_for_the_next(pool: RunnerPool, world: World) -> None:
    world.held.add("old")
    begin_beside(pool, world, "main", "old")
    pool.expect([wish("new")])
    world.wait_for("new")  # no other runner is idle: the old guess has ended
    assert len(world.sessions) == 2
    world.release("main")
    answer(pool, "main")
    assert answer(pool, "new") == b"root/new"
    assert world.begun.count("new") == 1


def test_a_process_that_does_not_give_up_is_replaced(pool: RunnerPool, world: World) -> None:
    world.deaf = True
    world.held.add("old")
    begin_beside(pool, world, "main", "old")
    pool.expect([wish("new")])
    threading.Timer(0.3, world.release, ["main"]).start()
    answer(pool, "main")
    assert answer(pool, "new") == b"root/new"
    assert sum(session.aborted for session in world.sessions) == 1
    assert world.begun.count("new") == 1
    assert len(world.sessions) == 3


def test_a_given_up_command_that_is_asked_after_all_is_computed_anew(pool: RunnerPool, world: World) -> None:
    world.held.add("old")
    begin_beside(pool, world, "main", "old")
    pool.expect([])
    world.release("main")
    answer(pool, "main")
    world.release("old")
    assert answer(pool, "old") == b"root/old"


def test_the_error_of_a_guess_is_told_to_whoever_asks_for_it_and_to_nobody_else(pool: RunnerPool, world: World) -> None:
    world.errors["bad"] = [EngineDiverged("fit_failed", "no")]
    begin_beside(pool, world, "main", "bad")
    world.release("main")
    answer(pool, "main")
    answer(pool, "other")
    with pytest.raises(EngineDiverged):
        answer(pool, "bad")
    assert world.begun.count("bad") == 1


def test_a_guess_whose_process_failed_is_computed_anew_when_asked_for(pool: RunnerPool, world: World) -> None:
    world.errors["next"] = [EngineCrashed("engine_crashed", "short of memory")]
    begin_beside(pool, world, "main", "next")
    world.release("main")
    answer(pool, "main")
    assert answer(pool, "next") == b"root/next"
    assert world.begun.count("next") == 2


def test_what_was_asked_for_fails_as_it_does_with_one_process(pool: RunnerPool, world: World) -> None:
    world.errors["main"] = [EngineCrashed("engine_crashed", "it ended")]
    with pytest.raises(EngineCrashed):
        answer(pool, "main")
    assert world.begun == ["main"]
    assert answer(pool, "main") == b"root/main"


def test_a_guess_never_takes_the_last_idle_process(world: World) -> None:
    pool = RunnerPool(world.start, 1)
    try:
        answer(pool, "first")
        pool.expect([wish("guess")])
        assert answer(pool, "second") == b"root/second"
        time.sleep(0.05)
        assert world.begun == ["first", "second"]
    finally:
        pool.close()


def test_where_no_second_process_can_be_started_the_job_goes_on_with_one(world: World) -> None:
    world.refuses_after = 1
    pool = RunnerPool(world.start, 3)
    try:
        for name in ("first", "second"):
            pool.begin(wish(name))
            pool.expect([wish("guess")])
            assert answer(pool, name) == b"root/" + name.encode()
        assert len(world.sessions) == 1
    finally:
        pool.close()


def test_an_engine_that_cannot_start_at_all_says_so_at_once(world: World) -> None:
    world.refuses_after = 0
    with pytest.raises(EngineUnavailable):
        RunnerPool(world.start, 2)


def test_files_are_written_ahead_too(pool: RunnerPool, world: World) -> None:
    begin_beside(pool, world, "main", "next")
    pool.expect([Wish(ROOT, ("cif",)), wish("next")])
    world.release("main")
    answer(pool, "main")
    assert pool.export(ROOT, ["cif"]).files == {"cif": b"root"}
    assert pool.prepare(None, None, (), {}) == ROOT  # type: ignore[arg-type]


def test_closing_ends_what_runs_and_whoever_waits(world: World) -> None:
    pool = RunnerPool(world.start, 2)
    world.held |= {"main", "next"}
    begin_beside(pool, world, "main", "next")
    found: list[BaseException] = []

    def ask() -> None:
        try:
            answer(pool, "main")
        except EngineError as error:
            found.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    time.sleep(0.05)
    pool.close()
    asker.join(timeout=5.0)
    assert isinstance(found[0], EngineCrashed)
    assert all(session.closed for session in world.sessions)
    assert not [thread for thread in threading.enumerate() if thread.name == "autoxrd-runner"]
    pool.close()


def test_an_interruption_ends_the_command_that_was_waited_for(pool: RunnerPool, world: World) -> None:
    answer(pool, "first")
    world.held.add("main")
    main = threading.main_thread().ident
    assert main is not None
    # a worker of pytest-xdist ignores the signal
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.1, signal.pthread_kill, [main, signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            answer(pool, "main")
    finally:
        signal.signal(signal.SIGINT, before)
    world.wait_until(lambda: any(session.aborted for session in world.sessions))
    assert answer(pool, "second") == b"root/second"


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_guessed_the_answers_are_the_same(seed: int, world: World) -> None:
    chance = random.Random(seed)
    pool = RunnerPool(world.start, 3)
    names = [f"c{number}" for number in range(8)]
    try:
        for _ in range(150):
            main = chance.choice(names)
            if chance.random() < 0.3:
                world.errors[chance.choice(names)] = [EngineCrashed("engine_crashed", "of a guess")]
            if chance.random() < 0.8:
                pool.begin(wish(main))
            pool.expect([wish(name) for name in chance.sample(names, chance.randint(0, 3))])
            time.sleep(chance.choice([0.0, 0.0, 0.001]))
            try:
                assert answer(pool, main) == b"root/" + main.encode()
            except EngineCrashed:
                assert answer(pool, main) == b"root/" + main.encode()
    finally:
        pool.close()


@pytest.mark.parametrize("runners", [0, -1, 5])
def test_a_wrong_number_of_processes_is_refused_with_a_way_out(runners: int) -> None:
    with pytest.raises(UserInputError, match=r"1 to 4.*give 2") as caught:
        start_engine("rietx", runners)
    assert caught.value.code == "runners_invalid"
