"""Is a candidate accepted? DESIGN section 9, every rule asked and every failing reason reported."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision, GateCheck
from autoxrd.domain.state import FitState
from autoxrd.gates.amounts import check_amounts
from autoxrd.gates.policy import Policy, policy_hash
from autoxrd.gates.predictions import measure_predictions
from autoxrd.gates.preflight import PREFLIGHT_RULES
from autoxrd.gates.rules import check_correlation, check_engine, check_rwp, check_unexplained, check_violations
from autoxrd.gates.utility import check_utility, compare_utility

__all__ = ["judge", "reject"]

_INCOMPLETE = "preflight_incomplete"


def judge(
    action: Action,
    parent: FitState,
    candidate: FitState,
    *,
    preflight: tuple[GateCheck, ...],
    policy: Policy,
    parent_rwp_same_points: float | None = None,
) -> Decision:
    """Judge a candidate against its parent.

    The decision answers three questions apart. ``numerically_better``: Rwp fell on the same points (None where it
    cannot be compared). ``mechanism_supported``: a prediction about what the action was meant to change came true and
    the metric came closer to zero. ``admissible``: the result is whole, brings no new violation, no unexplained peak,
    no correlation beyond the limit and no amount that widths have moved. It is accepted when all rules hold, whatever
    its utility.

    Args:
        action: what was done.
        parent: the state it started from.
        candidate: the state that came out.
        preflight: the checks of :func:`autoxrd.gates.preflight.preflight`, complete.
        policy: the rules.
        parent_rwp_same_points: the parent's Rwp (fraction) recomputed on the candidate's points; needed where the
            action changes the points.
    """
    parent_rwp = _comparable_rwp(parent, candidate, parent_rwp_same_points)
    report = measure_predictions(action, parent, candidate, policy=policy, parent_rwp=parent_rwp)
    before, after = compare_utility(action, parent, candidate, policy=policy, parent_rwp=parent_rwp)
    whole = check_engine(action, parent, candidate)
    lawful = check_violations(parent, candidate, policy=policy)
    explained = check_unexplained(parent, candidate, policy=policy)
    determined = check_correlation(action, parent, candidate, policy=policy)
    amounts = check_amounts(action, parent, candidate, policy=policy)
    kept = () if amounts is None else (amounts,)
    better = check_rwp(parent, candidate, parent_rwp, policy=policy)
    useful = check_utility(action, before, after, policy=policy)
    checks = (*_complete(preflight), whole, lawful, better, explained, determined, *kept, report.check, useful)
    return Decision(
        accepted=all(check.passed for check in checks),
        numerically_better=None if parent_rwp is None else candidate.quality.rwp < parent_rwp,
        mechanism_supported=report.mechanism_supported,
        admissible=all(check.passed for check in (whole, lawful, explained, determined, *kept)),
        reasons=_reasons(checks),
        checks=checks,
        predictions=report.outcomes,
        utility_before=before if math.isfinite(before) else None,
        utility_after=after if math.isfinite(after) else None,
        policy_name=policy.name,
        policy_hash=policy_hash(policy),
        details=_details(checks),
    )


def _comparable_rwp(parent: FitState, candidate: FitState, recomputed: float | None) -> float | None:
    """Return the parent's Rwp on the candidate's points, None where nobody computed it."""
    if recomputed is not None and math.isfinite(recomputed):
        return recomputed
    return parent.quality.rwp if parent.quality.n_points == candidate.quality.n_points else None


def reject(
    action: Action, *, policy: Policy, preflight: Sequence[GateCheck] = (), reason: str = "", text: str = ""
) -> Decision:
    """Return the decision on an attempt that gave no candidate: preflight said no, or the engine failed.

    Args:
        action: what was proposed.
        policy: the rules.
        preflight: the checks as far as they were made.
        reason: a code beyond those of the checks, e.g. an engine error's; may be empty where a check failed.
        text: one sentence for that code.
    """
    extra: tuple[GateCheck, ...] = ()
    if reason or all(check.passed for check in preflight):
        code = reason or "rejected"
        extra = (GateCheck(rule="engine", passed=False, codes=(code,), text=text or f"{action.kind.value}: {code}"),)
    checks = (*preflight, *extra)
    return Decision(
        accepted=False,
        numerically_better=None,
        mechanism_supported=None,
        admissible=None,
        reasons=_reasons(checks),
        checks=checks,
        policy_name=policy.name,
        policy_hash=policy_hash(policy),
        details=_details(checks),
    )


def _complete(preflight: Sequence[GateCheck]) -> tuple[GateCheck, ...]:
    """Rule 1 holds only where every check was made: a missing one is a failed one."""
    missing = [rule for rule in PREFLIGHT_RULES if rule not in {check.rule for check in preflight}]
    if not missing:
        return tuple(preflight)
    text = f"not checked before the run: {', '.join(missing)}"
    return (*preflight, GateCheck(rule="preflight", passed=False, codes=(_INCOMPLETE,), text=text))


def _reasons(checks: Iterable[GateCheck]) -> tuple[str, ...]:
    codes: list[str] = []
    for check in checks:
        if not check.passed:
            codes.extend(check.codes or (check.rule,))
    return tuple(dict.fromkeys(codes))


def _details(checks: Iterable[GateCheck]) -> dict[str, str]:
    details: dict[str, str] = {}
    for check in checks:
        if check.passed:
            continue
        for code in check.codes or (check.rule,):
            details[code] = f"{details[code]}; {check.text}" if code in details else check.text
    return details
