"""Rules 2 to 6 of the gate, one function each: engine result, violations, Rwp, unexplained peaks, correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from autoxrd.domain.action import Action, ActionKind
from autoxrd.domain.decision import GateCheck
from autoxrd.domain.naming import HISTOGRAM
from autoxrd.domain.state import FitState, UnexplainedPeak, Violation
from autoxrd.gates.histograms import histograms_of
from autoxrd.gates.limits import BoundIndex
from autoxrd.gates.matching import returning
from autoxrd.gates.metrics import is_timed, read_metric
from autoxrd.gates.policy_model import Limits, Policy
from autoxrd.gates.selectors import resolve_all
from autoxrd.gates.sites import Sites

__all__ = ["check_correlation", "check_engine", "check_rwp", "check_unexplained", "check_violations", "is_worse"]

_EDGE = 1e-12
"""Relative slack of binary arithmetic at the edge of a limit: exactly 1.02 times the parent's Rwp passes."""

_BOUND_SLACK = 1e-6
"""Relative slack with which an engine's own arithmetic may touch a bound."""

_OFF_DIAGONAL = (".u12", ".u13", ".u23")
"""The limits of a displacement parameter are of its mean and its diagonal; these may be negative."""

_Q = "unexplained_peak_ratio"

Fault = tuple[str, str]


def _verdict(
    rule: str,
    faults: Sequence[Fault],
    *,
    head: str = "",
    measured: float | None = None,
    limit: float | None = None,
    text: str = "",
) -> GateCheck:
    """Make a check of its faults; ``head`` is a code put before theirs."""
    codes = [head] if head and faults else []
    return GateCheck(
        rule=rule,
        passed=not faults,
        codes=tuple(dict.fromkeys([*codes, *(code for code, _ in faults)])),
        measured=measured if measured is None or math.isfinite(measured) else None,
        limit=limit,
        text="; ".join(words for _, words in faults) or text,
    )


def check_engine(action: Action, parent: FitState, candidate: FitState) -> GateCheck:
    """Rule 2: the result is whole, converged, and is what was asked for.

    Codes: ``not_converged``, ``result_not_finite``, ``parameter_dropped`` (one that the action frees),
    ``released_outside_action``, ``bound_not_honoured``.
    """
    faults: list[Fault] = []
    if not candidate.convergence.converged:
        faults.append(("not_converged", f"the engine did not converge ({candidate.convergence.status or 'no status'})"))
    faults.extend(_not_finite(candidate))
    dropped = [name for name in candidate.convergence.dropped if name not in parent.convergence.dropped]
    if dropped:
        faults.append(("parameter_dropped", f"the engine held {', '.join(dropped[:5])} as singular or unsupported"))
    faults.extend(_freed_beyond(action, parent, candidate))
    faults.extend(_beyond_bounds(action, parent, candidate))
    return _verdict(
        "engine",
        faults,
        measured=candidate.convergence.max_shift_over_esd,
        text=f"converged in {candidate.convergence.cycles} cycles",
    )


def _not_finite(candidate: FitState) -> list[Fault]:
    quality = candidate.quality
    figures = {
        name: getattr(quality, name)
        for name in ("rp", "rwp", "rexp", "gof", "chi2", "rwp_no_background", "abs_residual")
    }
    bad = [name for name, value in figures.items() if not (math.isfinite(value) and value >= 0)]
    bad += [parameter.name for parameter in candidate.parameters if not math.isfinite(parameter.value)]
    if quality.n_points <= 0:
        bad.append("n_points")
    return [("result_not_finite", f"{', '.join(bad[:5])} not finite or negative")] if bad else []


def _freed_beyond(action: Action, parent: FitState, candidate: FitState) -> list[Fault]:
    """What the engine freed must lie inside what was asked for, earlier steps included."""
    asked = [*parent.released, *action.parameters]
    if action.kind is ActionKind.PROFILE_MATCH:
        asked += returning(parent)
    names = [p.name for p in candidate.parameters]
    free = [p.name for p in candidate.parameters if p.released and not p.derived]
    asked_names = set(resolve_all(asked, names))
    if action.kind is ActionKind.FREEZE:
        asked_names -= set(resolve_all(action.parameters, names))
    asked_names -= set(resolve_all(action.instead_of, names))
    allowed = set(Sites.of(parent).closure(asked_names, names))
    beyond = [name for name in free if name not in allowed]
    if not beyond:
        return []
    return [("released_outside_action", f"the engine freed {', '.join(beyond[:5])}, which nobody asked for")]


