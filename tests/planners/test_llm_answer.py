"""Each way in which an answer can fail has its name, and the model is told what would be legal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autoxrd.domain.action import ActionKind, Stage
from autoxrd.gates.policy import load_policy
from autoxrd.planners.llm.answer import Answer, Faults, read_answer
from autoxrd.planners.llm.legal import legal_from
from autoxrd.planners.llm.moves import check_actions
from autoxrd.planners.llm.ports import ModelReply
from tests.planners.test_llm_fuzz import GOOD, ROOT, ROW, VIEW
from tests.support.llm_desk import honest
from tests.support.stub_engine import PHASE

POLICY = load_policy("default")


def _reply(content: Any = None, *, finish: str = "tool_calls", refusal: str = "", tool: str = "answer") -> ModelReply:
    text = content if isinstance(content, str) else json.dumps(content)
    return ModelReply(calls=((tool, text),), finish_reason=finish, refusal=refusal)


NAMED = {
    "answer_empty": ModelReply(finish_reason="stop"),
    "answer_truncated": _reply(json.dumps(GOOD)[:200], finish="length"),
    "answer_refused": ModelReply(refusal="I cannot help with that.", finish_reason="stop"),
    "answer_oversized": _reply("x" * 200_000),
    "answer_multiple": ModelReply(calls=(("answer", "{}"), ("answer", "{}"))),
    "answer_wrong_tool": _reply(GOOD, tool="run_shell"),
    "answer_not_json": _reply('{"move": "propose", '),
    "answer_schema": _reply({"move": "propose", "actions": None}),
}


@pytest.mark.parametrize("code", NAMED)
def test_a_broken_answer_has_a_name(code: str) -> None:
    faults = read_answer(NAMED[code], "answer", Answer)
    assert isinstance(faults, Faults)
    assert faults.code == code
    assert faults.texts


def test_a_filtered_answer_counts_as_refused() -> None:
    faults = read_answer(ModelReply(content="", finish_reason="content_filter"), "answer", Answer)
    assert isinstance(faults, Faults)
    assert faults.code == "answer_refused"


def test_a_plain_model_may_wrap_its_json() -> None:
    wrapped = ModelReply(content=f"```json\n{json.dumps(GOOD)}\n```", finish_reason="stop")
    assert isinstance(read_answer(wrapped, "answer", Answer), Answer)


def _faults(**changes: Any) -> Faults:
    action = honest(ROW, "size_strain", "s0") | changes
    content = {"move": "propose", "actions": [action], "request": None, "finish": None}
    answer = read_answer(_reply(content), "answer", Answer)
    assert isinstance(answer, Answer)
    checked = check_actions(list(answer.actions or ()), VIEW, POLICY)
    assert not checked.legal
    assert checked.faults is not None
    return checked.faults


SIZE = f"{PHASE}.size"
HALLUCINATED = [
    ({"from": "s7"}, "states are s0"),
    ({"kind": "add_phase"}, "no kind on offer"),
    ({"kind": "profile", "parameters": ["profile.Q"]}, "it can free: "),
    ({"parameters": ["phase.fluorite.s\u0456ze"]}, "it can free: "),
    ({"parameters": ["phase.*.size"]}, "it can free: "),
]


@pytest.mark.parametrize(("changes", "told"), HALLUCINATED)
def test_a_name_that_is_not_there_is_told_with_those_that_are(changes: dict[str, Any], told: str) -> None:
    faults = _faults(**changes)
    assert faults.code == "unknown_name"
    assert told in faults.texts[0]


def _bound(lower: float, upper: float, selector: str = SIZE) -> dict[str, Any]:
    return {"bounds": [{"selector": selector, "lower": lower, "upper": upper}]}


ILLEGAL = [
    (_bound(-1.0, 3.0), "must lie within 0 to 3"),
    (_bound(0.05, 0.0500001), "leave open at least 25 %"),
    (_bound(1.0, 3.0), "hold its present value"),
    (_bound(0.0, 1.0, "instrument.zero"), "takes no bounds"),
    ({"evidence": [{"feature": "rwp", "value": 0.5, "comparison": "<", "threshold": 0.6}]}, "evidence_not_supported"),
    (
        {"evidence": [{"feature": "moon", "value": 0.5, "comparison": "<", "threshold": 0.6}]},
        "evidence_unknown_feature",
    ),
    ({"predictions": [{"metric": "rwp", "direction": "decrease", "minimum_effect": 0.01}]}, "prediction_no_mechanism"),
    ({"predictions": [{"metric": "rwp", "direction": "decrease", "minimum_effect": 0.0}]}, "above 0"),
    ({"kind": "scale", "parameters": []}, "no_parameters"),
]


@pytest.mark.parametrize(("changes", "told"), ILLEGAL)
def test_what_preflight_refuses_is_told_in_the_models_terms(changes: dict[str, Any], told: str) -> None:
    faults = _faults(**changes)
    assert faults.code == "action_illegal"
    assert told in " ".join(faults.texts)


def test_bounds_that_a_kind_needs_are_filled_in() -> None:
    answer = read_answer(_reply(GOOD), "answer", Answer)
    assert isinstance(answer, Answer)
    (action,) = check_actions(list(answer.actions or ()), VIEW, POLICY).legal
    (bound,) = action.bounds
    assert (bound.selector, bound.lower, bound.upper) == (SIZE, 0.0, 3.0)
    assert action.stage in (Stage.STRUCTURE, Stage.MICROSTRUCTURE, Stage.PROFILE_MATCH)


def test_the_legal_list_holds_what_the_policy_allows_and_the_engine_does() -> None:
    legal = legal_from(ROOT, POLICY)
    assert legal.stage is Stage.QC
    assert ActionKind.JOINT not in legal.stages  # nothing is free yet
    assert not {ActionKind.ADD_PHASE, ActionKind.EXCLUDE_REGION, ActionKind.SWITCH_PROFILE} & set(legal.stages)
    assert legal.selectors(ActionKind.SIZE_STRAIN) == (SIZE, f"{PHASE}.strain")
    for kind, stage in legal.stages.items():
        assert kind in POLICY.stages[stage]
