"""The search for phases on graphs made by hand: out with the absent, in with the missing, rivals tried once."""

from __future__ import annotations

import pytest

from autoxrd.domain.action import Action, ActionKind
from autoxrd.domain.state import Feature, FitState, MeasuredValue, ParameterValue, PhaseSummary, Violation
from autoxrd.gates.policy import load_policy
from autoxrd.gates.preflight import preflight
from autoxrd.planners.protocol import AttemptView, GraphView, JobContext
from autoxrd.planners.rules.phase_notes import detection_limit, phase_notes
from autoxrd.planners.rules.phases import PhaseRules, left_in, next_change, spoilers
from autoxrd.planners.rules.thresholds import Thresholds
from tests.planners.test_rules import ACCEPTED, INSTRUMENT, REJECTED, STRUCTURE, _proposed, _state

RULES = PhaseRules()


def _phase(name: str, fraction: float, esd: float = 0.01) -> PhaseSummary:
    value = MeasuredValue(value=fraction, esd=esd)
    return PhaseSummary(name=name, space_group="P m -3 m", weight_fraction=value, cell={}, intensity_share=fraction)


def _with(names: tuple[str, ...], features: dict[str, float | Feature], *, rwp: float = 0.2) -> FitState:
    told = {n: f if isinstance(f, Feature) else Feature(value=f, n_used=9) for n, f in features.items()}
    told.setdefault("intensity.misfit", Feature(value=0.1))
    released = tuple(f"phase.{n}.{what}" for n in names for what in ("scale", "cell"))
    scales = tuple(ParameterValue(name=f"phase.{n}.scale", value=2.0, esd=0.5, released=True) for n in names)
    state = _state({}, released=released, rwp=rwp, features=told)
    return state.model_copy(update={"phases": tuple(_phase(n, 1.0 / len(names)) for n in names), "parameters": scales})


def _context(*candidates: str) -> JobContext:
    return JobContext(instrument=INSTRUMENT, structures=(STRUCTURE,), candidates=candidates)


def _change(state: FitState, *candidates: str, attempts: tuple[AttemptView, ...] = (), more: dict | None = None):
    view = GraphView(root="r", states={"r": state, **(more or {})}, attempts=attempts)
    return next_change("r", view, _context(*candidates), RULES)


@pytest.mark.parametrize(
    ("features", "evidence"),
    [
        ({"presence.Q": 0.4}, "presence.Q"),
        ({"presence.Q": 20.0, "absent_lines.Q": 0.9}, "absent_lines.Q"),
    ],
)
def test_an_absent_phase_is_removed_with_the_evidence(features: dict[str, float], evidence: str) -> None:
    state = _with(("P", "Q"), features | {"presence.P": 90.0, "phases_unsupported": 1.0})
    action = _change(state)
    assert action is not None
    assert (action.kind, action.settings["phase"]) == (ActionKind.REMOVE_PHASE, "Q")
    assert [claim.feature for claim in action.evidence] == [evidence]
    checks = preflight(action, state, "r", policy=load_policy("default"), known_parameters=["phase.P.scale"])
    assert [check.codes for check in checks if not check.passed] == []


def test_phases_that_are_there_stay() -> None:
    state = _with(("P", "Q"), {"presence.Q": 4.0, "presence.P": 90.0, "absent_lines.Q": 0.1})
    assert _change(state) is None
    assert _change(_with(("P",), {"presence.P": 0.1})) is None  # the only one


def test_a_refused_removal_is_asked_again_once_more_is_free() -> None:
    features = {"presence.Q": 0.4, "presence.P": 90.0, "phases_unsupported": 1.0}
    state = _with(("P", "Q"), features)
    action = _change(state)
    assert action is not None
    attempts = [AttemptView(1, "r", action, REJECTED, None)]
    assert _change(state, attempts=tuple(attempts)) is None
    # as much is free as when it was refused: the state changed, the question did not
    same = {"r": state, "s1": state}
    assert next_change("s1", GraphView("r", same, tuple(attempts)), _context(), RULES) is None
    known, released = {"r": state}, state.released
    for number in range(1, RULES.removals + 1):
        released = (*released, f"phase.P.more{number}")
        name = f"s{number}"
        known[name] = state.model_copy(update={"released": released})
        again = next_change(name, GraphView("r", known, tuple(attempts)), _context(), RULES)
        assert (again is not None) == (number < RULES.removals)
        if again is not None:
            assert again.settings == {"phase": "Q"}
            attempts.append(AttemptView(number + 1, name, again, REJECTED, None))


def test_an_absent_phase_whose_removal_was_refused_is_told() -> None:
    assert left_in(_with(("P", "Q"), {"presence.Q": 4.0}), RULES) is None
    assert left_in(_with(("P",), {"presence.P": 0.4}), RULES) is None
    told = left_in(_with(("P", "Q"), {"presence.Q": 0.4, "presence.P": 90.0}), RULES)
    assert told is not None
    assert told[0] == "phase_not_shown"
    assert "Q" in told[1]


