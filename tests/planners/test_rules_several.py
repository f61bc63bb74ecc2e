"""The expert with several histograms: each is asked as if alone, names are full, lengths have one scale."""

from __future__ import annotations

from dataclasses import replace

from autoxrd.domain.action import Action, ActionKind
from autoxrd.domain.decision import Decision
from autoxrd.domain.instrument import ANODE_LINES, EmissionLine, Geometry, Instrument, Radiation
from autoxrd.domain.state import Feature, FitState
from autoxrd.domain.structure import AtomSite, CrystalStructure, UnitCell
from autoxrd.gates.policy import load_policy
from autoxrd.gates.tables import of_mechanism
from autoxrd.planners.protocol import AttemptView, Finish, GraphView, JobContext, Proposal
from autoxrd.planners.rules import RulesPlanner
from tests.gates.factory import state as plain

TUBE = Instrument(Radiation.XRAY, Geometry.BRAGG_BRENTANO, ANODE_LINES["Cu"])
BEAM = Instrument(Radiation.NEUTRON, Geometry.DEBYE_SCHERRER, (EmissionLine(1.909),))
CONTEXT = JobContext(instrument=TUBE, structures=(), histograms={"1": TUBE, "2": BEAM})
PLACED = {f"histogram.{h}.position.rms": 0.1 for h in "12"}
LINEAR = tuple(f"histogram.{h}.{name}" for h in "12" for name in ("background", "phase.fap.scale"))
ACCEPTED = Decision(
    accepted=True, numerically_better=True, mechanism_supported=True, admissible=True, policy_name="t", policy_hash="t"
)


def _state(gains: dict[str, float], released: tuple[str, ...] = (), **features: float) -> FitState:
    made = plain(
        features={"histogram.1.rwp": 0.1, "histogram.2.rwp": 0.1, **PLACED, **features}, released=released, n_free=1
    )
    told = {n: f for n, f in made.features.items() if n.startswith("histogram.")}
    told |= {f"release_gain.{n}": Feature(value=v, significance=5000 * v, n_used=1) for n, v in gains.items()}
    return made.model_copy(update={"features": told})


def _proposed(state: FitState, *attempts: AttemptView, states: tuple[tuple[str, FitState], ...] = ()) -> Action:
    tip = attempts[-1].candidate or "root" if attempts else "root"
    every = dict(states) | {tip: state} if attempts else {"root": state}
    proposal = RulesPlanner().propose(GraphView("root", every, attempts), CONTEXT)
    assert isinstance(proposal, Proposal)
    return proposal.action


def _after_linear(state: FitState) -> Action:
    gains = dict.fromkeys(LINEAR, 0.1)
    root = _state(gains)
    first = _proposed(root)
    steps = (AttemptView(1, "root", first, ACCEPTED, "s1"),)
    middle = _state(gains, first.parameters)
    second = _proposed(middle, *steps, states=(("root", root),))
    steps = (*steps, AttemptView(2, "s1", second, ACCEPTED, "s2"))
    return _proposed(state, *steps, states=(("root", root), ("s1", middle)))


def test_every_histogram_gets_its_linear_parameters_first() -> None:
    gains = dict.fromkeys(LINEAR, 0.1) | {"phase.fap.cell": 0.9}
    first = _proposed(_state(gains))
    assert set(first.parameters) == {"histogram.1.background", "histogram.1.phase.fap.scale"}
    step = AttemptView(1, "root", first, ACCEPTED, "s1")
    second = _proposed(_state(gains, first.parameters), step, states=(("root", _state(gains)),))
    assert set(second.parameters) == {"histogram.2.background", "histogram.2.phase.fap.scale"}


def test_actions_have_full_names_in_all_that_is_checked() -> None:
    gains = {"histogram.1.profile.W": 0.4}
    found = _after_linear(_state(gains, LINEAR, **{"histogram.1.width.low": 0.2}))
    assert found.parameters == ("histogram.1.profile.W",)
    assert found.evidence[0].feature == "release_gain.histogram.1.profile.W"
    assert {e.feature for e in found.evidence[1:]} <= {"histogram.1.width.low"}
    assert {p.metric for p in found.predictions} == {"release_gain.histogram.1.profile.W", "rwp"}


def test_background_terms_say_whose_they_are() -> None:
    found = _after_linear(_state({"histogram.2.background.more": 0.3}, LINEAR))
    assert found.kind is ActionKind.BACKGROUND_MODEL
    assert found.settings["histogram"] == "2"


def test_cells_and_atoms_are_asked_for_once() -> None:
    found = _after_linear(_state({"phase.fap.cell": 0.5}, LINEAR))
    assert found.parameters == ("phase.fap.cell",)
    assert not found.rationale.startswith("Histogram")


def test_one_proportion_is_a_wavelength_and_more_is_a_strain() -> None:
    wave, strain = "histogram.2.instrument.wavelength", "histogram.2.phase.fap.strain_hydrostatic"
    assert _after_linear(_state({wave: 0.5, strain: 0.5}, LINEAR)).parameters == (wave,)
    assert _after_linear(_state({wave: 0.2, strain: 0.5}, LINEAR)).parameters == (strain,)


