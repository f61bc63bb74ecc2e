"""What is a state worth? One number to rank admissible states; it can never buy back a failed check."""

from __future__ import annotations

import math
from dataclasses import dataclass

from autoxrd.domain.action import Action, ActionKind
from autoxrd.domain.decision import GateCheck
from autoxrd.domain.state import FitState
from autoxrd.gates.metrics import hard_violations, read_metric
from autoxrd.gates.policy_model import Policy, UtilityRules

__all__ = ["UtilityTerms", "check_utility", "compare_utility", "utility", "utility_terms"]

_Q = "unexplained_peak_ratio"


@dataclass(frozen=True, slots=True)
class UtilityTerms:
    """What the utility is made of (DESIGN section 9 item 8).

    Args:
        gof: goodness of fit.
        abs_residual: sum|e| / sum|y|.
        unexplained: unexplained-peak ratio, None where it cannot be told.
        n_free: number of free parameters.
        correlation: largest |r| outside background bases, 0 where there is no pair.
        hard, soft: numbers of violations.
    """

    gof: float
    abs_residual: float
    unexplained: float | None
    n_free: int
    correlation: float
    hard: int
    soft: int

    def value(self, weights: UtilityRules, *, charge_size: bool = True) -> float:
        """Return U; ``charge_size=False`` leaves out the terms of parameter count and correlation."""
        cost = weights.gof * self.gof + weights.abs_residual * self.abs_residual
        cost += weights.unexplained * (self.unexplained or 0.0)
        cost += weights.hard_violation * self.hard + weights.soft_violation * self.soft
        if charge_size:
            cost += weights.parameter * self.n_free
            cost += weights.correlation * max(0.0, self.correlation - weights.correlation_knee)
        return -cost


def utility_terms(state: FitState) -> UtilityTerms:
    """Read the terms of a state's utility from its record."""
    hard = hard_violations(state)
    return UtilityTerms(
        gof=state.quality.gof,
        abs_residual=state.quality.abs_residual,
        unexplained=read_metric(state, _Q).level,
        n_free=state.complexity.n_free,
        correlation=abs(state.complexity.max_correlation or 0.0),
        hard=hard,
        soft=len(state.violations) - hard,
    )


def utility(state: FitState, *, policy: Policy) -> float:
    """Return the utility of one state, for ranking leaves; an unknown Q counts nothing."""
    return utility_terms(state).value(policy.utility)


def compare_utility(
    action: Action, parent: FitState, candidate: FitState, *, policy: Policy, parent_rwp: float | None
) -> tuple[float, float]:
    """Return the utilities (before, after) on the same footing.

    A Q that one of the two cannot tell counts alike in both. On changed points (an excluded region) the parent's GoF
    is taken on the candidate's points, GoF_candidate * Rwp_parent / Rwp_candidate, and the absolute residual counts
    alike: leaving out a bad region is no gain by itself.
    """
    before, after = utility_terms(parent), utility_terms(candidate)
    q_before, q_after = before.unexplained, after.unexplained
    if q_before is None or q_after is None:
        q_before = q_after = q_before if q_before is not None else q_after
    gof, residual = before.gof, before.abs_residual
    if parent.quality.n_points != candidate.quality.n_points:
        gof, residual = math.nan, after.abs_residual
        if parent_rwp is not None and candidate.quality.rwp > 0:
            gof = after.gof * parent_rwp / candidate.quality.rwp
    before = UtilityTerms(gof, residual, q_before, before.n_free, before.correlation, before.hard, before.soft)
    after = UtilityTerms(
        after.gof, after.abs_residual, q_after, after.n_free, after.correlation, after.hard, after.soft
    )
    charge = not (parent.complexity.n_free == 0 and action.kind in policy.utility.first_step_kinds)
    return before.value(policy.utility, charge_size=charge), after.value(policy.utility, charge_size=charge)


def check_utility(action: Action, before: float, after: float, *, policy: Policy) -> GateCheck:
    """Judge rule 8: utility rises; a joint cycle may leave it as it is where the policy says so."""
    rules = policy.utility
    gain = after - before
    if action.kind is ActionKind.JOINT and rules.joint_slack > 0:
        passed, limit = gain >= -rules.joint_slack, -rules.joint_slack
    else:
        passed, limit = gain > rules.minimum_gain, rules.minimum_gain
    passed = passed and math.isfinite(gain)
    return GateCheck(
        rule="utility",
        passed=passed,
        codes=() if passed else ("utility_not_improved",),
        measured=gain if math.isfinite(gain) else None,
        limit=limit,
        text=f"utility {before:.6g} -> {after:.6g}",
    )
