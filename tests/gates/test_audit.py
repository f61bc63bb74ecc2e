"""The final audit: no failing hard check is ever success; what is missing is said."""

from __future__ import annotations

import math

import pytest

from autoxrd.domain.action import ActionKind
from autoxrd.domain.state import Feature, FitState, MeasuredValue, ParameterValue, PhaseSummary, Violation
from autoxrd.gates.audit import final_audit, misfit_beyond_noise
from autoxrd.gates.model_class import structural_misfit
from autoxrd.gates.policy import Policy, load_policy
from autoxrd.science.suspects import MagneticOrder, OtherWavelength, Suspects
from tests.gates.factory import state

DEFAULT, STRICT = load_policy("default"), load_policy("strict")


def audit(
    candidate: FitState, policy=DEFAULT, last: ActionKind | None = ActionKind.JOINT
) -> tuple[str, set[str], set[str]]:
    verdict, reasons, warnings = final_audit(candidate, policy=policy, last_kind=last)
    assert all(finding.text for finding in (*reasons, *warnings))
    return verdict, {finding.code for finding in reasons}, {finding.code for finding in warnings}


@pytest.mark.parametrize("policy", [DEFAULT, STRICT])
def test_a_good_fit_is_accepted(policy: Policy) -> None:
    assert audit(state(), policy) == ("accepted", set(), set())


def test_a_hard_violation_is_never_success() -> None:
    hard = Violation(code="distance_too_short", subject="phase.fap", value=0.6, limit=1.2, text="Si1-O1 0.60 A")
    assert audit(state(violations=[hard])) == ("abstained", {"distance_too_short"}, set())
    soft = hard.model_copy(update={"severity": "soft"})
    assert audit(state(violations=[soft])) == ("accepted_with_warnings", set(), {"distance_too_short"})


def test_convergence() -> None:
    assert audit(state(converged=False))[:2] == ("abstained", {"not_converged"})
    assert audit(state(shift=0.5)) == ("accepted_with_warnings", set(), {"still_moving"})
    assert audit(state(shift=1.5))[:2] == ("abstained", {"still_moving"})
    assert audit(state(n_free=0))[:2] == ("abstained", {"nothing_refined"})
    assert audit(state(dropped=["phase.fap.strain"]))[2] == {"parameters_dropped"}
    assert audit(state(), last=ActionKind.LATTICE)[2] == {"no_final_joint"}
    assert audit(state(), last=None)[0] == "accepted"


@pytest.mark.parametrize(
    ("metric", "code"), [("unexplained_peak_ratio", "unexplained_peaks"), ("missing_peak_ratio", "missing_peaks")]
)
def test_peaks(metric: str, code: str) -> None:
    assert audit(state(features={metric: 0.019}))[0] == "accepted"
    assert audit(state(features={metric: 0.05})) == ("accepted_with_warnings", set(), {code})
    assert audit(state(features={metric: 0.11})) == ("abstained", {code}, set())
    absent = Feature(value=None, available=False, reason="d-spacing axis")
    assert audit(state(features={metric: absent})) == ("accepted_with_warnings", set(), {f"{code}_unknown"})
    assert audit(state(features={metric: absent}), STRICT)[:2] == ("abstained", {f"{code}_unknown"})
    assert audit(state(features={metric: Feature(value=None, available=False, reason="below_noise")}))[0] == "accepted"


def test_misfit_is_judged_without_background_and_noise() -> None:
    assert misfit_beyond_noise(0.2, 1.0) == 0.0
    assert misfit_beyond_noise(0.2, 0.8) == 0.0
    # the definition: sqrt(Rwp_nb^2 - Rexp_nb^2), with Rexp_nb = Rwp_nb / GoF
    assert misfit_beyond_noise(0.2, 2.0) == pytest.approx(math.sqrt(0.2**2 - 0.1**2))
    # a weak pattern: Rwp 40 %, but all of it noise
    assert audit(state(rwp=0.40, rexp=0.39, rwp_no_background=0.6))[0] == "accepted"
    # a flat Rwp of 5 % on a huge background hides a bad model
    assert audit(state(rwp=0.05, rexp=0.01, rwp_no_background=0.5, gof=3.9))[:2] == (
        "abstained",
        {"misfit_not_explained"},
    )
    assert audit(state(rwp_no_background=0.2))[2] == {"misfit_not_explained"}
    assert audit(state(gof=float("nan")))[:2] == ("abstained", {"quality_not_finite"})
    assert audit(state(gof=float("inf"), rwp=0.5))[0] == "abstained"


