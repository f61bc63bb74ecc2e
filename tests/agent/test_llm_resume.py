"""An interrupted conversation goes on where it stopped: what was answered is not asked again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autoxrd.agent.bench import GraphBench
from autoxrd.agent.controller import Controller, rejudge
from autoxrd.agent.events import JobEvent, StepStarted
from autoxrd.agent.exchanges import GraphExchangeLog, read_exchanges
from autoxrd.agent.result import conclude
from autoxrd.errors import PlannerError
from autoxrd.planners.llm import LlmSettings, ModelDesk
from autoxrd.planners.llm.desk import Desk
from autoxrd.planners.llm.ports import Exchange, ModelFailure, ModelRequest
from autoxrd.planners.registry import get_planner
from autoxrd.store.artifacts import ArtifactStore
from autoxrd.store.graph import Graph
from autoxrd.store.verify import verify
from tests.support.llm_desk import Reply, ScriptedClient, greedy, no_waits, play, seen
from tests.support.stub_engine import StubSession, stub_job


class _PulledPlug(BaseException):
    """The process dies here."""


def _go_on(directory: Path, client: ScriptedClient | None, **settings: Any) -> str:
    """Go on with a job as a new process would; return its graph root."""
    with Graph.open(directory) as graph:
        job = stub_job(steps=30, **settings)
        how = LlmSettings.model_validate(job.planner_settings)
        source: list[Exchange] | None = None if client else []
        desk = Desk(GraphExchangeLog(graph), how, client, source=source, waits=no_waits())
        model = ModelDesk(desk, GraphBench(graph, job), how)
        stopped = Controller(job, graph, StubSession(), get_planner("llm", model)).run()
        conclude(graph, job, stopped)
        return graph.root_hash()


def _started(directory: Path, **settings: Any) -> None:
    job = stub_job(steps=30, **settings)
    Graph.create(directory, job.to_record(ArtifactStore(directory / "artifacts"))).close()


@pytest.mark.parametrize("dies_at", [1, 2, 4, 7])
def test_a_job_that_dies_in_any_question_ends_in_the_same_graph(dies_at: int, tmp_path: Path) -> None:
    with play(tmp_path / "whole", greedy, steps=30) as played:
        expected, asked = played.graph.root_hash(), len(played.client.sent)
    _started(tmp_path / "job")

    def dying(request: ModelRequest) -> Reply:
        if len(first.sent) == dies_at:
            raise _PulledPlug
        return greedy(request)

    first = ScriptedClient(dying)
    with pytest.raises(_PulledPlug):
        _go_on(tmp_path / "job", first)
    second = ScriptedClient(greedy)
    assert _go_on(tmp_path / "job", second) == expected
    assert len(second.sent) == asked - (dies_at - 1)
    report = verify(tmp_path / "job", judge=rejudge)
    assert report.ok, report.errors


def test_an_answer_that_was_recorded_before_the_step_is_used(tmp_path: Path) -> None:
    """Killed between the answer and the step: the money is spent, so the answer counts."""
    with play(tmp_path / "whole", greedy, steps=30) as played:
        expected = played.graph.root_hash()
    _started(tmp_path / "job")
    client = ScriptedClient(greedy)

    def pull(event: JobEvent) -> None:
        if isinstance(event, StepStarted):
            raise _PulledPlug

    with Graph.open(tmp_path / "job") as graph:
        job = stub_job(steps=30)
        how = LlmSettings.model_validate(job.planner_settings)
        model = ModelDesk(Desk(GraphExchangeLog(graph), how, client, waits=no_waits()), GraphBench(graph, job), how)
        controller = Controller(job, graph, StubSession(), get_planner("llm", model), pull)
        with pytest.raises(_PulledPlug):
            controller.run()
        assert (len(read_exchanges(graph)), len(graph.attempts())) == (1, 0)
    rest = ScriptedClient(greedy)
    assert _go_on(tmp_path / "job", rest) == expected
    assert not any(seen(r)["attempts"] == [] for r in rest.sent if r.schema_name == "answer")


def test_a_job_that_waits_for_its_model_can_be_gone_on_with(tmp_path: Path) -> None:
    _started(tmp_path / "job", on_outage="wait")
    down = ModelFailure("server_error", "down", again=True)

    def breaks(request: ModelRequest) -> Reply:
        return down if len(seen(request)["attempts"]) == 2 else greedy(request)

    with pytest.raises(PlannerError) as caught:
        _go_on(tmp_path / "job", ScriptedClient(breaks), on_outage="wait")
    assert caught.value.code == "model_unavailable"
    with Graph.open(tmp_path / "job", read_only=True) as graph:
        assert len(graph.attempts()) == 2
        assert graph.finished() is None
        assert [e.outcome for e in read_exchanges(graph)][-1] == "server_error"
    _go_on(tmp_path / "job", ScriptedClient(greedy), on_outage="wait")
    with (
        play(tmp_path / "whole", greedy, steps=30, on_outage="wait") as played,
        Graph.open(tmp_path / "job", read_only=True) as graph,
    ):
        assert graph.root_hash() == played.graph.root_hash()


def test_a_replay_of_lost_steps_and_outages_decides_alike(tmp_path: Path) -> None:
    """Not only good answers are replayed: faults, repairs and the end of the budget are too."""

    def moody(request: ModelRequest) -> Reply:
        number = len(client_calls)
        client_calls.append(number)
        if number in (1, 2, 5):
            return "no json"
        if number == 7:
            return ModelFailure("request_refused", "no", again=False)
        return greedy(request)

    client_calls: list[int] = []
    with play(tmp_path / "whole", moody, steps=30, budget={"calls": 12}) as played:
        expected, recorded = played.graph.root_hash(), read_exchanges(played.graph)
        kinds = [event.kind for event in played.graph.events()]
    assert "forfeit" in kinds
    _started(tmp_path / "again", budget={"calls": 12})
    with Graph.open(tmp_path / "again") as graph:
        job = stub_job(steps=30, budget={"calls": 12})
        how = LlmSettings.model_validate(job.planner_settings)
        desk = Desk(GraphExchangeLog(graph), how, None, source=recorded, waits=no_waits())
        model = ModelDesk(desk, GraphBench(graph, job), how)
        stopped = Controller(job, graph, StubSession(), get_planner("llm", model)).run()
        conclude(graph, job, stopped)
        assert graph.root_hash() == expected
        again = [json.dumps(e.request.as_dict()) for e in read_exchanges(graph)]
    assert again == [json.dumps(e.request.as_dict()) for e in recorded]
