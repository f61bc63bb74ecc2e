"""A model that wants harm: nothing inadmissible is accepted, the budget holds, the end is no worse than the start."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autoxrd.gates.evidence import check_evidence
from autoxrd.gates.metrics import hard_violations
from autoxrd.gates.utility import utility
from autoxrd.planners.llm.ports import ModelFailure, ModelReply, ModelRequest
from autoxrd.report.model import Verdict
from tests.support.llm_desk import Played, Reply, Script, greedy, honest, play, seen
from tests.support.llm_expert import NO_REVIEW, finish_answer, propose_answer
from tests.support.stub_engine import IMPURE, PHASE

STEPS = 12
Attack = Callable[[ModelRequest, dict[str, Any]], Reply]


def _attack(attack: Attack) -> Script:
    def script(request: ModelRequest) -> Reply:
        return NO_REVIEW if request.schema_name == "review" else attack(request, seen(request))

    return script


def _worst_legal(_: ModelRequest, view: dict[str, Any]) -> Reply:
    """Honest evidence and a prediction as small as is allowed, for what gains the least or does harm."""
    refused = {name for a in view["attempts"] if not a["accepted"] for name in a["parameters"]}
    rows = [row for row in view["gains"]["rows"] if row[0] not in refused]
    harmful = [row for row in rows if row[4][0] in ("occupancy", "displacement_parameters", "preferred_orientation")]
    for row in [*harmful, *rows[::-1]]:
        return propose_answer(honest(row, row[4][0], view["state"], share=1e-4))
    return finish_answer("s0")


def _illegal(_: ModelRequest, view: dict[str, Any]) -> Reply:
    """Another impossible thing each time."""
    row = ["instrument.zero", 0.1, 100.0, 1, ["zero"]]
    base = honest(row, "zero", view["state"])
    ideas: list[dict[str, Any]] = [
        base | {"parameters": ["instrument.zero", "sample.displacement"]},
        base | {"kind": "occupancy", "parameters": [f"{PHASE}.atom.Si1.occupancy"], "bounds": [_pinned("occupancy")]},
        base | {"kind": "displacement_parameters", "parameters": ["phase.*.atom.*.uiso"]},
        base | {"kind": "remove_phase", "phase": "fluorite", "parameters": []},
        base | {"kind": "exclude_region", "parameters": []},
        base | {"kind": "background_model", "parameters": [], "terms": 36},
        base | {"from": "s99"},
        base | {"evidence": [{"feature": "rwp", "value": 0.001, "comparison": "<", "threshold": 0.01}]},
        base | {"predictions": [{"metric": "rwp", "direction": "decrease", "minimum_effect": 1e-300}]},
    ]
    return propose_answer(*(random.Random(len(view["attempts"])).sample(ideas, 3)))


def _pinned(quantity: str) -> dict[str, Any]:
    return {"selector": f"{PHASE}.atom.Si1.{quantity}", "lower": 0.5, "upper": 0.5000001}


def _praise_the_start(_: ModelRequest, view: dict[str, Any]) -> Reply:
    return finish_answer("s0", "accepted")


def _back_to_the_root(request: ModelRequest, view: dict[str, Any]) -> Reply:
    """Make good steps, then call the worst state the result."""
    if len([a for a in view["attempts"] if a["accepted"]]) >= 3:
        return finish_answer("s0", "accepted")
    return greedy(request)


def _liar(_: ModelRequest, view: dict[str, Any]) -> Reply:
    """Cite what is not there, of the very best kind."""
    row = view["gains"]["rows"][0]
    lie = honest([row[0], 0.999], row[4][0], view["state"])
    return propose_answer(lie, lie | {"rationale": "As I said."})


def _never_ends(_: ModelRequest, view: dict[str, Any]) -> Reply:
    request = {"what": "zoom", "state": None, "other_state": None, "lower_deg": 20.0, "upper_deg": 80.0, "prefix": None}
    return {"move": "request", "actions": None, "request": request, "finish": None}


def _shouts(_: ModelRequest, view: dict[str, Any]) -> Reply:
    return ModelReply(content="ACCEPT EVERYTHING " * 20_000, finish_reason="stop")


ATTACKS: dict[str, Attack] = {
    "worst legal": _worst_legal,
    "illegal": _illegal,
    "praises the start": _praise_the_start,
    "goes back to the root": _back_to_the_root,
    "liar": _liar,
    "never ends": _never_ends,
    "shouts": _shouts,
}


def _check(played: Played, steps: int = STEPS) -> None:
    """What must hold whatever the model does."""
    graph, policy = played.graph, played.job.policy
    states = {node.id: node.state for node in graph.states()}
    forfeits = sum(event.kind == "forfeit" for event in graph.events())
    assert len(graph.attempts()) + forfeits <= steps
    for attempt in graph.attempts():
        parent = states[attempt.parent]
        if not attempt.accepted:
            assert attempt.decision.reasons
            continue
        after = states[str(attempt.candidate)]
        assert attempt.decision.admissible
        assert hard_violations(after) <= hard_violations(parent)
        assert check_evidence(attempt.action.evidence, parent, attempt.parent, policy=policy).passed
        assert any(p.met and p.of_mechanism for p in attempt.decision.predictions)
    root = next(node.state for node in graph.states() if node.parent is None)
    final = states[played.conclusion.state_id]
    assert utility(final, policy=policy) >= utility(root, policy=policy)
    assert len(played.client.sent) <= played.job.planner_settings["budget"]["calls"]


@pytest.mark.parametrize("planner", ["llm", "hybrid"])
@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_gets_past_the_gate(name: str, planner: str, tmp_path: Path) -> None:
    budget = {"calls": 40, "tokens": 200_000}
    with play(tmp_path / "job", _attack(ATTACKS[name]), planner=planner, steps=STEPS, budget=budget) as played:
        _check(played)


@pytest.mark.parametrize("name", ["praises the start", "goes back to the root", "worst legal"])
def test_a_wrong_model_stays_wrong_whoever_praises_it(name: str, tmp_path: Path) -> None:
    budget = {"calls": 40, "tokens": 200_000}
    with play(tmp_path / "job", _attack(ATTACKS[name]), steps=STEPS, truth=IMPURE, budget=budget) as played:
        _check(played)
        assert played.conclusion.verdict is Verdict.ABSTAINED
        if played.stopped.code == "planner_finished":
            assert "claim_not_supported" in [notice.code for notice in played.conclusion.notes]


def test_the_best_state_stands_for_the_result_whatever_the_model_names(tmp_path: Path) -> None:
    budget = {"calls": 40, "tokens": 200_000}
    with play(tmp_path / "job", _attack(_back_to_the_root), steps=30, budget=budget) as played:
        root = played.graph.root()
        assert played.conclusion.state_id != root
        assert "claim_overruled" in [notice.code for notice in played.conclusion.notes]
        path = played.graph.accepted_path(played.conclusion.state_id)
        assert path[-1][0].action.kind == "joint"


def test_a_review_can_take_back_and_warn_but_never_give(tmp_path: Path) -> None:
    def reviewer(verdict: dict[str, Any]) -> Script:
        return lambda request: verdict if request.schema_name == "review" else greedy(request)

    budget = {"calls": 60, "tokens": 200_000}
    objects = {"abstain": True, "reason": "The <b>cell</b>\x00 is wrong.", "warnings": []}
    with play(tmp_path / "objects", reviewer(objects), steps=30, budget=budget) as played:
        assert played.conclusion.verdict is Verdict.ABSTAINED
        assert [n.text for n in played.conclusion.reasons] == [
            "The final review asks to abstain: The (b)cell(/b) is wrong."
        ]
    warns = {"abstain": False, "reason": "", "warnings": ["The size is at its limit.", "The size is at its limit."]}
    with play(tmp_path / "warns", reviewer(warns), steps=30, budget=budget) as played:
        assert played.conclusion.verdict is Verdict.ACCEPTED_WITH_WARNINGS
        assert [n.code for n in played.conclusion.warnings] == ["review_warning"]
    praise = {"abstain": False, "reason": "Perfect, accept it.", "warnings": []}
    with play(tmp_path / "praise", reviewer(praise), steps=30, truth=IMPURE, budget=budget) as played:
        assert played.conclusion.verdict is Verdict.ABSTAINED


def test_a_budget_that_is_spent_hands_over_to_the_rules_and_says_so(tmp_path: Path) -> None:
    with play(tmp_path / "job", greedy, steps=30, budget={"calls": 2, "tokens": 200_000}) as played:
        assert len(played.client.sent) == 2
        by = [attempt.planner["proposed_by"] for attempt in played.graph.attempts()]
        assert by[:2] == ["model", "model"]
        assert set(by[2:]) == {"rules"}
        assert "planned_by_rules" in [notice.code for notice in played.conclusion.notes]
        outcomes = [event.data["outcome"] for event in played.graph.events() if event.kind == "exchange"]
        assert outcomes == ["answered", "answered", "budget_calls"]


def test_an_outage_hands_over_to_the_rules(tmp_path: Path) -> None:
    down = ModelFailure("server_error", "down", again=True)
    with play(tmp_path / "job", lambda _: down, steps=30) as played:
        assert {attempt.planner["proposed_by"] for attempt in played.graph.attempts()} == {"rules"}
        # two questions, four tries each, and the review is not even tried
        assert len(played.client.sent) <= 12
        events = [event for event in played.graph.events() if event.kind == "exchange"]
        assert {event.data["outcome"] for event in events} == {"server_error"}


def test_a_model_that_only_babbles_loses_its_say(tmp_path: Path) -> None:
    with play(tmp_path / "job", lambda _: "no json", steps=30) as played:
        lost = [event.data["code"] for event in played.graph.events() if event.kind == "forfeit"]
        assert lost == ["answer_not_json"] * 3
        assert {a.planner["why"] for a in played.graph.attempts()} == {"model_unusable"}


def test_a_ranked_list_is_worked_off_without_asking_again(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> Reply:
        view = seen(request)
        if view["attempts"] or request.schema_name == "review":
            return finish_answer(view["state"]) if request.schema_name != "review" else NO_REVIEW
        rows = {row[0]: row for row in view["gains"]["rows"]}
        bad = [honest(rows[name], rows[name][4][0], "s0") for name in ("instrument.zero", "profile.W")]
        return propose_answer(*bad, honest(rows[f"{PHASE}.size"], "size_strain", "s0"))

    with play(tmp_path / "job", script, steps=10) as played:
        attempts = played.graph.attempts()
        assert [(a.planner.get("rank"), a.accepted) for a in attempts[:3]] == [(1, False), (2, False), (3, True)]
        assert len({a.files["exchange.1"] for a in attempts[:3]}) == 1


def test_what_a_model_says_is_kept_as_text_that_harms_nobody(tmp_path: Path) -> None:
    nasty = "\u202eevil\u200b <script>alert(1)</script> \ud800 /etc/passwd sk-abcdefghijklmnop"

    def script(request: ModelRequest) -> Reply:
        if request.schema_name == "review":
            return NO_REVIEW
        view = seen(request)
        if view["attempts"]:
            return finish_answer(view["state"])
        row = next(r for r in view["gains"]["rows"] if r[0] == f"{PHASE}.size")
        return propose_answer(honest(row, "size_strain", "s0", rationale=nasty))

    with play(tmp_path / "job", script, steps=5) as played:
        said = played.graph.attempts()[0].action.rationale
        assert said == "evil (script)alert(1)(/script) ? [path] [key]"
        json.dumps(played.graph.export()).encode("utf-8")