def test_the_first_histogram_sets_the_scale_of_lengths() -> None:
    gains = {"histogram.1.instrument.wavelength": 0.5}
    state = _state(gains, LINEAR)
    view = GraphView("root", {"root": state}, ())
    proposal = RulesPlanner().propose(view, CONTEXT)
    assert isinstance(proposal, Proposal)
    assert proposal.action.kind is ActionKind.JOINT


def test_a_wavelength_and_a_strain_are_not_both_freed() -> None:
    wave, strain = "histogram.2.instrument.wavelength", "histogram.2.phase.fap.strain_hydrostatic"
    view = GraphView("root", {"root": _state({strain: 0.5, wave: 0.0}, (*LINEAR, wave))}, ())
    proposal = RulesPlanner().propose(view, CONTEXT)
    assert isinstance(proposal, Proposal)
    assert proposal.action.kind is ActionKind.JOINT


def test_a_tubes_wavelength_is_known() -> None:
    context = replace(CONTEXT, instrument=BEAM, histograms={"1": BEAM, "2": TUBE})
    wave, strain = "histogram.2.instrument.wavelength", "histogram.2.phase.fap.strain_hydrostatic"
    view = GraphView("root", {"root": _state({wave: 0.5, strain: 0.5}, LINEAR)}, ())
    proposal = RulesPlanner().propose(view, context)
    assert isinstance(proposal, Proposal)
    assert proposal.action.parameters == (strain,)


def test_one_histogram_is_never_asked_for_a_strain() -> None:
    state = plain(features={"release_gain.phase.fap.strain_hydrostatic": 0.5, "release_gain.instrument.zero": None})
    context = JobContext(instrument=TUBE, structures=())
    proposal = RulesPlanner().propose(GraphView("root", {"root": state}, ()), context)
    assert not isinstance(proposal, Finish)
    assert "strain_hydrostatic" not in str(getattr(proposal, "action", ""))


ATOM = AtomSite(label="Ca1", species="Ca", element="Ca", x=0.0, y=0.0, z=0.0)
GAIN = "phase.fap.uiso@anisotropic"


def _end(gain: float, count: int, *attempts: AttemptView) -> Action:
    structure = CrystalStructure(
        name="fap", title="fap", space_group="P 1", space_group_number=1, operations=("x,y,z",),
        cell=UnitCell(4.0, 4.0, 4.0, 90.0, 90.0, 90.0), atoms=(ATOM,),
    )  # fmt: skip
    state = _state({}, LINEAR)
    feature = Feature(value=gain, significance=5000 * gain / max(count, 1), n_used=count)
    state = state.model_copy(update={"features": {**state.features, f"release_gain.{GAIN}": feature}})
    view = GraphView("root", {"root": state}, attempts)
    proposal = RulesPlanner().propose(view, replace(CONTEXT, structures=(structure,)))
    assert isinstance(proposal, Proposal)
    return proposal.action


def test_tensors_come_last_once_and_where_they_pay() -> None:
    found = _end(0.2, 5)
    assert found.settings == {"phase": "fap", "atoms": "Ca1", "model": "anisotropic"}
    assert found.parameters == ("phase.fap.uiso",)
    assert [b.selector for b in found.bounds] == ["phase.fap.atom.Ca1.uiso"]
    assert {e.feature for e in found.evidence} == {f"release_gain.{GAIN}"}
    refused = AttemptView(1, "root", found, ACCEPTED.model_copy(update={"accepted": False}), None)
    assert _end(0.2, 5, refused).kind is ActionKind.JOINT
    assert _end(1e-4, 5).kind is ActionKind.JOINT
    assert _end(0.2, 0).kind is ActionKind.JOINT  # they are there
    assert _end(0.02, 60).kind is ActionKind.JOINT


def test_the_gate_takes_the_tensors_for_what_displacement_parameters_move() -> None:
    policy = load_policy("default")
    assert of_mechanism(_end(0.2, 5), f"release_gain.{GAIN}", policy)


def test_with_a_certified_cell_the_first_histogram_may_have_a_wavelength_of_its_own_too() -> None:
    gains = dict.fromkeys(LINEAR, 0.1) | {"phase.fap.cell": 0.3, "histogram.1.instrument.wavelength": 0.4}
    free = (*LINEAR, "histogram.2.background")
    certified = {"known_cell.fap": Feature(value=9.37, unit="angstrom")}

    def asked(state: FitState, first: Instrument) -> str:
        context = replace(CONTEXT, instrument=first, histograms={"1": first, "2": BEAM})
        found = RulesPlanner().propose(GraphView("root", {"root": state}, ()), context)
        return " ".join(found.action.parameters) if isinstance(found, Proposal) else ""

    plain = _state(gains, free)
    held = plain.model_copy(update={"features": plain.features | certified})
    assert asked(plain, BEAM) == "phase.fap.cell"
    assert asked(held, BEAM) == "histogram.1.instrument.wavelength"
    # a tube's wavelength is known, and the certified cell is never asked for
    assert "cell" not in asked(held, TUBE)
    assert "wavelength" not in asked(held, TUBE)
