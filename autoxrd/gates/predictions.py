"""Can a prediction fail, and was it met? Effects are measured on the record, never taken from the planner.

What is not available in the candidate cannot meet a prediction, with two exceptions. A feature that is absent
*because it is below the noise* (reason ``below_noise``) counts as zero: its cause is gone, and that is what was
predicted. The release gain of a selector that is now free is measured by what it promised: the part of chi2 that
was really gained on the same points. An uncertainty is not credited: a value inside its own esd
counts by the value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from autoxrd.domain.action import Action, ActionKind, Prediction
from autoxrd.domain.decision import GateCheck, PredictionOutcome
from autoxrd.domain.naming import split_name
from autoxrd.domain.state import FitState
from autoxrd.gates.metrics import GAIN_PREFIX, background_terms, read_metric
from autoxrd.gates.policy_model import Policy
from autoxrd.gates.selectors import covers, parse_parameter, resolve, resolve_all
from autoxrd.gates.tables import MORE_BACKGROUND, of_mechanism

__all__ = ["PredictionReport", "check_predictions", "measure_predictions", "meets", "supports_mechanism"]

_SETTLED = "max_shift_over_esd"
_UNSUPPORTED = "phases_unsupported"


@dataclass(frozen=True, slots=True)
class PredictionReport:
    """What became of an action's predictions.

    Args:
        check: rule 7 of the gate.
        outcomes: one for each prediction.
        mechanism_supported: a met prediction of the mechanism whose metric came closer to zero.
    """

    check: GateCheck
    outcomes: tuple[PredictionOutcome, ...]
    mechanism_supported: bool


def meets(effect: float, minimum_effect: float, tolerance: float) -> bool:
    """Return whether a measured effect reaches the minimum, within a tolerance relative to the minimum."""
    return math.isfinite(effect) and effect >= minimum_effect * (1.0 - tolerance)


def _effect(direction: str, before: float, after: float) -> float:
    if direction == "decrease":
        return before - after
    if direction == "increase":
        return after - before
    return abs(before) - abs(after)


def _points_to_zero(direction: str, before: float) -> bool:
    """True where the direction is the one in which the metric's misfit gets smaller."""
    return (
        direction == "toward_zero"
        or (direction == "decrease" and before > 0)
        or (direction == "increase" and before < 0)
    )


# --- before the engine runs ------------------------------------------------------------------------------------


def check_predictions(action: Action, parent: FitState, *, policy: Policy) -> GateCheck:
    """Check that the predictions can fail and that one of them is about the mechanism.

    Codes: ``prediction_vacuous`` (an effect too small to fail), ``prediction_unmeasurable`` (no value to start
    from), ``prediction_impossible`` (more than there is), ``prediction_no_mechanism`` (none names a metric that
    the action's mechanism moves, in the direction that mends it).
    """
    faults: list[tuple[str, str]] = []
    mechanism = False
    for prediction in action.predictions:
        level = read_metric(parent, prediction.metric).level
        settled = _is_settled_claim(action, prediction, policy)
        fault = None if settled else _cannot_fail(prediction, level, policy)
        if fault is not None:
            faults.append(fault)
        elif of_mechanism(action, prediction.metric, policy):
            mechanism = mechanism or settled or (level is not None and _points_to_zero(prediction.direction, level))
    if not mechanism:
        names = ", ".join(policy.mechanisms.get(action.kind, ())) or "none"
        faults.append(
            ("prediction_no_mechanism", f"no prediction is about what {action.kind.value} moves ({names}), toward zero")
        )
    return GateCheck(
        rule="preflight.predictions",
        passed=not faults,
        codes=tuple(dict.fromkeys(code for code, _ in faults)),
        text="; ".join(text for _, text in faults) or f"{len(action.predictions)} predictions can fail",
    )


def _is_settled_claim(action: Action, prediction: Prediction, policy: Policy) -> bool:
    """A joint cycle predicts that the fit comes to rest; the policy says how still that is."""
    limit = policy.predictions.joint_settled_shift
    return (
        action.kind is ActionKind.JOINT
        and prediction.metric == _SETTLED
        and limit > 0
        and prediction.direction != "increase"
    )


def _cannot_fail(prediction: Prediction, level: float | None, policy: Policy) -> tuple[str, str] | None:
    name, minimum = prediction.metric, prediction.minimum_effect
    if level is None:
        return "prediction_unmeasurable", f"{name} has no value in the record to start from"
    if not (math.isfinite(minimum) and minimum > policy.predictions.vacuous_fraction * abs(level)):
        return "prediction_vacuous", f"an effect of {minimum:.3g} on {name} = {level:.6g} is none at all"
    if prediction.direction == "toward_zero" and not meets(abs(level), minimum, policy.predictions.tolerance):
        return "prediction_impossible", f"{name} = {level:.6g} cannot come closer to zero by {minimum:.3g}"
    return None


# --- on the candidate ------------------------------------------------------------------------------------------


