"""Several histograms at the gate: names, what one sees of a state, and rules that are asked of each."""

from __future__ import annotations

import pytest

from autoxrd.domain.action import ActionKind, Bound
from autoxrd.domain.naming import full_name, is_of_sample, split_name
from autoxrd.domain.state import FitState, UnexplainedPeak
from autoxrd.gates.acceptance import judge
from autoxrd.gates.histograms import as_seen_by, bare_metric, full_metric, histograms_of
from autoxrd.gates.policy import load_policy
from autoxrd.gates.preflight import known_parameters, preflight
from autoxrd.gates.selectors import parse_selector
from autoxrd.gates.tables import of_mechanism
from tests.gates.factory import PARENT_ID, action, evidence, passed, prediction, state

POLICY = load_policy("default")
OWN = ("background.0", "instrument.zero", "instrument.wavelength", "sample.displacement", "phase.fap.scale")
OF_SAMPLE = ("phase.fap.cell.a", "phase.fap.atom.Ca1.x", "phase.fap.atom.Ca1.uiso")
NAMES = (
    *OF_SAMPLE,
    *(f"histogram.{h}.{name}" for h in "12" for name in OWN),
    "histogram.2.phase.fap.strain_hydrostatic.a",
    "histogram.2.phase.fap.effective_cell.a",
)
FIGURES = {
    "histogram.1.rwp": 0.08,
    "histogram.2.rwp": 0.12,
    "histogram.1.position.zero": 0.05,
    "histogram.2.position.zero": -0.02,
    "histogram.1.unexplained_peak_ratio": 0.01,
    "histogram.2.unexplained_peak_ratio": 0.0,
    "histogram.1.range.two_theta_min": 10.0,
    "histogram.1.range.two_theta_max": 150.0,
    "histogram.2.range.two_theta_min": 10.0,
    "histogram.2.range.two_theta_max": 150.0,
    "position.zero": None,
    "release_gain.instrument.zero": None,
    "release_gain.histogram.1.instrument.zero": 0.3,
    "release_gain.histogram.2.instrument.wavelength": 0.2,
    "release_gain.histogram.2.phase.fap.strain_hydrostatic": 0.2,
    "release_gain.phase.fap.cell": 0.1,
}


def _several(released: tuple[str, ...] = ("histogram.1.background.*",), **changes: object) -> FitState:
    features = {**FIGURES, **changes.pop("features", {})}  # type: ignore[dict-item]
    return state(names=NAMES, features=features, released=released, **changes)  # type: ignore[arg-type]


def _faults(kind: ActionKind, *selectors: str, parent: FitState | None = None, **settings: object) -> set[str]:
    parent = parent or _several()
    wanted = action(
        kind,
        selectors,
        settings=settings,  # type: ignore[arg-type]
        claims=[evidence("histogram.1.position.zero", 0.05)],
        predictions=[prediction("histogram.1.position.zero", minimum=0.02)],
    )
    checks = preflight(wanted, parent, PARENT_ID, policy=POLICY, known_parameters=known_parameters(parent))
    return {code for check in checks for code in check.codes}


@pytest.mark.parametrize("name", [*OWN, *OF_SAMPLE, "phase.fap.uiso", "background.*", "phase.fap.strain_hydrostatic"])
def test_a_full_name_splits_into_what_it_was_made_of(name: str) -> None:
    whole = full_name("2", name)
    assert split_name(whole) == (("", name) if is_of_sample(name) else ("2", name))
    assert parse_selector(whole).of_sample is is_of_sample(name)


def test_a_histogram_sees_its_own_names_and_the_samples() -> None:
    peaks = [
        UnexplainedPeak(two_theta_deg=30.0, d_angstrom=3.0, area=1, area_share=0.01, significance=9, histogram=h)
        for h in "12"
    ]
    seen = as_seen_by(
        "2", _several(("histogram.1.background.*", "histogram.2.instrument.zero"), unexplained_peaks=peaks)
    )
    names = [p.name for p in seen.parameters]
    assert set(names) == {*OF_SAMPLE, *OWN, "phase.fap.strain_hydrostatic.a", "phase.fap.effective_cell.a"}
    assert seen.features["position.zero"].value == -0.02
    assert seen.features["release_gain.instrument.wavelength"].value == 0.2
    assert seen.features["release_gain.phase.fap.cell"].value == 0.1
    assert "release_gain.instrument.zero" not in seen.features
    assert seen.released == ("instrument.zero",)
    assert [peak.histogram for peak in seen.unexplained_peaks] == ["2"]
    assert seen.quality.rwp == _several().quality.rwp


def test_metrics_keep_their_owner_both_ways() -> None:
    parent = _several()
    for metric in ("position.zero", "release_gain.instrument.zero", "release_gain.phase.fap.cell", "rwp"):
        whole = full_metric("1", metric, parent)
        assert bare_metric(whole)[1] == metric
    assert full_metric("1", "rwp", parent) == "rwp"  # the whole's, which the gate judges
    assert full_metric("1", "position.zero", parent) == "histogram.1.position.zero"
    assert histograms_of(parent) == ("1", "2")
    assert histograms_of(state()) == ()


def test_what_is_a_histograms_must_say_which() -> None:
    assert "histogram_missing" in _faults(ActionKind.ZERO, "instrument.zero")
    assert not _faults(ActionKind.ZERO, "histogram.1.instrument.zero")
    assert "histogram_missing" in _faults(ActionKind.EXCLUDE_REGION, lower_deg=20.0, upper_deg=21.0)
    assert "histogram_missing" not in _faults(ActionKind.EXCLUDE_REGION, lower_deg=20.0, upper_deg=21.0, histogram="2")