def test_absent_phases_leave_one_after_another() -> None:
    features = {"presence.Q": 0.4, "presence.R": 0.6, "presence.P": 90.0, "phases_unsupported": 2.0}
    width = Feature(value=0.2, significance=200.0, n_used=1)
    gains = features | {"release_gain.phase.P.size": width, "release_gain.phase.P.strain": width}
    three = _with(("P", "Q", "R"), features)
    two = _with(("P", "R"), gains | {"phases_unsupported": 1.0})
    first = _proposed(GraphView("r", {"r": three}, ()), _context())
    assert first.settings == {"phase": "Q"}
    view = GraphView("r", {"r": three, "s": two}, (AttemptView(1, "r", first, ACCEPTED, "s"),))
    assert _proposed(view, _context()).settings == {"phase": "R"}
    # a missing phase waits until widths have settled
    one = _with(("P",), gains | {"candidate.Q": 0.3, "candidate.Q.seen": 0.9, "unexplained_peak_ratio": 0.2})
    view = GraphView("r", {"r": two, "s": one}, (AttemptView(1, "r", _removed("R", "r"), ACCEPTED, "s"),))
    assert _proposed(view, _context("Q")).kind is ActionKind.SIZE_STRAIN


def test_an_absent_phase_that_spoils_a_step_leaves_before_anything_else() -> None:
    width = Feature(value=0.2, significance=200.0, n_used=1)
    features = {"presence.P": 90.0, "presence.Q": 2.0, "phases_unsupported": 1.0, "release_gain.phase.P.size": width}
    state = _with(("P", "Q"), features)
    better = _proposed(GraphView("r", {"r": state}, ()), _context())
    assert better.parameters == ("phase.P.size",)
    fallen = tuple(p.model_copy(update={"value": 0.0, "lower": 0.0}) for p in state.parameters if ".Q." in p.name)
    spoiled = state.model_copy(
        update={
            "parameters": (*(p for p in state.parameters if ".Q." not in p.name), *fallen),
            "violations": (Violation(code="at_bound", subject="phase.Q.scale"),),
        }
    )
    reasons = REJECTED.model_copy(update={"reasons": ("new_violation", "at_bound")})
    view = GraphView("r", {"r": state, "bad": spoiled}, (AttemptView(1, "r", better, reasons, "bad"),))
    assert spoilers("r", view, freed=False) == {"Q"}
    assert _proposed(view, _context()).settings == {"phase": "Q"}
    # once it is gone the step is proposed anew
    alone = _with(("P",), {"release_gain.phase.P.size": width})
    gone = AttemptView(2, "r", _removed("Q", "r"), ACCEPTED, "s")
    after = GraphView("r", {"r": state, "bad": spoiled, "s": alone}, (*view.attempts, gone))
    assert _proposed(after, _context()).parameters == ("phase.P.size",)


@pytest.mark.parametrize("cell", [0.2, 0.0])
def test_a_scale_that_falls_to_nothing_when_it_is_freed_speaks_once_lines_are_in_place(cell: float) -> None:
    gains = {
        "release_gain.phase.Q.scale": 0.05,
        "release_gain.phase.P.size": 0.2,
        "release_gain.phase.P.cell": cell,
    }
    told = {name: Feature(value=value, significance=1000 * value, n_used=1) for name, value in gains.items()}
    whole = _with(("P", "Q"), {"presence.P": 90.0, "presence.Q": 2.0, "phases_unsupported": 1.0, **told})
    state = whole.model_copy(update={"released": ("background", "phase.P.scale")})
    freed = _with(("P", "Q"), {}).model_copy(
        update={
            "parameters": (ParameterValue(name="phase.Q.scale", value=0.0, lower=0.0, released=True),),
            "violations": (Violation(code="at_bound", subject="phase.Q.scale"),),
        }
    )
    scale = _removed("Q", "r").model_copy(
        update={"kind": ActionKind.SCALE, "parameters": ("phase.Q.scale",), "settings": {}}
    )
    refused = AttemptView(1, "r", scale, REJECTED.model_copy(update={"reasons": ("new_violation",)}), "bad")
    action = _proposed(GraphView("r", {"r": state, "bad": freed}, (refused,)), _context())
    assert (action.kind is ActionKind.REMOVE_PHASE) == (cell == 0.0)


