"""A model without a wire, a log without a graph, and a job on the stub engine: for tests that need neither."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from autoxrd.agent.bench import GraphBench
from autoxrd.agent.controller import Controller, Stopped
from autoxrd.agent.exchanges import GraphExchangeLog
from autoxrd.agent.job import Job
from autoxrd.agent.result import Conclusion, conclude
from autoxrd.planners.llm import LlmSettings, ModelDesk
from autoxrd.planners.llm.desk import Desk, Waits
from autoxrd.planners.llm.ports import Exchange, ModelReply, ModelRequest, Price
from autoxrd.planners.registry import get_planner
from autoxrd.store.artifacts import ArtifactStore
from autoxrd.store.graph import Graph
from tests.support.llm_expert import NO_REVIEW, finish_answer, propose_answer
from tests.support.llm_server import Asked
from tests.support.stub_engine import StubSession, stub_job

__all__ = ["MemoryLog", "Played", "ScriptedClient", "no_waits", "play", "seen"]

Reply = ModelReply | Mapping[str, Any] | str | Exception
Script = Callable[[ModelRequest], Reply]


def seen(request: ModelRequest) -> dict[str, Any]:
    """Return the observation in a request."""
    from tests.support.llm_expert import observation_of

    return observation_of(Asked({"messages": request.messages}, {}, 0))


@dataclass
class ScriptedClient:
    """A client that plays a script; what is no reply becomes the arguments of the forced tool."""

    script: Script
    usd_per_token: float | None = None
    tokens: int = 1000
    sent: list[ModelRequest] = field(default_factory=list)

    def mode(self) -> str:
        return "tool"

    def price(self) -> Price | None:
        return None if self.usd_per_token is None else Price(self.usd_per_token, self.usd_per_token)

    def count_tokens(self, request: ModelRequest) -> int:
        return self.tokens

    def send(self, request: ModelRequest, timeout_seconds: float) -> ModelReply:
        self.sent.append(request)
        answer = self.script(request)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, ModelReply):
            return answer
        text = answer if isinstance(answer, str) else json.dumps(answer)
        usd = None if self.usd_per_token is None else self.usd_per_token * (self.tokens + 100)
        return ModelReply(
            model="stub", calls=((request.schema_name, text),), finish_reason="tool_calls",
            prompt_tokens=self.tokens, answer_tokens=100, usd=usd,
        )  # fmt: skip


class MemoryLog:
    """A log that keeps nothing on a disk."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def past(self) -> Sequence[Exchange]:
        return self.exchanges

    def add(self, exchange: Exchange) -> Exchange:
        kept = replace(exchange, artifact="0" * 64)
        self.exchanges.append(kept)
        return kept


def no_waits(pauses: list[float] | None = None) -> Waits:
    """A clock that stands but for the pauses, which take no time."""
    passed = pauses if pauses is not None else []
    return Waits(clock=lambda: sum(passed), sleep=passed.append, chance=lambda: 0.5)


@dataclass
class Played:
    """A job on the stub engine that came to its end."""

    job: Job
    graph: Graph
    client: ScriptedClient
    session: StubSession
    stopped: Stopped
    conclusion: Conclusion


@contextmanager
def play(directory: Path, script: Script, *, planner: str = "llm", steps: int = 20, **more: Any):  # type: ignore[no-untyped-def]
    """Run a job on the stub engine with a scripted model, to its conclusion."""
    truth, usd = more.pop("truth", None), more.pop("usd_per_token", None)
    session = more.pop("session", None) or (StubSession(truth) if truth else StubSession())
    job = stub_job(planner, steps=steps, **more)
    client = ScriptedClient(script, usd)
    with Graph.create(directory, job.to_record(ArtifactStore(directory / "artifacts"))) as graph:
        settings = LlmSettings.model_validate(job.planner_settings)
        desk = Desk(GraphExchangeLog(graph), settings, client, waits=no_waits())
        model = ModelDesk(desk, GraphBench(graph, job), settings)
        stopped = Controller(job, graph, session, get_planner(planner, model)).run()
        yield Played(job, graph, client, session, stopped, conclude(graph, job, stopped))


def honest(row: Sequence[Any], kind: str, state: str, *, share: float = 0.3, **more: Any) -> dict[str, Any]:
    """An action on one row of the gains, with the evidence and the prediction that belong to it."""
    selector, drop = str(row[0]), float(row[1])
    gain = f"release_gain.{selector}"
    return {
        "kind": kind, "from": state, "parameters": [selector], "bounds": [], "terms": None, "phase": None, "axis": None,
        "equal": None, "instead_of": [],
        "rationale": "It promises much.",
        "evidence": [{"feature": gain, "value": drop, "comparison": ">", "threshold": 0.1 * drop}],
        "predictions": [{"metric": gain, "direction": "decrease", "minimum_effect": share * drop}], **more,
    }  # fmt: skip


def greedy(request: ModelRequest) -> Reply:
    """A plain planner: the largest gain that was not refused from here, then the end."""
    if request.schema_name == "review":
        return NO_REVIEW
    view = seen(request)
    refused = {name for a in view["attempts"] if not a["accepted"] for name in a["parameters"]}
    for row in view["gains"]["rows"]:
        if row[0] not in refused and row[2] > 25:
            return propose_answer(honest(row, row[4][0], view["state"]))
    return finish_answer(view["state"])