def test_one_histogram_needs_no_name_and_takes_none() -> None:
    wanted = action(settings={"histogram": "1"})
    checks = preflight(wanted, state(), PARENT_ID, policy=POLICY, known_parameters=known_parameters(state()))
    assert "settings_invalid" in {code for check in checks for code in check.codes}


def test_a_metric_of_another_histogram_supports_no_mechanism() -> None:
    wanted = action(ActionKind.ZERO, ("histogram.1.instrument.zero",))
    assert of_mechanism(wanted, "histogram.1.position.zero", POLICY)
    assert of_mechanism(wanted, "release_gain.histogram.1.instrument.zero", POLICY)
    assert not of_mechanism(wanted, "histogram.2.position.zero", POLICY)
    assert not of_mechanism(wanted, "release_gain.histogram.2.instrument.zero", POLICY)
    shared = action(ActionKind.LATTICE, ("phase.fap.cell",))
    assert of_mechanism(shared, "histogram.2.position.rms", POLICY)
    strain = action(ActionKind.LATTICE, ("histogram.2.phase.fap.strain_hydrostatic",))
    assert of_mechanism(strain, "release_gain.histogram.2.phase.fap.strain_hydrostatic", POLICY)


def test_coupled_sets_are_those_of_one_histogram() -> None:
    free = _several(("histogram.1.sample.displacement",))
    assert "coupled_parameters" in _faults(ActionKind.ZERO, "histogram.1.instrument.zero", parent=free)
    assert "coupled_parameters" not in _faults(ActionKind.ZERO, "histogram.2.instrument.zero", parent=free)


def test_a_histogram_whose_scale_is_held_tells_another_ones_wavelength_from_the_cell() -> None:
    free = _several(("phase.fap.cell",))
    assert "coupled_parameters" not in _faults(ActionKind.LATTICE, "histogram.2.instrument.wavelength", parent=free)
    both = _several(("phase.fap.cell", "histogram.1.instrument.wavelength"))
    assert "coupled_parameters" in _faults(ActionKind.LATTICE, "histogram.2.instrument.wavelength", parent=both)
    strained = _several(("phase.fap.cell", "histogram.2.phase.fap.strain_hydrostatic"))
    assert "coupled_parameters" in _faults(ActionKind.LATTICE, "histogram.2.instrument.wavelength", parent=strained)


def test_a_zero_is_told_from_a_cell_that_another_histogram_gives() -> None:
    short = {"histogram.2.range.two_theta_min": 20.0, "histogram.2.range.two_theta_max": 24.0}
    free = _several(("phase.fap.cell",), features=short)
    assert "coupled_parameters" not in _faults(ActionKind.ZERO, "histogram.2.instrument.zero", parent=free)
    short |= {"histogram.1.range.two_theta_min": 20.0, "histogram.1.range.two_theta_max": 24.0}
    both = _several(("phase.fap.cell", "histogram.1.instrument.zero"), features=short)
    assert "coupled_parameters" in _faults(ActionKind.ZERO, "histogram.2.instrument.zero", parent=both)


@pytest.mark.parametrize(
    ("features", "code"),
    [
        ({"histogram.2.rwp": 0.125}, "rwp_increased"),
        ({"histogram.2.unexplained_peak_ratio": 0.03}, "unexplained_peaks_increased"),
    ],
)
def test_one_histogram_does_not_pay_for_another(features: dict[str, float], code: str) -> None:
    wanted = action(ActionKind.LATTICE, ("phase.fap.cell",))
    better = {"rwp": 0.09, "rexp": 0.05}
    for changed, refused in ((features, True), ({}, False)):
        candidate = _several(features=changed, **better)
        decision = judge(wanted, _several(), candidate, preflight=passed(), policy=POLICY)
        assert (code in decision.reasons) is refused


def test_a_peak_of_another_histogram_is_no_excuse_for_a_new_one() -> None:
    def peak(histogram: str) -> UnexplainedPeak:
        return UnexplainedPeak(
            two_theta_deg=30.0, d_angstrom=2.97, area=1, area_share=0.05, significance=9, histogram=histogram
        )

    wanted = action(ActionKind.LATTICE, ("phase.fap.cell",))
    before = _several(unexplained_peaks=[peak("1")])
    for histogram, refused in (("1", False), ("2", True)):
        after = _several(unexplained_peaks=[peak(histogram)], rwp=0.09)
        decision = judge(wanted, before, after, preflight=passed(), policy=POLICY)
        assert ("new_unexplained_peak" in decision.reasons) is refused


def test_records_of_one_histogram_are_as_they_were() -> None:
    peak = UnexplainedPeak(two_theta_deg=30.0, d_angstrom=3.0, area=1, area_share=0.01, significance=9)
    assert "histogram" not in peak.model_dump(mode="json")
    assert UnexplainedPeak.model_validate(peak.model_dump(mode="json")) == peak


def test_limits_of_a_displacement_parameter_are_not_those_off_the_diagonal() -> None:
    atom = "phase.fap.atom.Ca1"
    names = (*OF_SAMPLE, f"{atom}.y", f"{atom}.z", f"{atom}.u11", f"{atom}.u12")
    free = names[-2:]
    limits = [Bound(selector="phase.fap.uiso", lower=0.0, upper=0.1)]
    wanted = action(ActionKind.DISPLACEMENT_PARAMETERS, ("phase.fap.uiso",), bounds=limits)
    for u11, u12, refused in ((0.01, -0.004, False), (-0.01, 0.004, True)):
        values = {f"{atom}.u11": u11, f"{atom}.u12": u12}
        candidate = state(names=names, values=values, free=free, rwp=0.09)
        decision = judge(wanted, state(names=names), candidate, preflight=passed(), policy=POLICY)
        assert ("bound_not_honoured" in decision.reasons) is refused
