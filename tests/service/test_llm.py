"""Jobs whose planner asks a language model, over REST: the server says which model, the graph holds what was said."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from autoxrd.agent.exchanges import read_exchanges
from autoxrd.errors import PlannerError
from autoxrd.io import read_structures
from autoxrd.jobs.host import answer_to
from autoxrd.jobs.local import QUEUES, LocalDispatcher
from autoxrd.jobs.work import Advance
from autoxrd.server.app import build_app
from autoxrd.settings import Settings
from autoxrd.store.records import EventKind
from autoxrd.store.service import leases
from autoxrd.store.service.budgets import set_limits, spent
from autoxrd.store.service.database import Database
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.keys import ensure_owner
from autoxrd.store.service.leases import Ended, Lease
from autoxrd.store.service.listing import find_job
from tests.support.llm_expert import Expert
from tests.support.llm_server import Fault, LlmServer, in_order, serving

from .access import bearer, token
from .factory import queued
from .fleet import COMMAND
from .test_leases import RECORD

KEY = "sk-a-key-that-must-stay-where-it-is"
pytestmark = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


@contextmanager
def service(database: Database, tmp_path: Path, **settings: Any) -> Iterator[TestClient]:
    """A service that refines, with the settings of a model."""
    made = Settings(data_dir=tmp_path, slots=1, **settings)
    local = LocalDispatcher(database, made)
    app = build_app(made, database, nudge=local.nudge, start=local.start, stop=local.stop)
    with TestClient(app, headers=bearer(token(database)), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def model(small_job: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[LlmServer]:
    """A scripted expert behind HTTP, named by the environment alone."""
    with serving(Expert(read_structures(small_job[1]))) as server:
        monkeypatch.setenv("AUTOXRD_LLM_BASE_URL", server.base_url)
        monkeypatch.setenv("AUTOXRD_LLM_API_KEY", KEY)
        yield server


def sent(client: TestClient, paths: tuple[Path, Path], **request: Any) -> Any:
    pattern, cif = paths
    files = [("pattern", (pattern.name, pattern.read_bytes())), ("structures", (cif.name, cif.read_bytes()))]
    told = {"measurement": {"anode": "Cu"}, "planner": "llm", **request}
    return client.post("/api/v1/jobs", data={"request": json.dumps(told)}, files=files)


def by_command(out: Path, paths: tuple[Path, Path], model: LlmServer, *, note: str) -> Any:
    """Refine on the command line with the same model; return the graph's document."""
    pattern, cif = paths
    words = ["refine", str(pattern), "-s", str(cif), "--anode", "Cu", "--planner", "llm", "--model", "openai/scripted"]
    words += ["--base-url", model.base_url, "--llm-budget", "calls=100", "--note", note, "--out", str(out)]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads((out / "graph.json").read_bytes())


def course(document: Any) -> list[tuple[Any, ...]]:
    """Return what was tried, in order, and what became of it."""
    tried = [edge["content"]["action"] for edge in document["edges"]]
    ends = [(edge["status"], edge["content"]["decision"]["reasons"]) for edge in document["edges"]]
    return [(t["kind"], t["parameters"], *end) for t, end in zip(tried, ends, strict=True)]


def figures(document: Any) -> list[float]:
    """Return Rwp and GoF along the accepted path, and the final parameters.

    Two processes may differ in the last bits of a fit, and then in the ids of states, which are made of all bits.
    """
    accepted = [node["content"] for node in document["nodes"] if node["status"] in ("root", "accepted")]
    path = [state["quality"][name] for state in accepted for name in ("rwp", "gof")]
    return path + [parameter["value"] for parameter in accepted[-1]["parameters"]]


def settled(client: TestClient, job: str, *, until: tuple[str, ...] = ("completed", "failed", "crashed")) -> Any:
    deadline = time.monotonic() + 240
    while (view := client.get(f"/api/v1/jobs/{job}").json())["state"] not in until:
        assert time.monotonic() < deadline, view
        time.sleep(0.1)
    return view


