"""A broad peak is asked for in the place of further terms, where it clearly gains more and nothing is against it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoxrd.domain.action import ActionKind
from autoxrd.domain.state import Feature, FitState, ParameterValue
from autoxrd.gates.policy import load_policy
from autoxrd.gates.preflight import known_parameters, preflight
from autoxrd.planners.protocol import AttemptView, GraphView, Proposal
from autoxrd.planners.rules import RulesPlanner
from autoxrd.planners.rules.catalogue import CURRICULUM
from autoxrd.planners.rules.halos import halo_options
from autoxrd.planners.rules.memory import released_by
from autoxrd.planners.rules.thresholds import Thresholds
from tests.planners.test_rules import ACCEPTED, CONTEXT, REJECTED, _state

RELEASED = ("background", "phase.P.scale")


def haloed(
    *, share: float = 0.4, more: float = 0.2, unexplained: float | None = 0.0, humps: int = 0, slow: float = 0.5
) -> FitState:
    features = {
        "background.halo": Feature(value=share, significance=1000 * share, n_used=3),
        "background.halo_position": Feature(value=22.0, unit="deg"),
        "background.halo_width": Feature(value=8.0, unit="deg"),
        "background.slow": Feature(value=slow, esd=0.01, significance=50.0),
        "unexplained_peak_ratio": Feature(value=unexplained, available=unexplained is not None),
        "release_gain.background.more": Feature(value=more, significance=2500 * more, n_used=4),
        "position.rms": Feature(value=0.05),
    }
    names = [f"background.{k}" for k in range(8)]
    names += [f"background.peak{k}_{key}" for k in range(1, humps + 1) for key in ("position", "gauss", "height")]
    parameters = tuple(ParameterValue(name=name, value=1.0, released=True) for name in names)
    return _state({}, released=RELEASED, features=features, parameters=parameters)


def proposed(*states: tuple[str, FitState], attempts: tuple[AttemptView, ...] = ()):
    view = GraphView(root=states[0][0], states=dict(states), attempts=attempts)
    proposal = RulesPlanner().propose(view, CONTEXT)
    assert isinstance(proposal, Proposal)
    return proposal.action


def test_the_peak_is_written_down_from_the_numbers_and_may_be_tried() -> None:
    state = haloed()
    action = proposed(("root", state))
    assert action.kind is ActionKind.BACKGROUND_MODEL
    assert action.settings == {"position_deg": 22.0, "width_deg": 8.0, "shape": "gauss"}
    limits = {b.selector: (b.lower, b.upper) for b in action.bounds}
    assert limits["background.peak1_position"] == (14.0, 30.0)
    assert limits["background.peak1_gauss"] == (pytest.approx(8.0 / 3.0), 24.0)
    # it must beat the next terms per parameter: 1.5 x 0.2 / 4 each, three of them
    assert [(e.feature, e.value, e.threshold) for e in action.evidence] == [
        ("background.halo", 0.4, pytest.approx(0.225)),
        ("background.slow", 0.5, 0.25),
    ]
    assert [p.metric for p in action.predictions] == ["background.slow", "rwp"]
    # a part of what it promises, as shares of chi^2
    assert action.predictions[0].minimum_effect == pytest.approx(0.3 * 0.4)
    checks = preflight(
        action, state, "root", policy=load_policy("default"), known_parameters=known_parameters(state), rejected=[]
    )
    assert all(check.passed for check in checks), [check.text for check in checks if not check.passed]
    assert released_by(action) == {"background.halo"}


@pytest.mark.parametrize(
    "state",
    [
        haloed(share=0.09, more=0.02),  # a weak one
        haloed(share=0.2),  # less than one and a half times what terms gain per parameter
        haloed(unexplained=0.06),
        haloed(unexplained=None),
        haloed(humps=2),
        haloed(slow=0.0),
    ],
)
def test_further_terms_go_first_where_something_speaks_against_it(state: FitState) -> None:
    action = proposed(("root", state))
    assert action.settings == {"terms": 12}


def test_several_histograms_get_none() -> None:
    rule = next(rule for rule in CURRICULUM if rule.halo)
    several = replace(CONTEXT, histograms={"1": CONTEXT.instrument, "2": CONTEXT.instrument})
    assert halo_options(rule, haloed(), CONTEXT, Thresholds())
    assert halo_options(rule, haloed(), several, Thresholds()) == []


def test_a_second_one_has_the_next_number() -> None:
    action = proposed(("root", haloed(humps=1)))
    assert [b.selector for b in action.bounds] == ["background.peak2_position", "background.peak2_gauss"]


def test_what_was_refused_gives_way_to_terms() -> None:
    first = haloed()
    action = proposed(("root", first))
    refused = AttemptView(1, "root", action, REJECTED, "bad")
    after = proposed(("root", first), ("bad", first), attempts=(refused,))
    assert after.settings == {"terms": 12}
    # and is not asked again further on while it promises no more
    grown = AttemptView(2, "root", after, ACCEPTED, "next")
    later = haloed(share=0.05, more=0.02)
    last = proposed(("root", first), ("bad", first), ("next", later), attempts=(refused, grown))
    assert "position_deg" not in last.settings