def test_a_high_gof_alone_is_a_warning() -> None:
    assert audit(state(rwp=0.06, rexp=0.01, rwp_no_background=0.08)) == ("accepted_with_warnings", set(), {"gof_high"})


def phase(
    name: str, r_bragg: float | None, share: float | None, fraction: float = 0.5, esd: float = 0.01
) -> PhaseSummary:
    weight = MeasuredValue(value=fraction, esd=esd)
    return PhaseSummary(
        name=name, space_group="P 1", weight_fraction=weight, cell={}, r_bragg=r_bragg, intensity_share=share
    )


@pytest.mark.parametrize(("held", "stem"), [(True, ""), (False, ""), (True, "histogram.1."), (False, "histogram.1.")])
def test_fractions_of_a_mixture_whose_amounts_were_not_all_refined_are_none(held: bool, stem: str) -> None:
    scales = tuple(
        ParameterValue(name=f"{stem}phase.{name}.scale", value=1.0, esd=0.1, released=name == "a" or not held)
        for name in "ab"
    )
    both = [phase("a", 0.05, 0.9), phase("b", 0.05, 0.1)]
    told = audit(state(phases=both).model_copy(update={"parameters": scales}))
    assert told[:2] == (("abstained", {"scale_not_refined"}) if held else ("accepted", set()))
    alone = state(phases=both[1:]).model_copy(update={"parameters": scales[1:]})
    assert "scale_not_refined" not in audit(alone)[1]


def test_r_bragg_condemns_only_a_main_phase() -> None:
    assert audit(state(phases=[phase("a", 0.2, 0.9), phase("b", 0.05, 0.1)]))[2] == {"r_bragg_high"}
    assert audit(state(phases=[phase("a", 0.4, 0.9), phase("b", 0.05, 0.1)]))[:2] == ("abstained", {"r_bragg_high"})
    assert audit(state(phases=[phase("a", 0.05, 0.9), phase("b", 0.6, 0.1)]))[0] == "accepted"
    assert audit(state(phases=[phase("a", 0.4, None)]))[:2] == ("abstained", {"r_bragg_high"})
    assert audit(state(phases=[phase("a", None, 0.9), phase("b", None, 0.1)]))[0] == "accepted"


def test_a_phase_within_its_error_is_named() -> None:
    two = [phase("a", 0.05, 0.9, 0.98), phase("b", 0.05, 0.1, 0.02, 0.01)]
    assert audit(state(phases=two)) == ("accepted_with_warnings", set(), {"phase_not_significant"})


def test_a_high_correlation_is_named() -> None:
    assert audit(state(max_correlation=0.985))[2] == {"correlation_high"}


def _mixture(heavy_absorption: float) -> FitState:
    phases = [
        PhaseSummary(name=name, space_group="P 1", weight_fraction=MeasuredValue(value=share, esd=0.002), cell={})
        for name, share in (("light", 0.93), ("heavy", 0.07))
    ]
    values = {"density": 4.0, "linear_absorption": 120.0}
    rows = [
        ParameterValue(name=f"phase.{phase}.{name}", value=value, derived=True)
        for phase, changed in (("light", {}), ("heavy", {"linear_absorption": heavy_absorption}))
        for name, value in (values | changed).items()
    ]
    made = state()
    return made.model_copy(update={"phases": tuple(phases), "parameters": (*made.parameters, *rows)})


def test_phases_that_absorb_differently_are_told_with_what_ordinary_grains_would_do() -> None:
    _, _, warnings = final_audit(_mixture(1200.0), policy=DEFAULT, last_kind=ActionKind.JOINT)
    (found,) = [w for w in warnings if w.code == "microabsorption"]
    assert "heavy" in found.text
    assert "From 1 to 10 um: light 92.5 to 85.7 %, heavy 7.5 to 14.3 %" in found.text
    assert found.measured is not None
    assert found.measured > 0.02
    assert "microabsorption" not in audit(_mixture(140.0))[2]


def test_a_strong_line_without_a_cause_forbids_success() -> None:
    assert audit(state(features={"unexplained.strongest": 0.14}))[0] == "accepted"
    assert audit(state(features={"unexplained.strongest": 0.2})) == ("abstained", {"strong_line_unexplained"}, set())


def _structural(reachable: float, **features: float) -> FitState:
    """A fit with Rwp 20 % and 25 % without background, and what free intensities would reach."""
    return state(rwp=0.20, rwp_no_background=0.25, features={"reachable_rwp": reachable, **features})


