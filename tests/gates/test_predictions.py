"""Predictions are measured on the record; what cannot be told meets nothing, what is gone counts as zero."""

from __future__ import annotations

import pytest

from autoxrd.domain.action import Action, Prediction
from autoxrd.domain.state import Feature, FitState
from autoxrd.gates.policy import load_policy
from autoxrd.gates.predictions import PredictionReport, measure_predictions, meets
from tests.gates.factory import action, prediction, state

DEFAULT = load_policy("default")


def measure(act: Action, parent: FitState, candidate: FitState, rwp: float | None = None) -> PredictionReport:
    parent_rwp = parent.quality.rwp if rwp is None else rwp
    return measure_predictions(act, parent, candidate, policy=DEFAULT, parent_rwp=parent_rwp)


def one(made: Prediction, before: dict[str, object], after: dict[str, object], kind: str = "zero") -> PredictionReport:
    act = action(kind, ["instrument.zero"], predictions=[made])
    return measure(act, state(features=before), state(features=after))  # type: ignore[arg-type]


def test_binary_arithmetic_does_not_decide() -> None:
    assert 0.30 - 0.25 < 0.05  # the trap
    report = one(prediction("position.zero", "decrease", 0.05), {"position.zero": 0.30}, {"position.zero": 0.25})
    assert report.outcomes[0].met
    assert report.check.passed
    report = one(prediction("position.zero", "decrease", 0.05), {"position.zero": 0.30}, {"position.zero": 0.2500001})
    assert not report.outcomes[0].met
    assert not meets(0.0, 1e-300, 1e-9)
    assert not meets(float("nan"), 0.1, 1e-9)
    assert not meets(float("inf"), 0.1, 1e-9)


@pytest.mark.parametrize(
    ("direction", "before", "after", "effect"),
    [
        ("decrease", 0.3, 0.1, 0.2),
        ("decrease", -0.1, -0.3, 0.2),
        ("increase", -0.3, -0.1, 0.2),
        ("toward_zero", -0.3, 0.1, 0.2),
        ("toward_zero", 0.1, -0.3, -0.2),
    ],
)
def test_effects_are_signed(direction: str, before: float, after: float, effect: float) -> None:
    outcome = one(
        prediction("position.zero", direction, 0.05), {"position.zero": before}, {"position.zero": after}
    ).outcomes[0]
    assert outcome.effect == pytest.approx(effect)
    assert outcome.met is (effect > 0)


def test_a_decrease_away_from_zero_is_no_support() -> None:
    report = one(prediction("position.zero", "decrease", 0.05), {"position.zero": 0.01}, {"position.zero": -0.3})
    assert report.outcomes[0].met
    assert not report.mechanism_supported
    assert report.check.codes == ("mechanism_not_supported",)


def test_rwp_alone_supports_no_mechanism() -> None:
    act = action(predictions=[prediction("rwp", "decrease", 0.01)])
    report = measure(act, state(rwp=0.1), state(rwp=0.05))
    assert report.outcomes[0].met
    assert report.check.codes == ("mechanism_not_supported",)


def test_every_prediction_must_be_met() -> None:
    act = action(predictions=[prediction(), prediction("rwp", "decrease", 0.05)])
    report = measure(act, state(rwp=0.1), state(rwp=0.09, features={"position.zero": 0.0}))
    assert report.mechanism_supported
    assert report.check.codes == ("prediction_not_met",)
    assert (report.check.measured, report.check.limit) == (1.0, 2.0)


def test_what_cannot_be_told_meets_nothing_and_what_is_gone_is_zero() -> None:
    absent = Feature(value=None, available=False, reason="reflections changed")
    report = one(prediction(), {}, {"position.zero": absent})
    assert report.outcomes[0].effect is None
    assert set(report.check.codes) == {"prediction_unmeasured", "mechanism_not_supported"}
    gone = Feature(value=None, available=False, reason="below_noise: 0.3 sigma")
    report = one(prediction(), {}, {"position.zero": gone})
    assert (report.outcomes[0].before, report.outcomes[0].after) == (0.05, 0.0)
    assert report.check.passed
    # a value beside the word is a value that was withdrawn for another reason
    odd = Feature(value=0.04, available=False, reason="below_noise")
    assert not one(prediction(), {}, {"position.zero": odd}).check.passed


