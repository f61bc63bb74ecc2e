"""A job with several engine processes: sooner, and the same to the bit."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autoxrd.agent.controller import Controller
from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.run import start_job
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.pool import RunnerPool
from autoxrd.engines.protocol import EngineCommand, EngineResult, Snapshot
from autoxrd.engines.registry import get_engine
from autoxrd.planners.protocol import Finish, Forfeit, GraphView, JobContext, Proposal
from autoxrd.planners.rules import RulesPlanner
from autoxrd.store.artifacts import ArtifactStore
from autoxrd.store.graph import Graph
from autoxrd.store.records import Finish as FinishRecord
from tests.agent.conftest import Run
from tests.support.engines import need
from tests.support.llm_desk import greedy, play
from tests.support.stub_engine import StubSession, stub_job


class PooledStub(StubSession):
    """The stub engine as one of several processes."""

    def hello(self) -> dict[str, object]:
        return {}

    def execute(self, snapshot: Snapshot, command: EngineCommand) -> tuple[Snapshot, EngineResult]:
        time.sleep(0.03)  # long enough for a guess to begin beside it
        return super().execute(snapshot, command)

    def cancel(self) -> None:
        """It is quick enough."""

    abort = cancel


def run_stub(directory: Path, session: Any, planner: Any = None, *, steps: int = 20) -> list[tuple[Any, ...]]:
    """Run the stub's job to its end; return what its graph holds: attempts, decisions and the graph's root."""
    job = stub_job("rules", steps=steps)
    with Graph.create(directory, job.to_record(ArtifactStore(directory / "artifacts"))) as graph:
        stopped = Controller(job, graph, session, planner or RulesPlanner()).run()
        graph.finish(stopped.state, {"verdict": "accepted"})
        found: list[tuple[Any, ...]] = [(a.action, a.decision, a.candidate) for a in graph.attempts()]
        finish = graph.finished()
    assert isinstance(finish, FinishRecord)
    return [*found, (finish.graph_root,)]


def test_a_job_with_refused_steps_has_the_same_graph_with_any_number_of_processes(tmp_path: Path) -> None:
    alone = run_stub(tmp_path / "1", StubSession())
    assert any(not decision.accepted for _, decision, _ in alone[:-1])
    for runners in (2, 3, 4):
        pool = RunnerPool(PooledStub, runners)
        try:
            assert run_stub(tmp_path / str(runners), pool) == alone
            assert pool.used >= 1
        finally:
            pool.close()


class Misled(RulesPlanner):
    """Foresees something else every time, or stumbles."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def foresee(self, view: GraphView, context: JobContext) -> Proposal | Finish:
        self.asked += 1
        if self.asked % 3 == 0:
            raise KeyError("a guess may fail in any way")
        answer = self.propose(view, context)
        if isinstance(answer, Finish):
            return answer
        harmful = answer.action.model_copy(update={"parameters": ("profile.W",)})
        return Proposal(harmful)


def test_wrong_and_failing_guesses_change_nothing(tmp_path: Path) -> None:
    alone = run_stub(tmp_path / "1", StubSession())
    planner, pool = Misled(), RunnerPool(PooledStub, 2)
    try:
        assert run_stub(tmp_path / "2", pool, planner) == alone
    finally:
        pool.close()
    assert planner.asked > 3