def measure_predictions(
    action: Action, parent: FitState, candidate: FitState, *, policy: Policy, parent_rwp: float | None
) -> PredictionReport:
    """Measure every prediction and judge rule 7: all met, at least one of them of the mechanism.

    Args:
        action: what was done.
        parent: the state before.
        candidate: the state after.
        policy: the rules.
        parent_rwp: the parent's Rwp on the candidate's points, None where it is not known.
    """
    outcomes: list[PredictionOutcome] = []
    supported = False
    for prediction in action.predictions:
        outcome = _measure(action, prediction, parent, candidate, policy, parent_rwp)
        outcomes.append(outcome)
        supported = supported or supports_mechanism(outcome, settled=_is_settled_claim(action, prediction, policy))
    codes = []
    if any(outcome.effect is None and not outcome.met for outcome in outcomes):
        codes.append("prediction_unmeasured")
    if any(outcome.effect is not None and not outcome.met for outcome in outcomes):
        codes.append("prediction_not_met")
    if not supported:
        codes.append("mechanism_not_supported")
    met = sum(outcome.met for outcome in outcomes)
    check = GateCheck(
        rule="predictions",
        passed=not codes and bool(outcomes),
        codes=tuple(codes) if codes or outcomes else ("prediction_unmeasured",),
        measured=float(met),
        limit=float(len(outcomes)),
        text=_tell(outcomes),
    )
    return PredictionReport(check, tuple(outcomes), supported)


def supports_mechanism(outcome: PredictionOutcome, *, settled: bool = False) -> bool:
    """Return whether an outcome shows the mechanism at work: met, and closer to zero than before.

    "Decreased" alone is not enough for signed metrics: from 0.01 to -0.3 deg is a decrease and a ruin.
    """
    if not (outcome.of_mechanism and outcome.met):
        return False
    if settled:
        return True
    return outcome.before is not None and outcome.after is not None and abs(outcome.after) < abs(outcome.before)


def _measure(
    action: Action,
    prediction: Prediction,
    parent: FitState,
    candidate: FitState,
    policy: Policy,
    parent_rwp: float | None,
) -> PredictionOutcome:
    before = _before(prediction.metric, parent, candidate, parent_rwp)
    after = _after(prediction.metric, before, parent, candidate)
    effect = None if before is None or after is None else _effect(prediction.direction, before, after)
    met = effect is not None and meets(effect, prediction.minimum_effect, policy.predictions.tolerance)
    if after is not None and _is_settled_claim(action, prediction, policy):
        met = met or abs(after) <= policy.predictions.joint_settled_shift
    return PredictionOutcome(
        prediction=prediction,
        before=before,
        after=after,
        effect=effect,
        met=met,
        of_mechanism=of_mechanism(action, prediction.metric, policy),
    )


def _same_points(parent: FitState, candidate: FitState) -> bool:
    return parent.quality.n_points == candidate.quality.n_points


def _before(metric: str, parent: FitState, candidate: FitState, parent_rwp: float | None) -> float | None:
    """The parent's level; sums over points are comparable only on the same points."""
    if metric == "rwp":
        return parent_rwp
    if metric in ("rp", "rexp", "gof", "chi2", "rwp_no_background", "abs_residual") and not _same_points(
        parent, candidate
    ):
        return None
    return read_metric(parent, metric).level


def _after(metric: str, before: float | None, parent: FitState, candidate: FitState) -> float | None:
    if metric == _UNSUPPORTED and len(candidate.phases) == 1:
        # of one phase alone it is not measured: there is nothing left that it could be told from
        return 0.0
    name = metric.removeprefix(GAIN_PREFIX)
    histogram, bared = split_name(name)
    if bared == MORE_BACKGROUND:
        freed = background_terms(candidate, histogram) > background_terms(parent, histogram)
    else:
        freed = _is_free(name, candidate)
    if not metric.startswith(GAIN_PREFIX) or not freed:
        return read_metric(candidate, metric).level
    # What is free has no gain left by construction: that it fell could not fail. What was promised can.
    if before is None or not _same_points(parent, candidate) or not parent.quality.chi2 > 0:
        return None
    gained = (parent.quality.chi2 - candidate.quality.chi2) / parent.quality.chi2
    return max(0.0, before - gained) if math.isfinite(gained) else None


def _is_free(text: str, state: FitState) -> bool:
    """Return whether all that the selector means is free in the state."""
    wanted = parse_parameter(text)
    if wanted is None:
        return False
    names = [parameter.name for parameter in state.parameters]
    meant = set(resolve(text, names).names)
    if meant:
        return meant <= set(resolve_all(state.released, names))
    return any(covers(selector, wanted) for free in state.released if (selector := parse_parameter(free)) is not None)


def _tell(outcomes: Sequence[PredictionOutcome]) -> str:
    parts = []
    for outcome in outcomes:
        prediction = outcome.prediction
        wanted = f"{prediction.metric} {prediction.direction} by {prediction.minimum_effect:.3g}"
        if outcome.effect is None:
            parts.append(f"{wanted}: {'met' if outcome.met else 'could not be measured'}")
        else:
            verdict = "met" if outcome.met else "not met"
            parts.append(f"{wanted}: {verdict} ({outcome.before:.6g} -> {outcome.after:.6g})")
    return "; ".join(parts)
