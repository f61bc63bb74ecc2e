"""A small job planned by a scripted expert over real HTTP: as good as the rules, all on record, replayed without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autoxrd.agent.controller import rejudge
from autoxrd.agent.exchanges import read_exchanges
from autoxrd.io import read_structures
from autoxrd.store.graph import Graph
from autoxrd.store.verify import verify
from tests.agent.checks import check_graph
from tests.agent.conftest import Run
from tests.support.llm_expert import Expert
from tests.support.llm_server import serving

Job = tuple[Path, dict[str, object], int]


@pytest.fixture(scope="module")
def planned(inputs: tuple[Path, Path], autoxrd: Run, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Directory and summary of the small job planned by the expert, and the number of requests that were sent."""
    pattern, cif = inputs
    out = tmp_path_factory.mktemp("llm") / "out"
    with serving(Expert(read_structures(cif))) as server:
        done = autoxrd(
            "refine", pattern, "-s", cif, "--anode", "Cu", "--planner", "llm", "--model", "openai/scripted",
            "--base-url", server.base_url, "--note", "Fluorite from a mine.", "--out", out, "--json",
        )  # fmt: skip
        asked = len(server.asked)
    assert done.returncode == 0, done.stderr
    return out, json.loads(done.stdout), asked


def test_the_expert_reaches_what_the_rules_reach(planned: Job, finished: tuple[Path, str]) -> None:
    expected = json.loads(finished[1])
    assert planned[1]["quality"] == expected["quality"]
    assert planned[1]["phases"] == expected["phases"]
    assert planned[1]["warnings"] == expected["warnings"], "what the data cannot tell apart is told whoever planned"


def test_the_graph_keeps_its_promises(planned: Job) -> None:
    check_graph(planned[0])


def test_every_request_is_in_the_graph(planned: Job) -> None:
    out, _, asked = planned
    with Graph.open(out, read_only=True) as graph:
        exchanges, attempts = read_exchanges(graph), graph.attempts()
        events = [event for event in graph.events() if event.kind == "exchange"]
    assert sum(len(exchange.tries) for exchange in exchanges) == asked == len(events)
    named = {artifact for attempt in attempts for artifact in attempt.files.values()}
    # all but the last two led to an attempt: the model's wish to end, and its review, led to none
    assert named == {e.artifact for e in exchanges[:-2]}
    assert [e.request.purpose for e in exchanges[-2:]] == ["step", "review"]
    for event, exchange in zip(events, exchanges, strict=True):
        data = event.data
        assert data["prompt_hash"] == exchange.prompt_hash
        assert (data["model"], data["temperature"], data["seed"]) == ("openai/scripted", 0.0, 1)
        assert (data["prompt_tokens"], data["answer_tokens"], data["usd"]) == (1000, 100, None)
        assert event.telemetry["seconds"] > 0
    assert all(a.planner["proposed_by"] == "model" for a in attempts)
    assert any(a.planner.get("skill") for a in attempts)


def test_a_replay_without_the_server_gives_the_same_graph(planned: Job, autoxrd: Run, tmp_path: Path) -> None:
    out, summary, _ = planned
    done = autoxrd("refine", "--planner", "replay", "--from", out, "--out", tmp_path / "again", "--json")
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    assert (again["graph_root"], again["final_state"]) == (summary["graph_root"], summary["final_state"])
    assert (tmp_path / "again" / "graph.json").read_bytes() == (out / "graph.json").read_bytes()
    assert verify(tmp_path / "again", judge=rejudge).ok


def test_the_transcript_reads_like_a_conversation(planned: Job, autoxrd: Run) -> None:
    out, _, asked = planned
    told = json.loads(autoxrd("transcript", out, "--json").stdout)
    assert len(told["exchanges"]) == asked
    assert told["spent"]["calls"] == asked
    assert told["spent"]["tokens"] == 1100 * asked
    assert told["spent"]["calls_of_unknown_cost"] == asked
    shown = autoxrd("transcript", out).stdout
    assert "propose" in shown
    assert f"{asked} requests, {1100 * asked} tokens" in shown
    assert "Fluorite from a mine." in autoxrd("transcript", out, "--full").stdout


def test_no_key_path_or_address_reaches_a_prompt(planned: Job) -> None:
    with Graph.open(planned[0], read_only=True) as graph:
        prompts = [json.dumps(exchange.request.as_dict()) for exchange in read_exchanges(graph)]
        record = json.dumps(graph.job.model_dump(mode="json"))
    assert prompts
    for text in prompts:
        for secret in (
            str(planned[0]),
            "pattern.xy",
            "fluorite.cif",
            "127.0.0.1",
            "AUTOXRD",
            "api_key",
            "authorization",
        ):
            assert secret not in text
    assert "127.0.0.1" not in record


def test_an_option_without_effect_is_refused(inputs: tuple[Path, Path], autoxrd: Run, tmp_path: Path) -> None:
    pattern, cif = inputs
    common = ("refine", pattern, "-s", cif, "--anode", "Cu", "--out", tmp_path / "out")
    for words, code in (
        (("--model", "openai/x"), "asks no language model"),
        (("--planner", "llm"), "--model"),
        (("--planner", "llm", "--model", "openai/x", "--llm-budget", "money=3"), "calls=..."),
        (("--planner", "llm", "--model", "openai/x", "--base-url", "http://me:secret@host/v1"), "without user"),
        (("--planner", "replay",), "--from"),
    ):  # fmt: skip
        done = autoxrd(*common, *words)
        assert done.returncode == 2, words
        assert code in done.stderr
        assert "secret" not in done.stderr
    assert not (tmp_path / "out").exists()