class Spy(RulesPlanner):
    """Keeps the views it is asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.foreseen: list[GraphView] = []

    def foresee(self, view: GraphView, context: JobContext) -> Proposal | Finish:
        self.foreseen.append(view)
        return super().foresee(view, context)


def test_the_planner_is_shown_one_refusal_more_and_nothing_else(tmp_path: Path) -> None:
    planner, pool = Spy(), RunnerPool(PooledStub, 2)
    try:
        run_stub(tmp_path / "job", pool, planner)
    finally:
        pool.close()
    with Graph.open(tmp_path / "job", read_only=True) as graph:
        real = graph.attempts()
    for view in planner.foreseen:
        *before, last = view.attempts
        assert [(a.action, a.decision) for a in before] == [(a.action, a.decision) for a in real[: len(before)]]
        assert last.action == real[len(before)].action
        assert not last.accepted
        assert last.candidate is None
        assert last.decision.reasons == ("foreseen",)


class Losing(Spy):
    """Loses its third step."""

    def propose(self, view: GraphView, context: JobContext) -> Any:
        if len(view.attempts) == 2 and not view.forfeits:
            return Forfeit("nothing_said", "No action came.")
        return super().propose(view, context)


def test_a_lost_step_is_part_of_what_the_planner_is_shown(tmp_path: Path) -> None:
    alone = run_stub(tmp_path / "1", StubSession(), Losing())
    planner, pool = Losing(), RunnerPool(PooledStub, 2)
    try:
        assert run_stub(tmp_path / "2", pool, planner) == alone
    finally:
        pool.close()
    assert {view.forfeits for view in planner.foreseen if len(view.attempts) <= 2} == {0}
    assert {view.forfeits for view in planner.foreseen if len(view.attempts) > 2} == {1}


def test_nothing_is_foreseen_beyond_the_budget_of_steps(tmp_path: Path) -> None:
    planner, pool = Spy(), RunnerPool(PooledStub, 4)
    try:
        run_stub(tmp_path / "job", pool, planner, steps=3)
    finally:
        pool.close()
    assert max(len(view.attempts) for view in planner.foreseen) == 2


def test_with_one_process_nothing_is_foreseen(tmp_path: Path) -> None:
    planner = Spy()
    run_stub(tmp_path / "job", StubSession(), planner)
    assert not planner.foreseen


@pytest.mark.parametrize("planner", ["llm", "hybrid"])
def test_a_model_is_asked_what_it_is_asked_with_one_process_and_no_more(planner: str, tmp_path: Path) -> None:
    found = []
    for runners in (1, 2):
        pool = RunnerPool(PooledStub, runners)
        try:
            with play(tmp_path / str(runners), greedy, planner=planner, steps=12, session=pool) as played:
                finish = played.graph.finished()
                assert finish is not None
                found.append((finish.graph_root, [request.messages for request in played.client.sent]))
        finally:
            pool.close()
    assert found[0] == found[1]
    assert found[0][1]


@contextlib.contextmanager
def killing(pids: list[int], seed: int) -> Iterator[list[int]]:
    """Kill one of some engine processes of this test at random moments; give how often."""
    over, chance, killed = threading.Event(), random.Random(seed), [0]

    def kill() -> None:
        while not over.wait(chance.uniform(0.5, 1.5)):
            living = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
            if living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(living), signal.SIGKILL)
                    killed[0] += 1

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def test_killed_processes_cost_time_and_nothing_else(
    finished: tuple[Path, str], inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    job, sources = load_job(Request(pattern=inputs[0], structures=(inputs[1],), anode="Cu"))
    engine, started, pids = get_engine("rietx"), [], []

    def start() -> ProtocolSession:
        session = engine.start()
        assert isinstance(session, ProtocolSession)
        started.append(session)
        pids.append(session._child.pid if session._child else 0)
        return session

    pool = RunnerPool(start, 2)
    scratch: list[Path] = []
    try:
        with killing(pids, 1) as killed:
            done = start_job(job, tmp_path / "out", sources=sources, session=pool)
        scratch = [session._child.scratch for session in started if session._child]
    finally:
        pool.close()
    assert killed[0] >= 1
    assert done.report.graph_root == json.loads(finished[1])["graph_root"]
    assert scratch
    assert not [path for path in scratch if path.exists()]
    assert not [pid for session in started if session._child for pid in [session._child.pid] if _alive(pid)]


def _alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("engine", ["rietx", pytest.param("gsasii", marks=pytest.mark.gsasii)])
def test_the_command_gives_the_same_graph_with_two_processes(
    engine: str, inputs: tuple[Path, Path], autoxrd: Run, tmp_path: Path
) -> None:
    need(get_engine(engine))
    roots = []
    for runners in (1, 2):
        out = tmp_path / str(runners)
        words = ["refine", inputs[0], "-s", inputs[1], "--anode", "Cu", "--engine", engine, "--out", out, "--json"]
        done = autoxrd(*words, "--runners", runners)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        with Graph.open(out, read_only=True) as graph:
            assert any(not attempt.accepted for attempt in graph.attempts())
            roots.append((told["graph_root"], told["final_state"], graph.job))
    assert roots[0] == roots[1]


def test_a_job_begun_with_one_process_goes_on_with_two(
    finished: tuple[Path, str], inputs: tuple[Path, Path], autoxrd: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ["refine", inputs[0], "-s", inputs[1], "--anode", "Cu", "--out", out, "--prepare"]
    assert autoxrd(*words).returncode == 0
    done = autoxrd("resume", out, "--runners", 2, "--json")
    assert json.loads(done.stdout)["graph_root"] == json.loads(finished[1])["graph_root"]
    refused = autoxrd("resume", out, "--runners", 9)
    assert refused.returncode != 0
    assert "1 to 4" in refused.stderr