@pytest.mark.parametrize(("presence", "freed"), [(2.0, ("phase.P.size",)), (9.0, ("phase.P.size", "phase.Q.size"))])
def test_nothing_but_scale_and_cell_is_freed_of_a_phase_that_is_not_seen(
    presence: float, freed: tuple[str, ...]
) -> None:
    gains = {f"release_gain.phase.{name}.size": Feature(value=0.2, significance=200.0, n_used=1) for name in ("P", "Q")}
    state = _with(("P", "Q"), {"presence.P": 90.0, "presence.Q": presence, **gains})
    assert _proposed(GraphView("r", {"r": state}, ()), _context()).parameters == freed
    refused = state.model_copy(update={"released": tuple(s for s in state.released if s != "phase.Q.scale")})
    assert _proposed(GraphView("r", {"r": refused}, ()), _context()).parameters == ("phase.P.size",)
    cell = {"release_gain.phase.Q.cell": Feature(value=0.2, significance=200.0, n_used=1)}
    state = _with(("P", "Q"), {"presence.P": 90.0, "presence.Q": presence, **cell})
    held = state.model_copy(update={"released": tuple(s for s in state.released if s != "phase.Q.cell")})
    assert _proposed(GraphView("r", {"r": held}, ()), _context()).parameters == ("phase.Q.cell",)


def _removed(name: str, parent: str) -> Action:
    action = _change(_with(("P", name), {f"presence.{name}": 0.1}))
    assert action is not None
    return action.model_copy(update={"parent": parent})


def test_a_candidate_comes_in_when_its_own_lines_are_left_over() -> None:
    features = {
        "candidate.Q": 0.30,
        "candidate.Q.seen": 0.9,
        "candidate.R": 0.40,  # more to gain, but no line of its own is there
        "candidate.R.seen": Feature(value=None, available=False, reason="no line of its own stands clear"),
        "unexplained_peak_ratio": 0.2,
    }
    state = _with(("P",), features)
    action = _change(state, "Q", "R")
    assert action is not None
    assert (action.kind, dict(action.settings)) == (ActionKind.ADD_PHASE, {"phase": "Q"})
    assert action.parameters == ("phase.Q.scale", "phase.Q.cell")
    checks = preflight(action, state, "r", policy=load_policy("default"), known_parameters=["phase.P.scale"])
    assert [check.codes for check in checks if not check.passed] == []
    refused = AttemptView(1, "r", action, REJECTED, None)
    assert _change(state, "Q", "R", attempts=(refused,)) is None  # never twice on one set of phases


def test_only_a_candidate_that_was_looked_for_can_come_in() -> None:
    action = _change(_with(("P",), {"candidate.Q": 0.3, "candidate.Q.seen": 0.9}), "Q")
    assert action is not None
    checks = preflight(action, _with(("P",), {}), "r", policy=load_policy("default"), known_parameters=[])
    assert "settings_invalid" in {code for check in checks for code in check.codes}


def test_a_rival_is_tried_in_the_place_of_a_candidate_and_never_of_a_given_phase() -> None:
    state = _with(("P",), {"candidate.Q": 0.0, "candidate.Q.for.P": 0.98})
    action = _change(state, "P", "Q")
    assert action is not None
    assert dict(action.settings) == {"phase": "Q", "replaces": "P"}
    assert _change(state, "Q") is None  # P was given as believed to be there


def test_a_refused_equal_rival_is_ambiguous_and_a_worse_one_is_not() -> None:
    state = _with(("P",), {"candidate.Q.for.P": 0.98})
    action = _change(state, "P", "Q")
    assert action is not None
    for chi2, code in ((1.001, "phase_set_ambiguous"), (1.5, "phase_rival")):
        quality = state.quality.model_copy(update={"chi2": chi2 * state.quality.chi2})
        tried = _with(("Q",), {}).model_copy(update={"quality": quality})
        attempt = AttemptView(1, "r", action, REJECTED, "q")
        view = GraphView(root="r", states={"r": state, "q": tried}, attempts=(attempt,))
        notes = dict(phase_notes("r", view, _context("P", "Q"), Thresholds(), RULES))
        assert code in notes
        assert "Q" in notes[code]


def test_the_detection_limit_follows_from_the_scale() -> None:
    # three esds are 0.75 of the scale: 0.5 by weight would be 0.375 over 0.875
    assert detection_limit(_with(("P", "Q"), {}), "Q", esds=3.0) == pytest.approx(0.375 / 0.875)
    assert detection_limit(_with(("P",), {}), "Q", esds=3.0) is None


def test_an_absent_phase_is_reported_with_its_limit() -> None:
    state = _with(("P", "Q"), {"presence.Q": 0.4, "absent_lines.Q": 0.8})
    action = _change(state)
    assert action is not None
    view = GraphView(
        root="r", states={"r": state, "p": _with(("P",), {})}, attempts=(AttemptView(1, "r", action, ACCEPTED, "p"),)
    )
    notes = dict(phase_notes("p", view, _context(), Thresholds(), RULES))
    assert "less than 43 wt%" in notes["phase_not_present"]
