"""A thousand answers that no one should send: none crashes the planner, none gets past evidence and gate."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoxrd.agent.fitting import command_for, measure_state
from autoxrd.agent.viewing import check_action, job_context
from autoxrd.domain.action import Action, Stage
from autoxrd.domain.state import FitState
from autoxrd.engines.protocol import EngineCommand, Snapshot
from autoxrd.gates.acceptance import judge
from autoxrd.gates.evidence import check_evidence
from autoxrd.gates.metrics import hard_violations
from autoxrd.planners.llm import LlmPlanner, LlmSettings, ModelDesk
from autoxrd.planners.llm.desk import Desk
from autoxrd.planners.llm.ports import Measurement, ModelReply, ModelRequest
from autoxrd.planners.protocol import Finish, Forfeit, GraphView, Proposal
from autoxrd.primitives import canonical_json
from tests.support.llm_desk import MemoryLog, ScriptedClient, honest, no_waits
from tests.support.llm_expert import finish_answer, propose_answer
from tests.support.stub_engine import PHASE, StubSession, stub_job, unseen

JOB = stub_job()
SESSION = StubSession()
FILES = {"snapshot": "0" * 64, "arrays": "0" * 64, "structures": "0" * 64}


def _state(released: bytes, action: Action | None = None, parent: FitState | None = None) -> FitState:
    command = EngineCommand(cycles=0)
    if action is not None and parent is not None:
        command = command_for(action, parent, JOB, unseen)
    _, result = SESSION.execute(Snapshot("stub", released), command)
    stage = Stage.QC if action is None else action.stage
    return measure_state(result, JOB, stage=stage, parent=parent, action=action, files=FILES)


ROOT = _state(b"[]")
VIEW = GraphView("root", {"root": ROOT}, ())
GAINS = {n.removeprefix("release_gain."): f for n, f in ROOT.features.items() if n.startswith("release_gain.")}
ROW = [f"{PHASE}.size", GAINS[f"{PHASE}.size"].value, 1000.0, 1]
GOOD = propose_answer(honest(ROW, "size_strain", "s0"))

_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=40),
    st.sampled_from([f"{PHASE}.size", "instrument.zero", "s0", "rwp", "joint", "phase.*.uiso"]),
    st.sampled_from(["\u0440hase", "a\u202eb"]),
)  # fmt: skip
_json = st.recursive(_scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner))


@st.composite
def _mutated(draw: st.DrawFn) -> Any:
    """A good answer with a few places changed, removed, doubled or given another name."""
    content = json.loads(json.dumps(draw(st.sampled_from([GOOD, finish_answer("s0")]))))
    for _ in range(draw(st.integers(0, 4))):
        target: Any = content
        while isinstance(target, dict | list) and target and draw(st.booleans()):
            key = draw(st.sampled_from(sorted(target) if isinstance(target, dict) else list(range(len(target)))))
            if not isinstance(target[key], dict | list) or not target[key]:
                break
            target = target[key]
        if not isinstance(target, dict | list) or not target:
            continue
        key = draw(st.sampled_from(sorted(target) if isinstance(target, dict) else list(range(len(target)))))
        what = draw(st.sampled_from(["change", "drop", "double", "extra"]))
        if what == "change":
            target[key] = draw(_json)
        elif what == "drop":
            del target[key]
        elif what == "double" and isinstance(target, list):
            target.append(target[key])
        elif isinstance(target, dict):
            target[draw(st.text(max_size=12))] = draw(_json)
    return content


_texts = st.one_of(
    _mutated().map(lambda content: json.dumps(content)),
    _mutated().flatmap(lambda content: st.integers(0, 400).map(lambda n: json.dumps(content)[:n])),
    _json.map(lambda content: json.dumps(content)),
    st.text(max_size=300),
    st.sampled_from(["", "null", "[]", "{}", "NaN", "[" * 5000, '{"move":' * 500, '"\\ud800"', "1e999", "9" * 5000]),
)
_replies = st.builds(
    ModelReply,
    model=st.just("stub"),
    content=st.one_of(st.just(""), _texts),
    calls=st.one_of(
        _texts.map(lambda text: (("answer", text),)),
        st.lists(st.tuples(st.sampled_from(["answer", "review", "run_shell", ""]), _texts), max_size=3).map(tuple),
    ),
    finish_reason=st.sampled_from(["stop", "tool_calls", "length", "content_filter", "", "?"]),
    refusal=st.sampled_from(["", "", "", "I cannot."]),
    prompt_tokens=st.one_of(st.none(), st.integers(1, 5000)),
    answer_tokens=st.one_of(st.none(), st.integers(1, 5000)),
)


class _Bench:
    def measure(self, state_id: str, what: str, arguments: Any) -> Measurement:
        return Measurement({"error": "nothing is measured here"})


@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_replies, min_size=1, max_size=3))
def test_no_answer_crashes_or_gets_an_unchecked_step_accepted(replies: list[ModelReply]) -> None:
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> ModelReply:
        asked.append(request)
        return replies[min(len(asked), len(replies)) - 1]

    how = LlmSettings.model_validate(JOB.planner_settings)
    log = MemoryLog()
    desk = Desk(log, how, ScriptedClient(script), waits=no_waits())
    outcome = LlmPlanner(ModelDesk(desk, _Bench(), how)).propose(VIEW, job_context(JOB))
    for exchange in log.exchanges:
        canonical_json(exchange.request.as_dict()).encode("utf-8")
        assert len(canonical_json(exchange.request.as_dict())) < 60_000, "a prompt grows with what a model says"
    assert len(asked) <= 2 + how.measurements_per_step + 2
    if isinstance(outcome, Forfeit):
        assert outcome.code
        outcome.text.encode("utf-8")
        return
    if isinstance(outcome, Finish):
        assert outcome.state == "root"
        return
    _check_proposal(outcome)


def _check_proposal(proposal: Proposal) -> None:
    """Whatever passes preflight and the gate has evidence that the record bears out and does no harm."""
    action = proposal.action
    canonical_json(action.model_dump(mode="json")).encode("utf-8")
    checks = check_action(action, VIEW, JOB.policy)
    if not all(check.passed for check in checks):
        return
    candidate = _state(b"[]", action, ROOT)
    decision = judge(action, ROOT, candidate, preflight=checks, policy=JOB.policy)
    if decision.accepted:
        assert check_evidence(action.evidence, ROOT, "root", policy=JOB.policy).passed
        assert any(p.met and p.of_mechanism for p in decision.predictions)
        assert hard_violations(candidate) <= hard_violations(ROOT)


def test_the_good_answer_is_accepted() -> None:
    """Else the fuzzing around it would prove nothing."""
    how = LlmSettings.model_validate(JOB.planner_settings)
    desk = Desk(MemoryLog(), how, ScriptedClient(lambda _: GOOD), waits=no_waits())
    proposal = LlmPlanner(ModelDesk(desk, _Bench(), how)).propose(VIEW, job_context(JOB))
    assert isinstance(proposal, Proposal)
    checks = check_action(proposal.action, VIEW, JOB.policy)
    candidate = _state(b"[]", proposal.action, ROOT)
    assert judge(proposal.action, ROOT, candidate, preflight=checks, policy=JOB.policy).accepted