@pytest.mark.real
def test_a_job_is_planned_by_the_model_of_the_server_as_on_the_command_line(
    database: Database,
    tmp_path: Path,
    small_job: tuple[Path, Path],
    model: LlmServer,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with service(database, tmp_path, llm_model="openai/scripted", llm_budget="calls=100") as client:
        assert "llm" in client.get("/api/v1/profiles").json()["planners"]
        answer = sent(client, small_job, model={"note": "Fluorite from a mine."})
        assert answer.status_code == 201, answer.text
        job = answer.json()["id"]
        view = settled(client, job)
        assert (view["state"], view["verdict"]) == ("completed", "accepted_with_warnings"), view["error"]
        told = client.get(f"/api/v1/jobs/{job}/events?limit=500").json()
        graph = JobGraph.open(database, job)
        last = read_exchanges(graph)[-1].artifact
        assert client.get(f"/api/v1/jobs/{job}/artifacts/{last}").status_code == 200  # named by an event alone
    exchanges = read_exchanges(graph)
    asked = len(model.asked)
    assert sum(len(exchange.tries) for exchange in exchanges) == asked > 3
    assert all(attempt.planner["proposed_by"] == "model" for attempt in graph.attempts())
    assert graph.job.planner["settings"]["budget"]["calls"] == 100
    assert view["used"]["model_tokens"] == 1100 * asked
    assert sum(event["kind"] == "model.asked" for event in told["events"]) == asked
    assert {request.headers["authorization"] for request in model.asked} == {f"Bearer {KEY}"}
    model.script = Expert(read_structures(small_job[1]))  # who remembers nothing of the first conversation
    document = by_command(tmp_path / "out", small_job, model, note="Fluorite from a mine.")
    ours = graph.export()
    assert course(document) == course(ours), "the same steps, accepted and rejected for the same reasons"
    assert figures(document) == pytest.approx(figures(ours), rel=1e-7, abs=1e-9)
    assert document["finish"]["verdict"]["verdict"] == ours["finish"]["verdict"]["verdict"]
    assert len(model.asked) == 2 * asked, "both over HTTP, each question once"
    everything = capfd.readouterr()
    for text in (json.dumps(graph.export()), json.dumps(told), everything.out, everything.err):
        assert KEY not in text
        assert model.base_url not in text


def test_without_a_model_the_service_says_what_to_set(
    database: Database, tmp_path: Path, small_job: tuple[Path, Path]
) -> None:
    app = build_app(Settings(data_dir=tmp_path), database, nudge=lambda: None)
    with TestClient(app, headers=bearer(token(database))) as client:
        for planner in ("llm", "hybrid"):
            answer = sent(client, small_job, planner=planner)
            assert answer.status_code == 422
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["code"] == "model_not_set_up"
            assert "AUTOXRD_LLM_MODEL" in answer.json()["detail"]
        assert client.get("/api/v1/profiles").json()["planners"] == ["rules"]
        unused = sent(client, small_job, planner="rules", budgets={"model_tokens": 1000})
        assert unused.json()["code"] == "llm_option_unused"
        for field in ("base_url", "api_key", "model"):
            assert sent(client, small_job, model={field: "http://elsewhere.example"}).status_code == 422


def test_a_request_can_only_ask_for_less(database: Database, tmp_path: Path, small_job: tuple[Path, Path]) -> None:
    from autoxrd.jobs.modelling import model_settings
    from autoxrd.jobs.request import Budgets, JobRequest

    settings = Settings(data_dir=tmp_path, llm_model="openai/x", llm_budget="calls=50,tokens=1000")
    budgets = Budgets(model_calls=80, model_tokens=10, money_usd=2.0)
    request = JobRequest(planner="llm", budgets=budgets)
    assert model_settings(request, settings)["budget"] == {"calls": 50, "tokens": 10, "usd": 2.0, "seconds": 3600.0}


def test_what_a_model_used_is_charged_to_job_and_owner(database: Database) -> None:
    job = queued(database)
    lease = leases.claim(database, "w", QUEUES)
    assert lease is not None
    graph = JobGraph.create(database, lease, RECORD)
    said = graph.artifacts.put(b"{}")
    told = {"purpose": "step", "outcome": "ok", "model": "openai/x", "prompt_tokens": 900, "answer_tokens": 100}
    graph.add_event(EventKind.EXCHANGE, {**told, "usd": 0.25}, {"seconds": 1.0}, files={"exchange": said})
    view = find_job(database, job, None)
    assert (view.tokens_used, view.money_used, view.stored_bytes) == (1000, 0.25, 2 + 14)
    for limit, text in (({"model_tokens": 1000}, "1000 tokens"), ({"model_tokens": 2000, "money_usd": 0.2}, "0.2 USD")):
        set_limits(database, ensure_owner(database, "ada"), limit)
        over = spent(database, job)
        assert over is not None
        assert text in over.text


def test_a_job_whose_model_is_out_waits_for_a_person(database: Database) -> None:
    job = queued(database)

    def out(_: Lease) -> Advance:
        raise PlannerError("model_unavailable", "The language model cannot be reached.")

    lease = leases.claim(database, "w", QUEUES)
    assert lease is not None
    answer = answer_to({"job": job, "fence": lease.fence, "holder": "w"}, out)
    assert (answer["outcome"], answer["reason"]) == ("waits", "model_unavailable")
    leases.release(database, lease, Ended(waits=True, reason="model_unavailable"))
    assert find_job(database, job, None).state == "waiting"
    assert leases.claim(database, "w", QUEUES) is None


@pytest.mark.slow
@pytest.mark.real
def test_a_job_may_wait_for_a_model_that_is_out(
    database: Database, tmp_path: Path, small_job: tuple[Path, Path], model: LlmServer
) -> None:
    expert, model.script = model.script, in_order(Fault("status", status=401))
    with service(database, tmp_path, llm_model="openai/scripted") as client:
        job = sent(client, small_job, model={"on_outage": "wait"}, budgets={"steps": 1}).json()["id"]
        assert settled(client, job, until=("waiting", "failed", "completed"))["state"] == "waiting"
        model.script = expert
        assert client.post(f"/api/v1/jobs/{job}/resume").status_code == 202
        view = settled(client, job)
    assert (view["state"], view["used"]["steps"]) == ("completed", 1)


@pytest.mark.slow
@pytest.mark.real
def test_an_owner_whose_tokens_are_spent_gets_no_more(
    database: Database, tmp_path: Path, small_job: tuple[Path, Path], model: LlmServer
) -> None:
    set_limits(database, ensure_owner(database, "ada"), {"model_tokens": 1000})
    with service(database, tmp_path, llm_model="openai/scripted") as client:
        view = settled(client, sent(client, small_job).json()["id"])
        assert (view["state"], view["used"]["steps"]) == ("completed", 1)
        assert len(model.asked) == 1
        again = sent(client, small_job)
        assert (again.status_code, again.json()["code"]) == (429, "budget_spent")