def test_misfit_of_intensities_alone_is_the_structures() -> None:
    assert structural_misfit(_structural(0.20)) == pytest.approx(0.0)
    assert structural_misfit(_structural(0.12)) == pytest.approx(0.20)
    assert structural_misfit(state()) is None
    doubted = audit(_structural(0.12))
    assert doubted[0] == "accepted_with_warnings"
    assert "structure_not_supported" in doubted[2]
    walked = audit(_structural(0.12, **{"cell_change.fap": 0.014}))
    assert walked[:2] == ("abstained", {"structure_not_supported"})
    assert "structure_not_supported" not in audit(_structural(0.17, **{"cell_change.fap": 0.014}))[2]


def test_an_atom_that_dissolves_speaks_against_the_structure() -> None:
    values = {"phase.fap.atom.Ca1.uiso": 0.09}
    bent = state(
        rwp=0.20,
        rwp_no_background=0.25,
        features={"reachable_rwp": 0.12},
        values=values,
        free=["phase.fap.atom.Ca1.uiso"],
    )
    assert audit(bent)[1] == {"structure_not_supported"}


def test_causes_beyond_the_model_are_named_first() -> None:
    tube = Suspects(wavelength=OtherWavelength("Co", 1.5406, 1.789, 0.0, 0.6))
    reasons = final_audit(state(features={"missing_peak_ratio": 0.5}), policy=DEFAULT, suspects=tube).reasons
    assert [finding.code for finding in reasons] == ["wavelength_doubtful", "missing_peaks"]
    order = Suspects(magnetic=MagneticOrder("fap", "the nuclear cell", 11.5, 7.69, (0.0, 1.0, 0.0), 0.97, 0.04))
    strong = final_audit(state(features={"unexplained.strongest": 0.4}), policy=DEFAULT, suspects=order)
    assert [finding.code for finding in strong.reasons] == ["magnetic_order_suspected", "strong_line_unexplained"]
    weak = final_audit(state(), policy=DEFAULT, suspects=order)
    assert weak.verdict == "accepted_with_warnings"
    assert [finding.code for finding in weak.warnings] == ["magnetic_order_suspected"]


def with_amorphous(value: float, esd: float | None) -> FitState:
    rows = (
        ParameterValue(name="sample.amorphous_weight_fraction", value=value, esd=esd, derived=True),
        ParameterValue(name="sample.amorphous_leverage", value=2.0, derived=True),
    )
    return state().model_copy(update={"parameters": (*state().parameters, *rows)})


@pytest.mark.parametrize(
    ("value", "esd", "code"),
    [
        (0.31, 0.02, None),
        (0.05, 0.02, "amorphous_below_detection"),
        # ten esds of the fit, and within what fractions of real mixtures are wrong by: 3 x 2.0 x 0.01
        (0.05, 0.005, "amorphous_below_detection"),
        (0.07, 0.005, None),
        (-0.05, 0.02, "amorphous_below_detection"),
        (-0.07, 0.02, "amorphous_negative"),
        (0.5, None, "amorphous_not_measured"),
    ],
)
def test_an_amorphous_content_that_cannot_be_or_is_not_seen_is_told(
    value: float, esd: float | None, code: str | None
) -> None:
    verdict, reasons, warnings = audit(with_amorphous(value, esd))
    assert not reasons
    assert warnings == ({code} if code else set())
    assert verdict == ("accepted_with_warnings" if code else "accepted")


@pytest.mark.parametrize(
    ("value", "esd", "code"),
    [
        (0.31, 0.02, None),
        (0.05, 0.02, "amorphous_below_detection"),
        (-0.05, 0.02, "amorphous_below_detection"),
        (-0.07, 0.02, "absolute_fractions_exceed_one"),
        (0.5, None, None),
    ],
)
def test_with_an_external_standard_too_much_has_other_causes(value: float, esd: float | None, code: str | None) -> None:
    told = with_amorphous(value, esd)
    absorption = ParameterValue(name="sample.mass_absorption", value=33.9, unit="cm2/g", derived=True)
    told = told.model_copy(update={"parameters": (*told.parameters, absorption)})
    result = final_audit(told, policy=DEFAULT)
    assert [finding.code for finding in result.warnings] == ([code] if code else [])
    if value < -0.06:
        assert "107.0 +- 2.0 %" in result.warnings[0].text
        for cause in ("mass absorption is lower", "measured longer", "roughness"):
            assert cause in result.warnings[0].text