def _beyond_bounds(action: Action, parent: FitState, candidate: FitState) -> list[Fault]:
    """A bound holds for what is free, and one of this action also for what is tied to that."""
    names = [p.name for p in candidate.parameters]
    moved = set(Sites.of(parent).closure(resolve_all(action.parameters, names), names)) if action.bounds else set()
    mine, earlier = BoundIndex(action.bounds), BoundIndex(parent.bounds)
    beyond: list[str] = []
    for parameter in candidate.parameters:
        if not (parameter.released or parameter.name in moved):
            continue
        bound = mine.of(parameter.name) or earlier.of(parameter.name)
        if bound is None or (parameter.name.endswith(_OFF_DIAGONAL) and bound.selector != parameter.name):
            continue
        slack = _BOUND_SLACK * max(abs(bound.lower), abs(bound.upper), 1e-6)
        if not bound.lower - slack <= parameter.value <= bound.upper + slack:
            beyond.append(f"{parameter.name} = {parameter.value:.6g} (allowed {bound.lower:.6g} to {bound.upper:.6g})")
    return [("bound_not_honoured", f"outside its bound: {', '.join(beyond[:5])}")] if beyond else []


def is_worse(before: Violation, after: Violation, worsening: float) -> bool:
    """Return whether an inherited violation went clearly further past its limit, or from soft to hard."""
    if before.severity == "soft" and after.severity == "hard":
        return True
    values = (before.value, before.limit, after.value, after.limit)
    if any(value is None or not math.isfinite(value) for value in values):
        return False
    excess_before = abs(float(before.value or 0.0) - float(before.limit or 0.0))
    excess_after = abs(float(after.value or 0.0) - float(after.limit or 0.0))
    return excess_after > excess_before * (1.0 + worsening) * (1.0 + 1e-9)


def check_violations(parent: FitState, candidate: FitState, *, policy: Policy) -> GateCheck:
    """Rule 3: no new violation; one that got clearly worse is new.

    Codes: ``new_violation``, and the violations' own.
    """
    inherited = {violation.key: violation for violation in parent.violations}
    faults: list[Fault] = []
    for violation in candidate.violations:
        if violation.severity == "soft" and policy.limits.soft_violations == "warn":
            continue
        before = inherited.get(violation.key)
        if before is None:
            faults.append((violation.code, f"new: {_tell(violation)}"))
        elif is_worse(before, violation, policy.limits.violation_worsening):
            faults.append((violation.code, f"worse than before: {_tell(violation)}"))
    return _verdict(
        "violations",
        faults,
        head="new_violation",
        measured=float(len(faults)),
        limit=0.0,
        text=f"{len(candidate.violations)} violations, none of them new" if candidate.violations else "no violation",
    )


def _tell(violation: Violation) -> str:
    text = violation.text or violation.code
    figures = "" if violation.value is None else f" = {violation.value:.6g}"
    limit = "" if violation.limit is None else f" (limit {violation.limit:.6g})"
    return f"{violation.subject}{figures}{limit}: {text}"


def check_rwp(parent: FitState, candidate: FitState, parent_rwp: float | None, *, policy: Policy) -> GateCheck:
    """Rule 4: Rwp at most the policy's factor times the parent's on the same points, and those nearly all.

    Codes: ``rwp_increased``, ``rwp_not_comparable``, ``points_left_out``.
    """
    rwp = candidate.quality.rwp
    fewest = (1.0 - policy.limits.points_lost) * parent.quality.n_points
    if candidate.quality.n_points < fewest:
        text = f"{parent.quality.n_points} points -> {candidate.quality.n_points}, more than may be left out in a step"
        return _verdict("rwp", [("points_left_out", text)], measured=rwp)
    if parent_rwp is None or not math.isfinite(parent_rwp):
        text = "the points differ and the parent's Rwp was not recomputed on them"
        return _verdict("rwp", [("rwp_not_comparable", text)], measured=rwp)
    limit = policy.limits.rwp_factor * parent_rwp
    words = f"Rwp {100 * parent_rwp:.3f} % -> {100 * rwp:.3f} %"
    faults = (
        []
        if rwp <= limit * (1 + _EDGE)
        else [("rwp_increased", f"{words}, more than {policy.limits.rwp_factor} times")]
    )
    return _verdict("rwp", [*faults, *_rwp_of_each(parent, candidate, policy)], measured=rwp, limit=limit, text=words)


def _rwp_of_each(parent: FitState, candidate: FitState, policy: Policy) -> list[Fault]:
    """One of several histograms may not pay for another: its own Rwp is held to the same factor."""
    faults: list[Fault] = []
    for histogram in histograms_of(candidate):
        name = f"{HISTOGRAM}{histogram}.rwp"
        before, after = read_metric(parent, name).value, read_metric(candidate, name).value
        if before is None or after is None or after > policy.limits.rwp_factor * before * (1 + _EDGE):
            told = "unknown" if before is None or after is None else f"{100 * before:.3f} % -> {100 * after:.3f} %"
            faults.append(("rwp_increased", f"Rwp of histogram {histogram} {told}"))
    return faults


