"""Does the record support what a planner claims to have seen?"""

from __future__ import annotations

from autoxrd.domain.action import Evidence
from autoxrd.domain.decision import GateCheck
from autoxrd.domain.state import FitState
from autoxrd.gates.metrics import Reading, is_non_negative, read_metric
from autoxrd.gates.policy_model import Policy

__all__ = ["check_evidence", "comparison_holds"]

_ROUNDING = 1e-9
"""Relative slack of binary arithmetic at the edge of the agreement limit."""


def comparison_holds(comparison: str, value: float, threshold: float) -> bool:
    """Return whether ``value comparison threshold`` is true; an unknown comparison is never true."""
    if comparison == ">":
        return value > threshold
    if comparison == "<":
        return value < threshold
    if comparison == ">=":
        return value >= threshold
    if comparison == "<=":
        return value <= threshold
    return comparison == "abs>" and abs(value) > threshold


def check_evidence(evidence: tuple[Evidence, ...], parent: FitState, parent_id: str, *, policy: Policy) -> GateCheck:
    """Check each claim against the record of the state that it names.

    Codes: ``evidence_stale`` (another state's), ``evidence_unknown_feature``, ``evidence_not_supported`` (no value
    on record, a value that differs by more than the policy allows, or a comparison that does not hold).
    """
    faults: list[tuple[str, str]] = []
    for claim in evidence:
        fault = _fault(claim, parent, parent_id, policy)
        if fault is not None:
            faults.append(fault)
    if not evidence:
        faults.append(("evidence_not_supported", "no evidence was given"))
    return GateCheck(
        rule="preflight.evidence",
        passed=not faults,
        codes=tuple(dict.fromkeys(code for code, _ in faults)),
        measured=float(len(evidence) - len(faults)),
        limit=float(len(evidence)),
        text="; ".join(text for _, text in faults) or f"{len(evidence)} claims agree with the record",
    )


def _fault(claim: Evidence, parent: FitState, parent_id: str, policy: Policy) -> tuple[str, str] | None:
    if claim.source != parent_id:
        return "evidence_stale", f"{claim.feature} is cited from {claim.source!r}, the action starts from {parent_id!r}"
    reading = read_metric(parent, claim.feature)
    if not reading.known:
        return "evidence_unknown_feature", f"the state has no feature {claim.feature!r}"
    if reading.value is None:
        return "evidence_not_supported", f"{claim.feature} has no value in the record: {reading.reason}"
    return _disagreement(claim, reading, policy)


def _disagreement(claim: Evidence, reading: Reading, policy: Policy) -> tuple[str, str] | None:
    code = "evidence_not_supported"
    recorded = float(reading.value or 0.0)
    allowed = policy.evidence.agreement * abs(recorded) * (1 + _ROUNDING)
    if not abs(claim.value - recorded) <= allowed:
        return code, f"{claim.feature} is {recorded:.6g} in the record, not {claim.value:.6g}"
    for value in (recorded, claim.value):
        if not comparison_holds(claim.comparison, value, claim.threshold):
            return code, f"{claim.feature} = {value:.6g} is not {claim.comparison} {claim.threshold:.6g}"
    if _always_true(claim):
        return code, f"{claim.feature} {claim.comparison} {claim.threshold:.6g} holds whatever is measured"
    return None


def _always_true(claim: Evidence) -> bool:
    """A comparison that no measurement could fail is no evidence."""
    if claim.comparison == "abs>":
        return claim.threshold < 0
    if is_non_negative(claim.feature):
        return (claim.comparison == ">" and claim.threshold < 0) or (claim.comparison == ">=" and claim.threshold <= 0)
    return False
