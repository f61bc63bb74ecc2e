"""Rule 1 of the gate: forged evidence, vacuous predictions, coupled sets and selectors outside the action."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from autoxrd.domain.action import Action, ActionKind, Bound, Evidence, Prediction, Stage
from autoxrd.domain.state import Feature, FitState
from autoxrd.gates.geometry import AngularRange
from autoxrd.gates.policy import Policy, load_policy
from autoxrd.gates.preflight import PREFLIGHT_RULES, preflight
from tests.gates.factory import NAMES, PARENT_ID, action, evidence, prediction, state

STRICT, DEFAULT = load_policy("strict"), load_policy("default")


def codes(
    act: Action, parent: FitState | None = None, policy=DEFAULT, known: Sequence[str] = NAMES, **more
) -> set[str]:
    checks = preflight(act, parent or state(), PARENT_ID, policy=policy, known_parameters=known, **more)
    assert tuple(check.rule for check in checks) == PREFLIGHT_RULES
    assert all(check.passed is (not check.codes) for check in checks)
    assert all(check.text for check in checks if not check.passed)
    return {code for check in checks for code in check.codes}


@pytest.mark.parametrize("policy", [STRICT, DEFAULT])
def test_an_honest_action_passes(policy: Policy) -> None:
    assert codes(action(), policy=policy) == set()


# --- parent, stage, selectors -------------------------------------------------------------------------------------


def test_another_parent_is_refused() -> None:
    assert "parent_mismatch" in codes(action(parent="ffff"))


def test_kinds_stay_in_their_stages() -> None:
    assert "kind_not_in_stage" in codes(action(stage=Stage.QC))
    assert "kind_not_in_stage" in codes(action(stage=Stage.FINAL_AUDIT))


@pytest.mark.parametrize(
    ("selectors", "code"),
    [
        ([], "no_parameters"),
        (["instrument.zeroed"], "selector_invalid"),
        (["zero"], "selector_invalid"),
        (["instrument.*"], "selector_invalid"),
        (["phase.fap.scale"], "selector_outside_kind"),
        (["instrument.zero", "phase.fap.cell"], "selector_outside_kind"),
        (["histogram.H2.instrument.wavelength"], "selector_outside_kind"),
    ],
)
def test_selectors_stay_inside_the_kind(selectors: list[str], code: str) -> None:
    assert code in codes(action(selectors=selectors))


def test_selectors_must_match_something() -> None:
    assert "selector_unknown" in codes(action("lattice", ["phase.nac.cell"]))
    assert "selector_unknown" in codes(action("profile", ["profile.Z"]))
    add = action("add_phase", ["phase.nac.scale"], settings={"phase": "nac"})
    assert "selector_unknown" not in codes(add)
    assert "selector_unknown" in codes(add.model_copy(update={"settings": {"phase": "other"}}))


def test_freeze_and_joint_work_on_what_is_free() -> None:
    assert "freeze_not_free" in codes(action("freeze", ["profile.U"]))
    assert "freeze_not_free" not in codes(action("freeze", ["phase.fap.scale"]))
    assert "joint_frees_new" in codes(action("joint", ["instrument.zero"]))
    assert "joint_frees_new" not in codes(action("joint", ["phase.*.scale"]))


@pytest.mark.parametrize(
    ("kind", "settings", "fine"),
    [
        ("remove_phase", {}, False),
        ("remove_phase", {"phase": "fap"}, False),  # the only one
        ("remove_phase", {"phase": "nac"}, False),
        ("add_phase", {}, False),
        ("add_phase", {"phase": "fap"}, False),
        ("add_phase", {"phase": "nac"}, True),
        ("exclude_region", {}, False),
        ("exclude_region", {"lower_deg": 40.0, "upper_deg": 40.0}, False),
        ("exclude_region", {"lower_deg": "all", "upper_deg": 40.0}, False),
        ("exclude_region", {"lower_deg": float("nan"), "upper_deg": 40.0}, False),
        ("exclude_region", {"lower_deg": 38.0, "upper_deg": 40}, True),
        ("background_model", {"terms": 0}, False),
        ("background_model", {"terms": 8.5}, False),
        ("background_model", {"terms": 12}, True),
        ("background_model", {"terms": 12, "function": "log interpolate"}, True),
        ("background_model", {"terms": 12, "function": 3}, False),
        ("background_model", {"position_deg": 22.0}, False),
        ("background_model", {"position_deg": 22.0, "width_deg": "broad"}, False),
        ("background_model", {"position_deg": 22.0, "width_deg": 8.0}, True),
        ("background_model", {"distance_angstrom": 3.2}, True),
        ("background_model", {"estimate": "arpls"}, True),
        ("background_model", {"estimate": "arpls", "wave_deg": 6, "terms": 1}, True),
        ("background_model", {"estimate": "snip"}, False),
        ("background_model", {"estimate": "arpls", "wave_deg": float("inf")}, False),
        ("size_strain", {"phase": "fap", "effect": "size", "model": "uniaxial", "axis": (0.0, 0.0, 1.0)}, True),
        ("size_strain", {"phase": "fap", "model": "uniaxial"}, False),
        ("displacement_parameters", {"phase": "fap", "atoms": "O1 O2"}, True),
        ("displacement_parameters", {"atoms": "O1 O2"}, False),
        ("preferred_orientation", {"phase": "fap", "order": 4}, True),
        ("preferred_orientation", {"phase": "fap", "order": "four"}, False),
        ("positions", {"phase": "fap", "from": "P", "distance_angstrom": 1.54}, False),
    ],
)
def test_settings_say_what_to_do(kind: str, settings: dict[str, object], fine: bool) -> None:
    assert ("settings_invalid" in codes(action(kind, [], settings=settings))) is not fine


def test_a_phase_is_removed_from_several() -> None:
    fap = state().phases[0]
    both = state(phases=[fap, fap.model_copy(update={"name": "nac"})])
    assert "settings_invalid" not in codes(action("remove_phase", [], settings={"phase": "nac"}), both)


# --- bounds -------------------------------------------------------------------------------------------------------


def uiso(bounds: Sequence[Bound], selectors: Sequence[str] = ("phase.fap.uiso",)) -> Action:
    return action("displacement_parameters", selectors, stage=Stage.STRUCTURE, bounds=bounds)


def test_high_risk_kinds_bound_each_of_their_parameters() -> None:
    one = Bound(selector="phase.fap.atom.Ca1.uiso", lower=0.0, upper=0.1)
    other = Bound(selector="phase.fap.atom.O1'.uiso", lower=0.0, upper=0.1)
    assert "bounds_missing" in codes(uiso([]))
    assert "bounds_missing" in codes(uiso([one]))
    assert "bounds_missing" not in codes(uiso([one, other]))
    assert "bounds_missing" not in codes(uiso([Bound(selector="phase.*.uiso", lower=0.0, upper=0.1)]))


def test_bounds_concern_the_action_and_leave_room() -> None:
    assert "bound_empty" in codes(uiso([Bound(selector="phase.fap.uiso", lower=0.1, upper=0.1)]))
    assert "bound_outside_action" in codes(uiso([Bound(selector="instrument.zero", lower=0.0, upper=0.1)]))
    assert "selector_invalid" in codes(uiso([Bound(selector="uiso", lower=0.0, upper=0.1)]))


# --- evidence -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "code"),
    [
        (evidence(value=0.0506), "evidence_not_supported"),
        (evidence(value=-0.05), "evidence_not_supported"),
        (evidence(comparison="<", threshold=0.01), "evidence_not_supported"),
        (evidence(comparison="abs>", threshold=0.06), "evidence_not_supported"),
        (evidence(comparison="abs>", threshold=-1.0), "evidence_not_supported"),
        (evidence("rwp", 0.1, comparison=">=", threshold=0.0), "evidence_not_supported"),
        (evidence("position.zeros", 0.05), "evidence_unknown_feature"),
        (evidence("width.high", 0.05), "evidence_unknown_feature"),
        (evidence(source="ffff"), "evidence_stale"),
    ],
)
def test_forged_evidence_is_refused(claim: Evidence, code: str) -> None:
    found = codes(action(claims=[evidence(), claim]))
    assert found == {code}


@pytest.mark.parametrize(
    "claim",
    [
        evidence(value=0.0505),
        evidence(value=0.0495, comparison=">", threshold=0.049),
        evidence("bias_low", -0.02, comparison="<", threshold=-0.01),
        evidence("bias_low", -0.02, comparison="abs>", threshold=0.01),
        evidence("rwp", 0.1, comparison=">", threshold=0.05),
        evidence("missing_peak_ratio", 0.0, comparison="<=", threshold=0.01),
        evidence("r_bragg.fap", 0.05, comparison=">=", threshold=0.05),
        evidence("max_correlation", 0.5, comparison="<", threshold=0.9),
    ],
)
def test_true_evidence_passes(claim: Evidence) -> None:
    assert codes(action(claims=[claim])) == set()


def test_what_the_record_cannot_tell_is_no_evidence() -> None:
    absent = Feature(value=None, available=False, reason="too few lines")
    parent = state(features={"position.zero": absent})
    assert "evidence_not_supported" in codes(action(), parent)
    withdrawn = Feature(value=0.05, available=False, reason="too few lines")
    assert "evidence_not_supported" in codes(action(), state(features={"position.zero": withdrawn}))


# --- predictions --------------------------------------------------------------------------------------------------


def test_predictions_must_be_able_to_fail() -> None:
    zero = Prediction.model_construct(metric="position.zero", direction="toward_zero", minimum_effect=0.0)
    act = action()
    forged = act.model_copy(update={"predictions": (zero,)})
    assert "prediction_vacuous" in codes(forged)
    assert "prediction_vacuous" in codes(action(predictions=[prediction(minimum=1e-9)]))
    assert "prediction_vacuous" not in codes(action(predictions=[prediction(minimum=1e-9)]), policy=STRICT)
    assert "prediction_vacuous" in codes(action(predictions=[prediction(minimum=1e-12)]), policy=STRICT)


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (prediction("rwp", "decrease", 0.01), "prediction_no_mechanism"),
        (prediction("width.low", "toward_zero", 0.01), "prediction_no_mechanism"),
        (prediction("position.zero", "increase", 0.01), "prediction_no_mechanism"),
        (prediction("position.zero", "toward_zero", 0.06), "prediction_impossible"),
        (prediction("width.high", "toward_zero", 0.01), "prediction_unmeasurable"),
        (prediction("release_gain.profile.U", "decrease", 0.01), "prediction_unmeasurable"),
    ],
)
def test_useless_predictions_are_refused(made: Prediction, code: str) -> None:
    assert code in codes(action(predictions=[made]))


def test_the_mechanism_must_be_named_for_this_very_action() -> None:
    lattice = action("lattice", ["phase.fap.cell"], predictions=[prediction("position.cell.fap", minimum=1e-4)])
    assert codes(lattice) == set()
    known = (*NAMES, "phase.caf2.cell.a", "phase.caf2.scale")
    other = action("lattice", ["phase.caf2.cell"], predictions=[prediction("position.cell.fap", minimum=1e-4)])
    assert "prediction_no_mechanism" in codes(other, known=known)
    gain = prediction("release_gain.phase.fap.uiso", "decrease", 0.02)
    bound = Bound(selector="phase.fap.atom.Ca1.uiso", lower=0.0, upper=0.1)
    mine = uiso([bound], ["phase.fap.atom.Ca1.uiso"]).model_copy(update={"predictions": (gain,)})
    assert codes(mine) == set()
    assert "prediction_no_mechanism" in codes(mine, policy=STRICT)


# --- coupled sets -------------------------------------------------------------------------------------------------

ZERO_FREE = ("phase.*.scale", "background.*", "instrument.zero")


def lattice(selectors: Sequence[str] = ("phase.fap.cell",)) -> Action:
    return action("lattice", selectors, predictions=[prediction("position.cell.fap", minimum=1e-4)])


def displacement(selectors: Sequence[str] = ("sample.displacement",)) -> Action:
    return action("displacement", selectors, predictions=[prediction("position.displacement", minimum=0.01)])


def separable(value: float, reason: str = "") -> Feature:
    return Feature(value=value, reason=reason)


def test_zero_and_displacement_are_never_free_together() -> None:
    parent = state(released=ZERO_FREE)
    assert codes(displacement(), parent) == {"coupled_parameters"}
    assert codes(displacement(), state()) == set()
    tied = ["instrument.zero = sample.displacement"]
    assert codes(displacement(), parent, constraints=tied) == set()
    assert codes(displacement(), parent, constraints=["instrument.zero = profile.U"]) == {"coupled_parameters"}


def test_capillary_offsets_are_displacements() -> None:
    known = (*NAMES, "sample.offset_along", "sample.offset_across")
    assert codes(displacement(["sample.offset"]), state(released=ZERO_FREE), known=known) == {"coupled_parameters"}


def test_zero_with_cell_follows_the_range() -> None:
    parent = state(released=ZERO_FREE)
    assert codes(lattice(), parent, span=AngularRange(15.0, 130.0, 1.54)) == set()
    assert codes(lattice(), parent, span=AngularRange(28.0, 40.0, 1.54)) == {"coupled_parameters"}
    # the range decides, whatever the present offsets can or cannot tell
    mute = {"position.separable": separable(0.0, "cannot be told apart: zero or cell of fap")}
    assert codes(lattice(), state(released=ZERO_FREE, features=mute), span=AngularRange(15.0, 130.0)) == set()
    ends = {"range.two_theta_min": 28.0, "range.two_theta_max": 40.0}
    assert codes(lattice(), state(released=ZERO_FREE, features=ends)) == {"coupled_parameters"}
    assert codes(lattice(), state(features=ends)) == set()


@pytest.mark.parametrize(
    ("feature", "refused"),
    [
        (separable(1.0, "explained by zero and cell of fap"), False),
        (separable(0.0, "cannot be told apart: zero or cell of fap"), True),
        (separable(0.0, "cannot be told apart: zero or cell"), True),
        (separable(0.0, "cannot be told apart: zero or cell of cell-2"), False),
        # what both explanations share is not in doubt
        (separable(0.0, "cannot be told apart: zero and cell of fap or displacement and cell of fap"), False),
        (separable(0.0, "cannot be told apart: zero or displacement and cell of fap"), True),
        (separable(0.0, "cannot be told apart: displacement or cell of zero"), False),
        (separable(0.0, ""), True),
    ],
)
def test_without_a_range_the_record_says_what_can_be_told(feature: Feature, refused: bool) -> None:
    told = state(released=ZERO_FREE, features={"position.separable": feature})
    assert codes(lattice(), told) == ({"coupled_parameters"} if refused else set())


def test_without_either_the_policy_says() -> None:
    none = Feature(value=None, available=False, reason="too few")
    unknown = state(released=ZERO_FREE, features={"position.separable": none})
    assert codes(lattice(), unknown) == set()
    assert codes(lattice(), unknown, policy=STRICT) == {"coupled_parameters"}


def test_wavelength_with_every_cell_is_no_measurement() -> None:
    cells = ("phase.*.scale", "phase.fap.cell")
    assert codes(lattice(["instrument.wavelength"]), state(released=cells)) == {"coupled_parameters"}
    known = (*NAMES, "phase.si.cell.a", "phase.si.scale")
    assert codes(lattice(["instrument.wavelength"]), state(released=cells), known=known) == set()
    with_zero = state(released=(*cells, "instrument.zero"))
    assert codes(lattice(["instrument.wavelength"]), with_zero, known=known) == {"coupled_parameters"}


def occupancy(selectors: Sequence[str], bounds: str = "phase.*.occupancy") -> Action:
    return action(
        "occupancy",
        selectors,
        stage=Stage.STRUCTURE,
        bounds=[Bound(selector=bounds, lower=0.0, upper=1.0)],
        predictions=[prediction("r_bragg.fap", "decrease", 0.01)],
    )


def test_occupancy_and_uiso_of_one_atom() -> None:
    parent = state(released=("background.*", "phase.fap.atom.Ca1.uiso"))
    assert codes(occupancy(["phase.fap.atom.Ca1.occupancy"]), parent) == {"coupled_parameters"}
    assert codes(occupancy(["phase.fap.atom.O1'.occupancy"]), parent) == set()


def test_atoms_that_share_a_site_share_the_coupling() -> None:
    same = {f"phase.fap.atom.O1'.{axis}": value for axis, value in zip("xyz", (0.10002, 0.1, 1.1), strict=True)}
    parent = state(released=("background.*", "phase.fap.atom.Ca1.uiso"), values=same)
    assert codes(occupancy(["phase.fap.atom.O1'.occupancy"]), parent) == {"coupled_parameters"}


def test_scale_with_all_occupancies() -> None:
    assert codes(occupancy(["phase.fap.occupancy"])) == {"coupled_parameters"}
    assert codes(occupancy(["phase.fap.atom.Ca1.occupancy"])) == set()
    assert codes(occupancy(["phase.fap.occupancy"]), state(released=("background.*",))) == set()


def test_background_with_all_uiso_at_a_narrow_range() -> None:
    act = uiso([Bound(selector="phase.*.uiso", lower=0.0, upper=0.1)]).model_copy(
        update={"predictions": (prediction("intensity.angle_trend", minimum=0.1),)}
    )
    narrow = AngularRange(20.0, 40.0, 1.54)
    assert codes(act, span=AngularRange(10.0, 120.0, 1.54)) == set()
    assert codes(act, span=narrow) == {"coupled_parameters"}
    assert codes(act, span=AngularRange(20.0, 40.0, 0.5)) == set()
    assert codes(act, span=AngularRange(20.0, 40.0)) == set()  # no wavelength: not known to be narrow
    recorded = {"range.two_theta_min": 20.0, "range.two_theta_max": 40.0}
    values = {"instrument.wavelength": 1.54}
    assert codes(act, state(features=recorded, values=values)) == {"coupled_parameters"}
    one = uiso([Bound(selector="phase.*.uiso", lower=0.0, upper=0.1)], ["phase.fap.atom.Ca1.uiso"])
    one = one.model_copy(update={"predictions": act.predictions})
    assert codes(one, span=narrow) == set()


def test_a_coupled_set_is_the_fault_of_the_action_that_takes_part() -> None:
    both = state(released=("background.*", "instrument.zero", "sample.displacement"))
    profile = action("profile", ["profile.W"], predictions=[prediction("width.low", minimum=0.05)])
    assert codes(profile, both) == set()
    assert codes(action("joint", [], predictions=[prediction("rwp", "decrease", 0.01)]), both) == {"coupled_parameters"}
    freeze = action("freeze", ["instrument.zero"], predictions=[prediction("max_correlation", "decrease", 0.1)])
    assert codes(freeze, both) == set()


# --- repetition ---------------------------------------------------------------------------------------------------


def test_the_same_proposal_is_not_tried_twice() -> None:
    earlier = action()
    again = action(claims=[evidence(value=0.05 + 1e-12)]).model_copy(update={"rationale": "please"})
    assert codes(again, rejected=[earlier]) == {"repeat_of_rejected"}
    assert codes(action(predictions=[prediction(minimum=0.01)]), rejected=[earlier]) == set()
    assert (
        codes(
            action(parent=PARENT_ID, bounds=[Bound(selector="instrument.zero", lower=-1, upper=1)]), rejected=[earlier]
        )
        == set()
    )


def test_every_fault_is_told_at_once() -> None:
    act = action(
        ActionKind.OCCUPANCY,
        ["phase.fap.occupancy", "nonsense"],
        stage=Stage.QC,
        claims=[evidence(source="ffff"), evidence(value=1.0)],
        predictions=[prediction("rwp", "decrease", 1e-12)],
        parent="ffff",
    )
    assert codes(act, rejected=[act]) == {
        "parent_mismatch",
        "kind_not_in_stage",
        "selector_invalid",
        "bounds_missing",
        "evidence_stale",
        "evidence_not_supported",
        "prediction_vacuous",
        "prediction_no_mechanism",
        "coupled_parameters",
        "repeat_of_rejected",
    }
