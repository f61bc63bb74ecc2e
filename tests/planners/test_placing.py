"""Lines that no release reaches: a profile match brings them in, once, and only where a cell explains them."""

from __future__ import annotations

import pytest

from autoxrd.domain.action import ActionKind
from autoxrd.domain.state import Feature, FitState
from autoxrd.gates.policy import load_policy
from autoxrd.gates.preflight import known_parameters, preflight
from autoxrd.planners.protocol import AttemptView, GraphView, Proposal
from autoxrd.planners.rules import RulesPlanner
from tests.planners.test_rules import ACCEPTED, CONTEXT, REJECTED, _state

LINEAR = ("background", "phase.P.scale")


def _off(rms: float = 7.0, *, cell: float = 900.0, zero: float = 700.0, **more: Feature) -> FitState:
    features = {
        "position.rms": Feature(value=rms, significance=1000.0),
        "position.alone.cell": Feature(value=-0.0098, significance=cell),
        "position.alone.zero": Feature(value=0.6, significance=zero),
        "position.cell.P": Feature(value=-0.0101, significance=800.0),
        **more,
    }
    return _state({"phase.P.cell": 1e-6}, released=LINEAR, rwp=0.7, features=features)


def _view(state: FitState, *attempts: AttemptView) -> GraphView:
    return GraphView("s0", {"s0": state, "s1": state}, list(attempts))


def _proposed(view: GraphView) -> ActionKind | None:
    wanted = RulesPlanner().propose(view, CONTEXT)
    return wanted.action.kind if isinstance(wanted, Proposal) else None


@pytest.mark.parametrize("policy", ["default", "strict"])
def test_lines_that_no_release_reaches_are_brought_in_by_a_match(policy: str) -> None:
    state = _off()
    wanted = RulesPlanner().propose(_view(state), CONTEXT)
    assert isinstance(wanted, Proposal)
    action = wanted.action
    assert action.kind is ActionKind.PROFILE_MATCH
    assert action.parameters == ("background", "phase.P.cell")
    known = [*known_parameters(state), "phase.P.cell.a", "background.0"]
    checks = preflight(action, state, "s0", policy=load_policy(policy), known_parameters=known)
    assert [c for c in checks if not c.passed] == []


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(_off(0.8), id="lines overlap"),
        pytest.param(_off(zero=1000.0), id="a zero offset explains them better"),
        pytest.param(_off(**{"match.lines": Feature(value=20.0)}), id="a profile match already"),
    ],
)
def test_else_nothing_is_brought_in(state: FitState) -> None:
    assert _proposed(_view(state)) is not ActionKind.PROFILE_MATCH


@pytest.mark.parametrize("decision", [ACCEPTED, REJECTED])
def test_it_is_tried_once_on_a_path(decision: object) -> None:
    state = _off()
    wanted = RulesPlanner().propose(_view(state), CONTEXT)
    assert isinstance(wanted, Proposal)
    once = AttemptView(1, "s0", wanted.action, decision, "s1")  # type: ignore[arg-type]
    assert _proposed(_view(state, once)) is not ActionKind.PROFILE_MATCH


def test_what_would_place_lines_by_itself_goes_first() -> None:
    features = {name: feature for name, feature in _off().features.items() if name.startswith("position")}
    state = _state({"phase.P.cell": 0.4}, released=LINEAR, rwp=0.7, features=features)
    assert _proposed(_view(state)) is ActionKind.LATTICE
