"""Another model of widths must leave the amounts alone: figures of a lithium carbonate of 30 % that became 36 %."""

from __future__ import annotations

import pytest

from autoxrd.domain.action import ActionKind, Stage
from autoxrd.domain.decision import Decision
from autoxrd.domain.state import MeasuredValue, PhaseSummary
from autoxrd.gates.acceptance import judge
from autoxrd.gates.policy import load_policy
from tests.gates.factory import action, passed, prediction, state

DIRECTED = {"effect": "strain", "model": "generalised", "phase": "fap"}


def _phases(share: float | None) -> list[PhaseSummary]:
    rest = None if share is None else 1.0 - share
    return [
        PhaseSummary(
            name=name,
            space_group="P 1",
            weight_fraction=None if value is None else MeasuredValue(value=value, esd=0.003),
            cell={},
        )
        for name, value in (("fap", share), ("other", rest))
    ]


def _decide(
    before: float | None, after: float | None, *, settings: dict[str, str], policy: str = "default"
) -> Decision:
    rules, names = load_policy(policy), ("phase.fap.scale", "phase.fap.strain")
    act = action(
        ActionKind.SIZE_STRAIN,
        ("phase.fap.strain",),
        stage=Stage.MICROSTRUCTURE,
        settings=settings,
        predictions=(prediction("rwp", "decrease", 0.001),),
    )
    parent = state(phases=_phases(before), names=names)
    candidate = state(rwp=0.09, phases=_phases(after), names=names, free=names, n_free=5)
    return judge(act, parent, candidate, preflight=passed(), policy=rules)


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        # 2 sqrt(0.332 * 0.668) % = 0.942 % by weight
        (0.332, 0.363, 3.29),
        (0.332, 0.313, 2.02),
        (0.332, 0.348, 1.70),
        (0.020, 0.027, 2.50),
        (0.020, 0.025, 1.79),
    ],
)
def test_a_fraction_that_widths_move_too_far_is_refused(before: float, after: float, moved: float) -> None:
    decision = _decide(before, after, settings=DIRECTED)
    (check,) = [c for c in decision.checks if c.rule == "amounts"]
    assert check.measured == pytest.approx(moved, abs=0.01)
    assert check.passed is (moved < 2.0)
    assert ("amounts_moved" in decision.reasons) is (moved > 2.0)
    if moved > 2.0:
        assert decision.admissible is False
        assert "fap" in decision.details["amounts_moved"] or "other" in decision.details["amounts_moved"]


def test_one_phase_and_one_without_a_fraction_have_nothing_to_move() -> None:
    for before, after in ((1.0, 1.0), (None, None)):
        (check,) = [c for c in _decide(before, after, settings=DIRECTED).checks if c.rule == "amounts"]
        assert check.passed
        assert check.measured == 0.0


def test_it_is_asked_of_other_models_of_widths_alone() -> None:
    """The first size and strain of a phase repair wrong widths, and with them amounts."""
    assert not [c for c in _decide(0.332, 0.363, settings={}).checks if c.rule == "amounts"]
    assert not [c for c in _decide(0.332, 0.363, settings=DIRECTED, policy="strict").checks if c.rule == "amounts"]