def check_unexplained(parent: FitState, candidate: FitState, *, policy: Policy) -> GateCheck:
    """Rule 5: the unexplained-peak ratio may rise a little; a peak that was explained must stay explained.

    Where the parent could not tell its ratio there is nothing to compare with, and the rule says so. A candidate that
    can no longer tell is refused: an action must not blind the measure that judges it.
    """
    before, after = read_metric(parent, _Q), read_metric(candidate, _Q)
    if before.level is None:
        return _verdict("unexplained", [], measured=after.level, text="the parent's ratio could not be told")
    if after.level is None:
        text = f"the ratio can no longer be told: {after.reason}"
        return _verdict("unexplained", [("unexplained_unknown", text)])
    spread = math.hypot(_esd(parent, _Q), _esd(candidate, _Q))
    limit = before.level + policy.limits.unexplained_rise + policy.limits.unexplained_rise_esds * spread
    words = f"unexplained-peak ratio {before.level:.4f} -> {after.level:.4f}"
    faults: list[Fault] = []
    if after.level > limit * (1 + _EDGE):
        faults.append(("unexplained_peaks_increased", f"{words} (limit {limit:.4f})"))
    faults += _unexplained_of_each(parent, candidate, policy)
    timed = is_timed(candidate) or bool(histograms_of(candidate))  # axes of several differ, spacings do not
    fresh = _new_peaks(parent.unexplained_peaks, candidate.unexplained_peaks, policy.limits, timed=timed)
    share = sum(peak.area_share for peak in fresh)
    if share > policy.limits.new_peak_share and after.level >= before.level:
        where = ", ".join(f"{peak.two_theta_deg:.3f}" for peak in fresh[:5])
        unit = "us" if is_timed(candidate) else "deg"
        faults.append(
            ("new_unexplained_peak", f"peaks at {where} {unit} were explained and no longer are ({share:.3f})")
        )
    return _verdict("unexplained", faults, measured=after.level, limit=limit, text=words)


def _unexplained_of_each(parent: FitState, candidate: FitState, policy: Policy) -> list[Fault]:
    """Hold the ratio of each of several histograms to the rise that is allowed."""
    faults: list[Fault] = []
    for histogram in histograms_of(candidate):
        name = f"{HISTOGRAM}{histogram}.{_Q}"
        before, after = read_metric(parent, name).level, read_metric(candidate, name).level
        if before is None or after is None:
            continue
        spread = policy.limits.unexplained_rise_esds * math.hypot(_esd(parent, name), _esd(candidate, name))
        if after > (before + policy.limits.unexplained_rise + spread) * (1 + _EDGE):
            text = f"unexplained-peak ratio of histogram {histogram} {before:.4f} -> {after:.4f}"
            faults.append(("unexplained_peaks_increased", text))
    return faults


def _esd(state: FitState, name: str) -> float:
    feature = state.features.get(name)
    return 0.0 if feature is None or feature.esd is None or not math.isfinite(feature.esd) else feature.esd


def _new_peaks(
    before: Sequence[UnexplainedPeak], after: Sequence[UnexplainedPeak], limits: Limits, *, timed: bool
) -> list[UnexplainedPeak]:
    """Return the peaks after that were not there before: by degrees, over the time of flight by relative spacing."""
    if timed:
        spacings = [(peak.histogram, peak.d_angstrom) for peak in before]
        near = limits.new_peak_tolerance_spacing
        return [
            peak
            for peak in after
            if not any(h == peak.histogram and abs(peak.d_angstrom / d - 1.0) <= near for h, d in spacings)
        ]
    old, tolerance = [peak.two_theta_deg for peak in before], limits.new_peak_tolerance_deg
    return [peak for peak in after if not any(abs(peak.two_theta_deg - there) <= tolerance for there in old)]


def check_correlation(action: Action, parent: FitState, candidate: FitState, *, policy: Policy) -> GateCheck:
    """Rule 6: max |r| outside linear background bases.

    A freeze passes, and so does any action that lowers an inherited maximum. Without a covariance, two or more free
    parameters cannot be judged, and are not passed (``correlation_unknown``).
    """
    after, limit = candidate.complexity.max_correlation, policy.limits.max_correlation
    before = parent.complexity.max_correlation
    if after is None or not math.isfinite(after):
        known = candidate.complexity.n_free < 2 or candidate.complexity.background_max_correlation is not None
        text = f"{candidate.complexity.n_free} parameters are free and no correlation is on record"
        return _verdict("correlation", [] if known else [("correlation_unknown", text)], limit=limit)
    after = abs(after)
    pair = candidate.complexity.max_correlation_pair
    words = f"max |r| = {after:.4f}" + (f" between {pair[0]} and {pair[1]}" if pair else "")
    inherited = before is not None and abs(before) > limit
    if after <= limit * (1 + _EDGE) or action.kind is ActionKind.FREEZE:
        return _verdict("correlation", [], measured=after, limit=limit, text=words)
    if inherited and before is not None and _not_raised(abs(before), after, parent, candidate, policy):
        return _verdict("correlation", [], measured=after, limit=limit, text=f"{words}, inherited {abs(before):.4f}")
    return _verdict("correlation", [("correlation_too_high", words)], measured=after, limit=limit)


def _not_raised(before: float, after: float, parent: FitState, candidate: FitState, policy: Policy) -> bool:
    if after < before:
        return True
    first, second = parent.complexity.max_correlation_pair, candidate.complexity.max_correlation_pair
    same = first is not None and second is not None and set(first) == set(second)
    slack = policy.limits.inherited_correlation_slack
    return same and slack > 0 and after <= before + slack
