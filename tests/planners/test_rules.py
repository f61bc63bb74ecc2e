"""The expert's rules on graphs made by hand: what it proposes, what it learns, when it ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autoxrd.domain.action import Action, ActionKind
from autoxrd.domain.decision import Decision
from autoxrd.domain.instrument import ANODE_LINES, EmissionLine, FlightBank, Geometry, Instrument, Radiation
from autoxrd.domain.state import (
    Complexity,
    Convergence,
    Feature,
    FitState,
    MeasuredValue,
    ParameterValue,
    PhaseSummary,
    Quality,
    Violation,
)
from autoxrd.domain.structure import AtomSite, CrystalStructure, UnitCell
from autoxrd.gates.policy import load_policy
from autoxrd.gates.preflight import known_parameters, preflight
from autoxrd.planners.protocol import AttemptView, Finish, GraphView, JobContext, Proposal
from autoxrd.planners.rules import RulesPlanner
from autoxrd.planners.rules.catalogue import CURRICULUM
from autoxrd.planners.rules.document import planner_page
from autoxrd.planners.rules.options import options_of
from autoxrd.planners.rules.thresholds import Thresholds

CELL = UnitCell(4.0, 4.0, 4.0, 90.0, 90.0, 90.0)


def _atom(label: str, element: str, x: float) -> AtomSite:
    return AtomSite(label=label, species=element, element=element, x=x, y=0.0, z=0.0, occupancy=0.5)


STRUCTURE = CrystalStructure(
    name="P",
    title="P",
    space_group="P m -3 m",
    space_group_number=221,
    operations=("x,y,z",),
    cell=CELL,
    atoms=(_atom("La", "La", 0.0), _atom("Ba", "Ba", 0.0), _atom("Co", "Co", 0.5)),
)
INSTRUMENT = Instrument(
    radiation=Radiation.XRAY, geometry=Geometry.DEBYE_SCHERRER, lines=(EmissionLine(0.8),), profile_calibrated=False
)
CONTEXT = JobContext(instrument=INSTRUMENT, structures=(STRUCTURE,))
REJECTED = Decision(
    accepted=False,
    numerically_better=None,
    mechanism_supported=None,
    admissible=None,
    reasons=("test",),
    policy_name="t",
    policy_hash="t",
)
ACCEPTED = REJECTED.model_copy(update={"accepted": True, "reasons": ()})


def _state(gains: dict[str, float], *, released: tuple[str, ...] = (), rwp: float = 0.2, **more: object) -> FitState:
    features = {
        f"release_gain.{name}": Feature(value=value, significance=1000 * value, n_used=1)
        for name, value in gains.items()
    }
    features |= dict(more.pop("features", {}))  # type: ignore[call-overload]
    quality = Quality(
        rp=rwp, rwp=rwp, rexp=0.05, gof=rwp / 0.05, chi2=1e4, rwp_no_background=rwp, n_points=1000, n_parameters=1,
        abs_residual=0.1,
    )  # fmt: skip
    state = FitState(
        stage="instrument",
        engine="test",
        engine_version="0",
        snapshot="s",
        arrays="a",
        quality=quality,
        features=features,
        violations=(),
        complexity=Complexity(n_free=1, n_points=1000),
        convergence=Convergence(converged=True, cycles=1, max_shift_over_esd=0.5),
        parameters=(),
        phases=(PhaseSummary(name="P", space_group="P m -3 m", weight_fraction=None, cell={}, intensity_share=1.0),),
        released=released,
    )
    return state.model_copy(update=more)


def _view(*states: tuple[str, FitState], attempts: tuple[AttemptView, ...] = ()) -> GraphView:
    return GraphView(root=states[0][0], states=dict(states), attempts=attempts)


def _proposed(view: GraphView, context: JobContext = CONTEXT) -> Action:
    proposal = RulesPlanner().propose(view, context)
    assert isinstance(proposal, Proposal)
    return proposal.action


LINEAR = ("background", "phase.P.scale")


def test_linear_parameters_come_first_however_small_their_gain() -> None:
    action = _proposed(_view(("root", _state({"background": 1e-5, "phase.P.scale": 1e-9, "phase.P.cell": 0.5}))))
    assert set(action.parameters) == set(LINEAR)
    assert action.kind is ActionKind.BACKGROUND


def _after_linear(state: FitState, *more: AttemptView, extra: tuple[tuple[str, FitState], ...] = ()) -> GraphView:
    first = _proposed(_view(("root", _state({"background": 0.1, "phase.P.scale": 0.1}))))
    step = AttemptView(1, "root", first, ACCEPTED, "s1")
    return _view(("root", _state({})), ("s1", state), *extra, attempts=(step, *more))


def test_the_cause_that_explains_the_offsets_goes_before_the_larger_linear_gain() -> None:
    alone = {
        "position.rms": Feature(value=0.8, significance=100.0),
        "position.alone.cell": Feature(value=1e-3, significance=90.0),
        "position.alone.zero": Feature(value=0.01, significance=40.0),
    }
    state = _state({"instrument.zero": 0.6, "phase.P.cell": 0.5}, released=LINEAR, features=alone)
    assert _proposed(_after_linear(state)).kind is ActionKind.LATTICE


@pytest.mark.parametrize("rms", [0.9, 0.1])
def test_a_scale_that_was_refused_is_tried_again_once_lines_are_in_place(rms: float) -> None:
    gains = {"background": 0.1, "phase.P.scale": 0.1, "phase.Q.scale": 0.05}
    root = _two(_state(gains), 0.5)
    whole = _proposed(_view(("root", root)))
    assert "phase.Q.scale" in whole.parameters
    at_zero = Violation(code="at_bound", subject="phase.Q.scale")
    bad = root.model_copy(update={"violations": (at_zero,)})
    refused = AttemptView(1, "root", whole, REJECTED, "bad")
    less = _proposed(_view(("root", root), ("bad", bad), attempts=(refused,)))
    assert set(less.parameters) == set(LINEAR)
    place = {"position.rms": Feature(value=rms, significance=50.0)}
    state = _two(_state({"phase.Q.scale": 0.05}, released=LINEAR, features=place), 0.5)
    done = AttemptView(2, "root", less, ACCEPTED, "s1")
    view = _view(("root", root), ("bad", bad), ("s1", state), attempts=(refused, done))
    action = _proposed(view)
    assert (action.parameters == ("phase.Q.scale",)) is (rms < 0.3)
    assert (action.kind is ActionKind.JOINT) is (rms > 0.3)


def test_insignificant_gains_end_in_a_joint_cycle_and_then_in_the_end() -> None:
    state = _state({"phase.P.cell": 1e-5, "profile.W": 2e-4}, released=LINEAR)
    view = _after_linear(state)
    action = _proposed(view)
    assert action.kind is ActionKind.JOINT
    assert set(action.parameters) == set(LINEAR)
    joined = AttemptView(2, "s1", action, ACCEPTED, "s2")
    end = RulesPlanner().propose(_after_linear(state, joined, extra=(("s2", state),)), CONTEXT)
    assert isinstance(end, Finish)
    assert end.state == "s2"


def test_a_cell_from_a_chosen_wavelength_is_told_to_depend_on_it() -> None:
    state = _state({}, released=(*LINEAR, "phase.P.cell"))
    cell = {"a": MeasuredValue(value=4.0, esd=0.001)}
    state = state.model_copy(update={"phases": (state.phases[0].model_copy(update={"cell": cell}),)})
    joint = _proposed(_after_linear(state))
    for lines, told in ((ANODE_LINES["Cu"], []), ((EmissionLine(2.0),), ["cell_depends_on_wavelength"])):
        context = replace(CONTEXT, instrument=replace(INSTRUMENT, lines=lines))
        end = RulesPlanner().propose(_after_linear(state, AttemptView(2, "s1", joint, REJECTED, None)), context)
        assert isinstance(end, Finish)
        assert [code for code, _ in end.notes] == told
    assert "P a by 0.0020 angstrom" in end.notes[0][1]


def test_a_cell_over_the_time_of_flight_is_told_to_depend_on_difc() -> None:
    bank = replace(
        INSTRUMENT,
        radiation=Radiation.NEUTRON,
        lines=(),
        flight=FlightBank(two_theta_deg=90.0, path_m=60.0, dif_c=22600.0),
    )
    for released, told in (
        ((*LINEAR, "phase.P.cell"), ["difc_or_cell_ambiguous"]),
        ((*LINEAR, "phase.P.cell", "instrument.difC"), []),
        (LINEAR, []),
    ):
        state = _state({}, released=released)
        joint = _proposed(_after_linear(state))
        view = _after_linear(state, AttemptView(2, "s1", joint, REJECTED, None))
        end = RulesPlanner().propose(view, replace(CONTEXT, instrument=bank))
        assert isinstance(end, Finish)
        assert [code for code, _ in end.notes] == told


def test_a_refused_joint_cycle_ends_the_job_too() -> None:
    state = _state({}, released=LINEAR)
    joint = _proposed(_after_linear(state))
    end = RulesPlanner().propose(_after_linear(state, AttemptView(2, "s1", joint, REJECTED, None)), CONTEXT)
    assert isinstance(end, Finish)
    assert end.state == "s1"


def test_nothing_is_proposed_twice_from_one_state() -> None:
    state = _state({"phase.P.cell": 0.3, "phase.P.size": 0.2}, released=LINEAR)
    seen: list[frozenset[str]] = []
    attempts: list[AttemptView] = []
    for ordinal in range(2, 12):
        proposal = RulesPlanner().propose(_after_linear(state, *attempts), CONTEXT)
        if isinstance(proposal, Finish):
            break
        names = frozenset(proposal.action.parameters)
        assert names not in seen
        seen.append(names)
        attempts.append(AttemptView(ordinal, "s1", proposal.action, REJECTED, None))
    else:
        pytest.fail("the planner never ended")
    assert len(seen) == 3  # the cell, the size, the joint cycle


@pytest.mark.parametrize(
    ("freed", "kind"),
    [("sample.transparency", ActionKind.ASYMMETRY), ("phase.P.size", ActionKind.JOINT)],
)
def test_a_refused_asymmetry_waits_for_another_effect_that_moves_lines(freed: str, kind: ActionKind) -> None:
    asked = _state({"profile.SH/L": 0.08, freed: 0.05}, released=(*LINEAR, "phase.P.cell"))
    refused = AttemptView(2, "s1", _proposed(_after_linear(asked)), REJECTED, None)
    assert refused.action.parameters == ("profile.SH/L",)
    other = AttemptView(3, "s1", _proposed(_after_linear(asked, refused)), ACCEPTED, "s2")
    after = _state({"profile.SH/L": 0.07}, released=(*LINEAR, "phase.P.cell", freed))
    view = _after_linear(asked, refused, other, extra=(("s2", after),))
    assert (_proposed(view).kind, _proposed(view).parent) == (kind, "s2")


def test_what_made_a_candidate_faulty_is_left_out_of_the_next_try() -> None:
    gains = {f"phase.P.atom.{label}.uiso": 0.1 for label in ("La", "Ba", "Co")}
    state = _state(gains, released=LINEAR)
    action = _proposed(_after_linear(state))
    assert len(action.parameters) == 3
    fault = Violation(code="at_bound", subject="phase.P.atom.Co.uiso")
    bad = state.model_copy(update={"violations": (fault,)})
    view = _after_linear(state, AttemptView(2, "s1", action, REJECTED, "bad"), extra=(("bad", bad),))
    assert set(_proposed(view).parameters) == {"phase.P.atom.La.uiso", "phase.P.atom.Ba.uiso"}


def _with_uiso(state: FitState, value: float, *, at_bound: bool) -> FitState:
    name = "phase.P.atom.Co.uiso"
    uiso = ParameterValue(name=name, value=value, esd=0.001, unit="angstrom^2", released=True, lower=0.0, upper=0.1)
    faults = (Violation(code="at_bound", subject=name),) if at_bound else ()
    return state.model_copy(update={"parameters": (uiso,), "violations": faults})


def test_a_shared_displacement_parameter_at_its_limit_is_left_out_of_the_next_try() -> None:
    features = {
        f"release_gain.phase.{name}.uiso{end}": Feature(value=0.1, significance=100.0, n_used=1)
        for name in ("P", "Q")
        for end in ("", "@equal")
    }
    state = _state({}, released=(*LINEAR, "phase.Q.scale"), features=features)
    other = state.phases[0].model_copy(update={"name": "Q"})
    state = state.model_copy(update={"phases": (state.phases[0], other)})
    action = _proposed(_after_linear(state))
    assert set(action.parameters) == {"phase.P.uiso", "phase.Q.uiso"}
    bad = _with_uiso(state, 0.0, at_bound=True)
    view = _after_linear(state, AttemptView(2, "s1", action, REJECTED, "bad"), extra=(("bad", bad),))
    assert _proposed(view).parameters == ("phase.Q.uiso",)


@pytest.mark.parametrize(
    ("value", "at_bound", "geometry", "told"),
    [
        (0.0, True, Geometry.BRAGG_BRENTANO, True),
        (0.1, True, Geometry.BRAGG_BRENTANO, False),
        (0.0, False, Geometry.BRAGG_BRENTANO, False),
        (0.0, True, Geometry.DEBYE_SCHERRER, False),
    ],
)
def test_displacement_parameters_that_fall_to_zero_tell_of_intensity_lost_at_low_angles(
    value: float, at_bound: bool, geometry: Geometry, told: bool
) -> None:
    gains = {"phase.P.atom.Co.uiso": 0.1}
    state = _state(gains, released=LINEAR)
    action = _proposed(_after_linear(state))
    bad = _with_uiso(state, value, at_bound=at_bound)
    refused = AttemptView(2, "s1", action, REJECTED, "bad")
    joint = _proposed(_after_linear(state, refused, extra=(("bad", bad),)))
    done = AttemptView(3, "s1", joint, ACCEPTED, "s2")
    view = _after_linear(state, refused, done, extra=(("bad", bad), ("s2", state)))
    end = RulesPlanner().propose(view, replace(FLAT, instrument=replace(FLAT.instrument, geometry=geometry)))
    assert isinstance(end, Finish)
    assert [code for code, _ in end.warnings] == (["low_angle_intensity_loss"] if told else [])


PLACE = {"x": 0.5, "y": 0.0, "z": 0.0}


def test_what_was_refused_beside_a_phase_that_left_is_tried_again() -> None:
    alone = _state({"phase.P.cell": 0.3}, released=LINEAR)
    both = _two(alone, 0.9)
    refused = _proposed(_after_linear(both))
    again = [AttemptView(n, "s1", refused, REJECTED, None) for n in (2, 3, 4)]
    assert _proposed(_after_linear(both, *again)).kind is ActionKind.JOINT
    removal = refused.model_copy(update={"kind": ActionKind.REMOVE_PHASE, "settings": {"phase": "Q"}})
    gone = AttemptView(5, "s1", removal, ACCEPTED, "s2")
    assert _proposed(_after_linear(both, *again, gone, extra=(("s2", alone),))).parameters == ("phase.P.cell",)


def _two(state: FitState, share: float) -> FitState:
    """P beside another phase, P with a share of the intensity."""
    mine = state.phases[0].model_copy(update={"intensity_share": share})
    other = state.phases[0].model_copy(update={"name": "Q", "intensity_share": 1.0 - share})
    return state.model_copy(update={"phases": (mine, other)})


SCALES = {"phase.P.scale": 0.05, "phase.Q.scale": 0.02}
NEAR = {"position.rms": Feature(value=0.05, significance=50.0)}


def test_a_scale_is_asked_alone_where_those_of_all_phases_were_refused() -> None:
    state = _two(_state(SCALES, released=("background",), features=NEAR), 0.5)
    both = _proposed(_after_linear(state), FLAT)
    assert set(both.parameters) == set(SCALES)
    refused = [AttemptView(2, "s1", both, REJECTED, None)]
    for expected in SCALES:  # the larger gain first
        alone = _proposed(_after_linear(state, *refused), FLAT)
        assert alone.parameters == (expected,)
        refused.append(AttemptView(2 + len(refused), "s1", alone, REJECTED, None))
    assert _proposed(_after_linear(state, *refused), FLAT).kind is ActionKind.JOINT


def test_what_a_scale_taught_is_forgotten_once_the_lines_of_its_phase_were_placed() -> None:
    state = _two(_state(SCALES, released=("background",), features=NEAR), 0.5)
    both = _proposed(_after_linear(state), FLAT)
    attempts = [AttemptView(2, "s1", both, REJECTED, None)]
    alone = _proposed(_after_linear(state, *attempts), FLAT)
    attempts.append(AttemptView(3, "s1", alone, REJECTED, None))
    cell = alone.model_copy(update={"kind": ActionKind.LATTICE, "parameters": ("phase.P.cell",)})
    attempts.append(AttemptView(4, "s1", cell, ACCEPTED, "s4"))
    gains = {"phase.P.scale": 0.01, "phase.Q.scale": 0.0}  # much less than it promised before
    placed = _two(_state(gains, released=("background", "phase.P.cell"), features=NEAR), 0.5)
    view = _after_linear(state, *attempts, extra=(("s4", placed),))
    assert _proposed(view, FLAT).parameters == ("phase.P.scale",)


@pytest.mark.parametrize("share", [0.2, 0.6, 0.9])
def test_atoms_of_a_mixture_stay_near_their_place_except_in_a_phase_that_rules_the_pattern(share: float) -> None:
    gains = {"phase.P.atom.Co.position": 0.5, "phase.P.atom.La.occupancy": 0.4}
    action = _proposed(_after_linear(_two(_state(gains, released=LINEAR), share)), FLAT)
    assert action.kind is ActionKind.POSITIONS
    # a = 4 angstrom, Co at x = 0.5: 0.1 angstrom either way
    limits = {b.selector: (b.lower, b.upper) for b in action.bounds}
    assert limits == ({} if share > 0.8 else {f"phase.P.atom.Co.{k}": (v - 0.025, v + 0.025) for k, v in PLACE.items()})


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_occupancies_of_a_mixture_stay_as_given_except_in_a_phase_that_rules_the_pattern(share: float) -> None:
    state = _two(_state({"phase.P.atom.La.occupancy": 0.4}, released=LINEAR), share)
    action = _proposed(_after_linear(state), FLAT)
    assert action.kind is (ActionKind.OCCUPANCY if share > 0.8 else ActionKind.JOINT)


@pytest.mark.parametrize(("rough", "kind"), [(0.3, ActionKind.ABSORPTION), (0.2, ActionKind.DISPLACEMENT_PARAMETERS)])
def test_a_rough_surface_must_explain_more_than_displacement_parameters(rough: float, kind: ActionKind) -> None:
    gains = {"sample.roughness": rough, "phase.P.uiso": 0.25, "phase.P.uiso@equal": 0.25}
    state = _state(gains, released=LINEAR)
    action = _proposed(_after_linear(state), FLAT)
    assert action.kind is kind
    if kind is ActionKind.ABSORPTION:
        known = known_parameters(state)
        assert "sample.roughness" in known
        checks = preflight(action, state, "s1", policy=load_policy("default"), known_parameters=known)
        assert [c.text for c in checks if not c.passed] == []


def test_a_rough_surface_is_tried_where_displacement_parameters_went_to_zero() -> None:
    gains = {"sample.roughness": 0.1, "phase.P.uiso": 0.25, "phase.P.uiso@equal": 0.25}
    state = _state(gains, released=LINEAR)
    action = _proposed(_after_linear(state), FLAT)
    assert action.kind is ActionKind.DISPLACEMENT_PARAMETERS
    bad = _with_uiso(state, 0.0, at_bound=True)
    view = _after_linear(state, AttemptView(2, "s1", action, REJECTED, "bad"), extra=(("bad", bad),))
    assert _proposed(view, FLAT).parameters == ("sample.roughness",)


WIDTHS = ("phase.P.size", "phase.P.strain")


def test_a_strain_that_is_free_gets_a_direction_where_that_pays() -> None:
    gains = {"phase.P.strain": 0.0, "phase.P.strain@generalised": 0.2}
    state = _state(gains, released=(*LINEAR, *WIDTHS))
    free = ParameterValue(name="phase.P.strain", value=0.2, esd=0.01, released=True, lower=0.0, upper=3.0)
    state = state.model_copy(update={"parameters": (free,)})
    action = _proposed(_after_linear(state), FLAT)
    assert (action.kind, action.parameters) == (ActionKind.SIZE_STRAIN, ("phase.P.strain",))
    assert action.settings == {"phase": "P", "effect": "strain", "model": "generalised"}
    known = known_parameters(state)
    checks = preflight(action, state, "s1", policy=load_policy("default"), known_parameters=known)
    assert [c.text for c in checks if not c.passed] == []
    # refused once, it is not proposed from here again; an isotropic one that was refused is another matter
    view = _after_linear(state, AttemptView(2, "s1", action, REJECTED, None))
    assert _proposed(view, FLAT).kind is ActionKind.JOINT
    plain = action.model_copy(update={"settings": {}})
    view = _after_linear(state, AttemptView(2, "s1", plain, REJECTED, None))
    assert _proposed(view, FLAT).settings == action.settings


@pytest.mark.parametrize(("presence", "number"), [(2.0, 0), (30.0, 1)])
def test_a_phase_that_the_data_do_not_show_gets_no_direction(presence: float, number: int) -> None:
    gains = {"phase.P.strain@generalised": 0.2, "phase.P.strain": 0.0}
    seen = {"presence.P": Feature(value=presence)}
    state = _two(_state(gains, released=(*LINEAR, *WIDTHS), features=seen), 0.5)
    rule = next(rule for rule in CURRICULUM if rule.name == "directed_strain")
    assert len(options_of(rule, state, FLAT, Thresholds())) == number


def test_a_minor_phase_gets_no_direction() -> None:
    state = _two(_state({"phase.P.strain@generalised": 0.2, "phase.P.strain": 0.0}, released=(*LINEAR, *WIDTHS)), 0.01)
    assert _proposed(_after_linear(state), FLAT).kind is ActionKind.JOINT


@pytest.mark.parametrize(("depth", "phases", "told"), [(0.1, 2, True), (0.1, 1, False), (0.01, 2, False)])
def test_a_modelled_loss_at_low_angles_is_told_of_a_mixture(depth: float, phases: int, told: bool) -> None:
    state = _state({}, released=(*LINEAR, "sample.roughness"))
    rough = ParameterValue(name="sample.roughness", value=depth, esd=0.002, released=True)
    state = state.model_copy(update={"parameters": (rough,)})
    state = _two(state, 0.5) if phases == 2 else state
    joint = _proposed(_after_linear(state), FLAT)
    view = _after_linear(state, AttemptView(2, "s1", joint, ACCEPTED, "s2"), extra=(("s2", state),))
    end = RulesPlanner().propose(view, FLAT)
    assert isinstance(end, Finish)
    assert [code for code, _ in end.warnings] == (["low_angle_intensity_loss"] if told else [])
    # exp(-0.1 / sin 12.5) / exp(-0.1 / sin 45) = 0.726
    assert all("weaker by 27 %" in text for _, text in end.warnings)


def test_only_one_species_of_a_shared_site_and_no_full_site_gets_an_occupancy() -> None:
    gains = {f"phase.P.atom.{label}.occupancy": 0.3 for label in ("La", "Ba", "Co")}
    action = _proposed(_after_linear(_state(gains, released=LINEAR)))
    assert action.kind is ActionKind.OCCUPANCY
    assert action.parameters == ("phase.P.atom.La.occupancy",)


def test_an_occupancy_excludes_the_displacement_parameter_of_its_atom() -> None:
    state = _state({"phase.P.atom.La.uiso": 0.3}, released=(*LINEAR, "phase.P.atom.La.occupancy"))
    assert _proposed(_after_linear(state)).kind is ActionKind.JOINT


def test_an_atom_that_no_action_can_name_is_passed_over() -> None:
    state = _state({"phase.P.atom.O 1.uiso": 0.3}, released=LINEAR)
    assert _proposed(_after_linear(state)).kind is ActionKind.JOINT


def test_a_minor_phase_keeps_its_atoms() -> None:
    minor = PhaseSummary(name="P", space_group="P m -3 m", weight_fraction=None, cell={}, intensity_share=0.02)
    state = _state({"phase.P.atom.Co.uiso": 0.3}, released=LINEAR, phases=(minor,))
    assert _proposed(_after_linear(state)).kind is ActionKind.JOINT


def test_every_proposal_passes_preflight() -> None:
    gains = {
        "phase.P.cell": 0.3, "profile.W": 0.2, "profile.U": 0.1, "profile.V": 0.1, "phase.P.size": 0.2,
        "phase.P.strain": 0.1, "profile.SH/L": 0.1, "phase.P.atom.Co.uiso": 0.1,
    }  # fmt: skip
    known = ["background.0", "phase.P.scale", "phase.P.cell.a", "profile.W", "profile.U", "profile.V", "profile.S/L",
             "profile.H/L", "phase.P.size", "phase.P.strain", "phase.P.atom.Co.uiso"]  # fmt: skip
    state = _state(gains, released=LINEAR)
    view = _after_linear(state)
    seen = 0
    while True:
        proposal = RulesPlanner().propose(view, CONTEXT)
        if isinstance(proposal, Finish):
            break
        checks = preflight(proposal.action, state, "s1", policy=load_policy("default"), known_parameters=known)
        assert all(c.passed for c in checks), [(c.rule, c.text) for c in checks if not c.passed]
        step = AttemptView(len(view.attempts) + 1, "s1", proposal.action, REJECTED, None)
        view = replace(view, attempts=[*view.attempts, step])
        seen += 1
    assert seen >= 5


FLAT = replace(CONTEXT, instrument=replace(INSTRUMENT, geometry=Geometry.BRAGG_BRENTANO))


def _displaced(chi2: float, **gains: float) -> FitState:
    free = (*LINEAR, "sample.displacement", "phase.P.cell")
    state = _state({name.replace("_", "."): value for name, value in gains.items()}, released=free, rwp=0.1)
    return state.model_copy(update={"quality": state.quality.model_copy(update={"chi2": chi2})})


def test_the_finished_model_is_asked_once_with_the_rival_position_model() -> None:
    view = _after_linear(_displaced(9000.0, instrument_zero=1e-4))
    rival = _proposed(view, FLAT)
    assert (rival.kind, rival.parameters) == (ActionKind.ZERO, ("instrument.zero",))
    assert rival.instead_of == ("sample.displacement",)
    better = _displaced(8000.0)
    refused = replace(
        view,
        attempts=[*view.attempts, AttemptView(2, "s1", rival, REJECTED, "z")],
        states={**view.states, "z": better},
    )
    assert _proposed(refused, FLAT).kind is ActionKind.JOINT
    taken = replace(refused, attempts=[*view.attempts, AttemptView(2, "s1", rival, ACCEPTED, "z")])
    assert (_proposed(taken, FLAT).kind, _proposed(taken, FLAT).parent) == (ActionKind.JOINT, "z")


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("sample.displacement", 0.0, 10.0),
        # 0.1 mm at R = 217.5 mm is 0.0456 deg: (0.0456 / 0.02)^2 less 1
        ("sample.displacement", 0.1, 10.0 + 4.2),
        ("instrument.zero", -0.0456, 10.0 - 4.2),
        ("instrument.zero", 0.2, 1.0),
    ],
)
def test_a_rival_that_is_less_usual_must_fit_better_by_more(name: str, value: float, wanted: float) -> None:
    free, other = (*LINEAR, name, "phase.P.cell"), {"sample.displacement", "instrument.zero"} - {name}
    state = _state({other.pop(): 1e-4}, released=free, rwp=0.1)
    present = ParameterValue(name=name, value=value, esd=0.001, unit="", released=True)
    context = replace(FLAT, instrument=replace(FLAT.instrument, goniometer_radius_mm=217.5))
    rival = _proposed(_after_linear(state.model_copy(update={"parameters": (present,)})), context)
    effect = next(p.minimum_effect for p in rival.predictions if p.metric == "rwp")
    share = 1.0 - (1.0 - effect / 0.1) ** 2
    points = state.quality.n_points - state.quality.n_parameters
    assert share * points / 2.5**2 == pytest.approx(wanted, rel=0.02)


def test_a_rival_is_not_asked_where_it_could_not_differ() -> None:
    assert _proposed(_after_linear(_displaced(9000.0)), FLAT).kind is ActionKind.JOINT
    assert _proposed(_after_linear(_displaced(9000.0, instrument_zero=1e-4))).kind is ActionKind.JOINT


@pytest.mark.parametrize(
    ("equal", "every", "phases", "expected"),
    [
        (0.09, 0.10, 1, ("phase.P.uiso",)),  # 10 more for one parameter: nothing that tells the atoms apart
        (0.09, 0.16, 1, ("phase.P.atom.Co.uiso", "phase.P.atom.La.uiso")),
        (0.09, 0.16, 2, ("phase.P.uiso",)),  # among other phases a split must be beyond doubt
        (0.09, 0.30, 2, ("phase.P.atom.Co.uiso", "phase.P.atom.La.uiso")),
    ],
)
def test_atoms_get_displacement_parameters_of_their_own_where_the_data_tell_them_apart(
    equal: float, every: float, phases: int, expected: tuple[str, ...]
) -> None:
    summaries = tuple(
        PhaseSummary(name=name, space_group="P 1", weight_fraction=None, cell={}, intensity_share=0.5)
        for name in ("P", "Q")[:phases]
    )
    gains = {
        "phase.P.uiso": Feature(value=every, significance=500 * every, n_used=2),
        "phase.P.uiso@equal": Feature(value=equal, significance=1000 * equal, n_used=1),
        "phase.P.atom.La.uiso": Feature(value=0.05, significance=50.0, n_used=1),
        "phase.P.atom.Co.uiso": Feature(value=0.05, significance=50.0, n_used=1),
    }
    named = {f"release_gain.{name}": feature for name, feature in gains.items()}
    action = _proposed(_after_linear(_state({}, released=LINEAR, phases=summaries, features=named)))
    assert action.kind is ActionKind.DISPLACEMENT_PARAMETERS
    assert action.parameters == expected
    assert ("equal" in action.settings) == (expected == ("phase.P.uiso",))
    if "equal" in action.settings:
        assert action.evidence[0].feature == "release_gain.phase.P.uiso@equal"


@pytest.mark.parametrize(
    ("gain", "phases", "share", "parted"),
    [
        (0.024, 1, 1.0, False),  # 24 for one parameter, and another phase or its share ask for more
        (0.03, 1, 1.0, True),
        (0.03, 2, 0.5, False),
        (0.12, 2, 0.5, True),
        (0.12, 2, 0.05, False),
    ],
)
def test_atoms_that_share_a_displacement_parameter_are_parted_where_it_pays(
    gain: float, phases: int, share: float, parted: bool
) -> None:
    state = _state(
        {},
        released=(*LINEAR, "phase.P.uiso"),
        phases=tuple(
            PhaseSummary(name=name, space_group="P 1", weight_fraction=None, cell={}, intensity_share=share)
            for name in ("P", "Q")[:phases]
        ),
        features={"release_gain.phase.P.uiso@apart": Feature(value=gain, significance=1000 * gain, n_used=1)},
    )
    action = _proposed(_after_linear(state))
    if not parted:
        assert action.kind is ActionKind.JOINT
        return
    assert (action.kind, action.parameters) == (ActionKind.DISPLACEMENT_PARAMETERS, ("phase.P.uiso",))
    assert action.settings == {"apart": "P"}
    assert action.evidence[0].feature == action.predictions[0].metric == "release_gain.phase.P.uiso@apart"
    # from the same state it is not tried again
    refused = AttemptView(2, "s1", action, REJECTED, None)
    assert _proposed(_after_linear(state, refused)).kind is ActionKind.JOINT
    known = known_parameters(state)
    checks = preflight(action, state, "s1", policy=load_policy("default"), known_parameters=known)
    assert [c.text for c in checks if not c.passed and c.rule == "preflight.predictions"] == []


def test_the_page_about_the_planner_is_made_from_its_tables() -> None:
    page = (Path(__file__).parents[2] / "docs" / "planner.md").read_text(encoding="utf-8")
    assert page == planner_page(), "renew it: python -m autoxrd.planners.rules.document > docs/planner.md"
    assert all(f"`{rule.name}`" in page for rule in CURRICULUM)


@pytest.mark.parametrize(
    ("reachable", "share", "first"),
    [
        (0.05, 100, "looks at intensities first"),
        (0.19, 10, "looks at line shapes, background"),
        (0.3, 0, "line shapes"),
    ],
)
def test_the_end_says_whether_intensities_or_line_shapes_are_left(reachable: float, share: int, first: str) -> None:
    features = {"reachable_rwp": Feature(value=reachable)}
    # of 0.2^2 - 0.05^2 beyond noise, 0.2^2 - reachable^2 goes with free intensities
    text = dict(_end_of(_state({}, features=features)).notes)["misfit_left"]
    assert f"at most {share} % of the squared misfit" in text
    assert first in text


def test_what_no_profile_match_told_or_noise_explains_is_not_parted() -> None:
    assert "misfit_left" not in dict(_end_of(_state({})).notes)
    noise = _state({}, rwp=0.055, features={"reachable_rwp": Feature(value=0.051)})
    assert "misfit_left" not in dict(_end_of(noise).notes)


def _end_of(state: FitState) -> Finish:
    """Return how the planner ends a job whose closing joint cycle gave a state."""
    state = state.model_copy(update={"released": LINEAR})
    joined = AttemptView(2, "s1", _proposed(_after_linear(state)), ACCEPTED, "s2")
    end = RulesPlanner().propose(_after_linear(state, joined, extra=(("s2", state),)), CONTEXT)
    assert isinstance(end, Finish)
    return end


CALIBRATED = replace(CONTEXT, instrument=replace(INSTRUMENT, profile_calibrated=True))
WIDTHS = ("profile.U", "profile.V", "profile.W")
TEXTURE = "phase.P.preferred_orientation"


def _trading(state: FitState, *pair: str, rwp: float) -> FitState:
    """A candidate in which two parameters correlate too highly."""
    quality = state.quality.model_copy(update={"rwp": rwp})
    entangled = Complexity(n_free=1, n_points=1000, max_correlation=0.999, max_correlation_pair=pair)
    return state.model_copy(update={"quality": quality, "complexity": entangled})


def _too_high(number: int, parent: str, action: Action, candidate: str) -> AttemptView:
    decision = REJECTED.model_copy(update={"reasons": ("correlation_too_high",)})
    return AttemptView(number, parent, action, decision, candidate)


def test_of_two_widths_that_trade_with_each_other_the_more_promising_is_asked_again() -> None:
    state = _state({"profile.U": 0.05, "profile.V": 0.1, "profile.W": 0.11}, released=LINEAR)
    action = _proposed(_after_linear(state), CALIBRATED)
    assert action.parameters == WIDTHS
    bad = _trading(state, "profile.V", "profile.W", rwp=0.15)
    view = _after_linear(state, _too_high(2, "s1", action, "bad"), extra=(("bad", bad),))
    assert _proposed(view, CALIBRATED).parameters == ("profile.U", "profile.W")


def _refused_behind_widths(rwp: float) -> GraphView:
    """Widths freed in s2, and texture, with a candidate of this Rwp, refused there for their correlation."""
    before = _state({"profile.W": 0.3, TEXTURE: 0.5}, released=LINEAR)
    widths = _proposed(_after_linear(before), CALIBRATED)
    assert widths.parameters == ("profile.W",)
    free = tuple(ParameterValue(name=name, value=0.1, esd=0.01, released=True) for name in WIDTHS)
    after = _state({TEXTURE: 0.5}, released=(*LINEAR, *WIDTHS)).model_copy(update={"parameters": free})
    done = AttemptView(2, "s1", widths, ACCEPTED, "s2")
    texture = _proposed(_after_linear(before, done, extra=(("s2", after),)), CALIBRATED)
    assert (texture.parameters, texture.parent) == ((TEXTURE,), "s2")
    bad = _trading(after, "profile.V", "profile.W", rwp=rwp)
    return _after_linear(
        before, done, _too_high(3, "s2", texture, "bad"), extra=(("s2", after), ("bad", bad))
    )  # fmt: skip


def test_a_step_that_widths_spoiled_is_asked_from_before_they_were_freed() -> None:
    action = _proposed(_refused_behind_widths(rwp=0.1), CALIBRATED)
    assert (action.parameters, action.parent) == ((TEXTURE,), "s1")
    # a candidate that would have helped little is not worth going back for
    assert _proposed(_refused_behind_widths(rwp=0.19), CALIBRATED).parent == "s2"


@pytest.mark.parametrize(("rwp", "parent"), [(0.12, "s3"), (0.25, "s2")])
def test_a_step_back_stands_only_where_it_fits_better_than_what_it_went_back_behind(rwp: float, parent: str) -> None:
    view = _refused_behind_widths(rwp=0.1)
    action = _proposed(view, CALIBRATED)
    back = _state({"phase.P.size": 0.2}, released=(*LINEAR, TEXTURE), rwp=rwp)
    taken = GraphView(
        view.root, {**view.states, "s3": back}, [*view.attempts, AttemptView(4, "s1", action, ACCEPTED, "s3")]
    )
    assert _proposed(taken, CALIBRATED).parent == parent