def test_the_last_but_one_phase_can_leave_though_one_alone_has_no_presence() -> None:
    act = action(
        "remove_phase",
        [],
        settings={"phase": "nac"},
        predictions=[prediction("phases_unsupported", "decrease", 0.5)],
    )
    before = state(features={"phases_unsupported": 1.0})
    for phases, met in ((before.phases[:1], True), ((*before.phases[:1], *before.phases[:1]), False)):
        report = measure(act, before, state().model_copy(update={"phases": phases}))
        assert report.outcomes[0].met is met
        assert report.mechanism_supported is met


def test_an_esd_earns_no_credit() -> None:
    within = Feature(value=0.04, esd=0.1, significance=0.4)
    assert not one(prediction(), {}, {"position.zero": within}).check.passed


def gains(minimum: float) -> Action:
    return action(predictions=[prediction("release_gain.instrument.zero", "decrease", minimum)])


def test_a_release_gain_is_measured_by_what_was_gained() -> None:
    free = {"released": ("background.*", "instrument.zero")}
    parent = state(rwp=0.10)  # promises 30 % of chi2
    without = {"release_gain.instrument.zero": None}
    kept = measure(gains(0.1), parent, state(rwp=0.09, features=without, **free))  # 19 % gained
    assert kept.check.passed
    assert kept.outcomes[0].effect == pytest.approx(1 - 0.81)
    broken = measure(gains(0.1), parent, state(rwp=0.099, features=without, **free))  # 2 % gained
    assert broken.check.codes == ("prediction_not_met", "mechanism_not_supported")
    # an engine that reports no gain left for what is free has said nothing
    zero_left = {"release_gain.instrument.zero": 0.0}
    assert not measure(gains(0.1), parent, state(rwp=0.099, features=zero_left, **free)).check.passed
    beyond = measure(gains(0.1), parent, state(rwp=0.05, features=without, **free))
    assert beyond.outcomes[0].after == 0.0  # no more than was promised is booked
    assert not measure(gains(0.1), parent, state(rwp=0.09, features=without)).check.passed  # not free: not measured
    other_points = state(rwp=0.09, features=without, n_points=4000, **free)
    assert measure(gains(0.1), parent, other_points).outcomes[0].effect is None


def test_a_gain_for_all_atoms_is_released_atom_by_atom() -> None:
    act = action(
        "displacement_parameters",
        ["phase.fap.atom.Ca1.uiso", "phase.fap.atom.O1'.uiso"],
        predictions=[prediction("release_gain.phase.fap.uiso", "decrease", 0.01)],
    )
    free = state(rwp=0.099, features={"release_gain.phase.fap.uiso": None}, released=act.parameters)
    assert measure(act, state(), free).check.passed
    half = state(rwp=0.099, features={"release_gain.phase.fap.uiso": None}, released=act.parameters[:1])
    assert measure(act, state(), half).check.codes == ("prediction_unmeasured", "mechanism_not_supported")


@pytest.mark.parametrize("metric", ["gof", "chi2", "abs_residual", "rwp_no_background"])
def test_sums_over_other_points_are_not_compared(metric: str) -> None:
    act = action(predictions=[prediction(), prediction(metric, "decrease", 0.01)])
    after = state(rwp=0.05, n_points=4000, features={"position.zero": 0.0}, abs_residual=0.01, rwp_no_background=0.01)
    report = measure(act, state(), after, rwp=0.09)
    assert report.outcomes[1].effect is None
    assert "prediction_unmeasured" in report.check.codes
    same = measure(action(predictions=[prediction(), prediction("rwp", "decrease", 0.01)]), state(), after, rwp=0.09)
    assert same.outcomes[1].before == 0.09
    assert same.check.passed


def test_figures_of_the_fit_are_metrics() -> None:
    before = state(max_correlation=0.99, n_free=9, shift=0.5)
    after = state(max_correlation=None, n_free=1, shift=0.01)
    act = action(
        "freeze",
        ["phase.fap.scale"],
        predictions=[
            prediction("max_correlation", "decrease", 0.5),  # one parameter has no pair: zero
            prediction("n_free", "decrease", 3.0),
            prediction("max_shift_over_esd", "toward_zero", 0.3),
        ],
    )
    assert measure(act, before, after).check.passed
