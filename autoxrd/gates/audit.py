"""Is a final state a success? A failing hard check never is: the job then abstains and says what is missing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

from autoxrd.domain.action import ActionKind
from autoxrd.domain.standard import AMORPHOUS, AMORPHOUS_LEVERAGE, MASS_ABSORPTION
from autoxrd.domain.state import FitState
from autoxrd.gates.known import doubted_cells
from autoxrd.gates.matching import is_match, match_findings
from autoxrd.gates.metrics import read_metric
from autoxrd.gates.model_class import AuditFinding, misfit_beyond_noise, wrong_kind
from autoxrd.gates.policy_model import Policy
from autoxrd.science.microabsorption import Absorber, corrected_fractions

if TYPE_CHECKING:  # a name only: `autoxrd policy` must not load numpy
    from autoxrd.science.suspects import Suspects

__all__ = ["AuditFinding", "FinalAudit", "Verdict", "final_audit", "misfit_beyond_noise"]

Verdict = Literal["accepted", "accepted_with_warnings", "abstained"]


_INTERNAL_CAUSES = (
    "the declared amount or crystallinity of the standard is wrong, or microabsorption or texture changes its share"
)
_EXTERNAL_CAUSES = (
    "the specimen's mass absorption is lower than the one taken, it was measured longer or with more intensity than is"
    " said, or the external standard lost intensity (roughness, a crystallinity below the stated one)"
)


class FinalAudit(NamedTuple):
    """The verdict, why a job abstains, and what its reader must know."""

    verdict: Verdict
    reasons: tuple[AuditFinding, ...]
    warnings: tuple[AuditFinding, ...]


class _Findings:
    """Collects findings; keeps each (code, text) once."""

    def __init__(self) -> None:
        self.reasons: list[AuditFinding] = []
        self.warnings: list[AuditFinding] = []

    def add(
        self, *, abstain: bool, code: str, text: str, measured: float | None = None, limit: float | None = None
    ) -> None:
        self.take(AuditFinding(code=code, text=text, measured=measured, limit=limit), abstain=abstain)

    def take(self, finding: AuditFinding, *, abstain: bool) -> None:
        into = self.reasons if abstain else self.warnings
        if finding not in into:
            into.append(finding)


def final_audit(
    state: FitState, *, policy: Policy, last_kind: ActionKind | None = None, suspects: Suspects | None = None
) -> FinalAudit:
    """Judge the state that a job ends with.

    Args:
        state: the state.
        policy: the rules.
        last_kind: kind of the last accepted action, None where the caller does not say; a job should end with a
            joint cycle.
        suspects: what was looked for beyond the model, None where nothing was.
    """
    found = _Findings()
    for abstain, finding in wrong_kind(state, policy.model_class, suspects):
        found.take(finding, abstain=abstain)
    if is_match(state):
        for abstain, finding in match_findings(state):
            found.take(finding, abstain=abstain)
    _audit_violations(state, found)
    _audit_convergence(state, policy, found, last_kind)
    _audit_peaks(state, policy, found)
    _audit_misfit(state, policy, found)
    _audit_phases(state, policy, found)
    _audit_amounts(state, found)
    _audit_correlation(state, policy, found)
    _audit_absorption(state, policy, found)
    _audit_amorphous(state, policy, found)
    for finding in doubted_cells(state):
        found.take(finding, abstain=False)
    if found.reasons:
        verdict: Verdict = "abstained"
    else:
        verdict = "accepted_with_warnings" if found.warnings else "accepted"
    return FinalAudit(verdict, tuple(found.reasons), tuple(found.warnings))


def _audit_amounts(state: FitState, found: _Findings) -> None:
    """Weight fractions are ratios of scales: one that stands where it started makes all of them guesses."""
    if len(state.phases) < 2:
        return
    held = []
    for phase in state.phases:
        scales = [p for p in state.parameters if p.name.endswith(f"phase.{phase.name}.scale")]
        if scales and not any(p.released for p in scales):
            held.append(phase.name)
    if held:
        text = f"the amount of {', '.join(held)} was never refined, so no weight fraction is known: is the cell right?"
        found.add(abstain=True, code="scale_not_refined", text=text, measured=float(len(held)))


def _audit_violations(state: FitState, found: _Findings) -> None:
    for violation in state.violations:
        found.add(
            abstain=violation.severity == "hard",
            code=violation.code,
            text=f"{violation.subject}: {violation.text or violation.code}",
            measured=violation.value,
            limit=violation.limit,
        )


def _audit_convergence(state: FitState, policy: Policy, found: _Findings, last_kind: ActionKind | None) -> None:
    limits, convergence = policy.audit, state.convergence
    if state.complexity.n_free == 0:
        found.add(abstain=True, code="nothing_refined", text="no parameter was refined: there is no fit to report")
    if not convergence.converged:
        found.add(
            abstain=True, code="not_converged", text=f"the fit did not converge ({convergence.status or 'no status'})"
        )
    shift = convergence.max_shift_over_esd
    if shift is not None and shift > limits.shift_warn:
        abstain = shift > limits.shift_abstain
        limit = limits.shift_abstain if abstain else limits.shift_warn
        text = f"the last cycle still moved a parameter by {shift:.2g} esd"
        found.add(abstain=abstain, code="still_moving", text=text, measured=shift, limit=limit)
    if convergence.dropped:
        text = f"held as singular or unsupported by the data: {', '.join(convergence.dropped[:5])}"
        found.add(abstain=False, code="parameters_dropped", text=text, measured=float(len(convergence.dropped)))
    if last_kind is not None and last_kind is not ActionKind.JOINT:
        abstain = limits.no_joint == "abstain"
        found.add(
            abstain=abstain, code="no_final_joint", text="the job did not end with a joint cycle of all parameters"
        )


def _audit_peaks(state: FitState, policy: Policy, found: _Findings) -> None:
    limits = policy.audit
    words = {
        "unexplained_peak_ratio": (
            "unexplained_peaks",
            "of the observed peak area is explained by no phase: a phase is missing or a cell is wrong",
            limits.unexplained_warn,
            limits.unexplained_abstain,
        ),
        "missing_peak_ratio": (
            "missing_peaks",
            "of the calculated peak area is not observed: a phase does not belong here",
            limits.missing_warn,
            limits.missing_abstain,
        ),
    }
    if is_match(state):
        words.pop("missing_peak_ratio")
    for metric, (code, text, warn, abstain) in words.items():
        reading = read_metric(state, metric)
        if reading.level is None:
            unknown = f"{metric} could not be measured: {reading.reason or 'not on record'}"
            found.add(abstain=limits.unknown == "abstain", code=f"{code}_unknown", text=unknown)
        elif reading.level > warn:
            over = reading.level > abstain
            limit = abstain if over else warn
            found.add(abstain=over, code=code, text=f"{reading.level:.1%} {text}", measured=reading.level, limit=limit)


def _audit_misfit(state: FitState, policy: Policy, found: _Findings) -> None:
    limits, quality = policy.audit, state.quality
    figures = (quality.rwp, quality.rwp_no_background, quality.gof)
    if not all(math.isfinite(value) and value >= 0 for value in figures):
        found.add(abstain=True, code="quality_not_finite", text="Rwp or GoF is not a finite number")
        return
    misfit = misfit_beyond_noise(quality.rwp_no_background, quality.gof)
    if misfit > limits.misfit_warn:
        over = misfit > limits.misfit_abstain
        limit = limits.misfit_abstain if over else limits.misfit_warn
        text = f"{misfit:.1%} of the diffraction signal is not explained, beyond counting noise"
        found.add(abstain=over, code="misfit_not_explained", text=text, measured=misfit, limit=limit)
    if quality.gof > limits.gof_warn:
        text = f"GoF = {quality.gof:.2f}: esds are too small by about this factor, or the weights are wrong"
        found.add(abstain=False, code="gof_high", text=text, measured=quality.gof, limit=limits.gof_warn)


def _audit_phases(state: FitState, policy: Policy, found: _Findings) -> None:
    limits = policy.audit
    for phase in state.phases:
        r_bragg = phase.r_bragg if phase.r_bragg is not None else state.quality.r_bragg.get(phase.name)
        share = phase.intensity_share if phase.intensity_share is not None else (1.0 if len(state.phases) == 1 else 0.0)
        if r_bragg is not None and r_bragg > limits.r_bragg_warn and share >= limits.r_bragg_share:
            over = r_bragg > limits.r_bragg_abstain
            limit = limits.r_bragg_abstain if over else limits.r_bragg_warn
            text = f"R_Bragg of {phase.name} is {r_bragg:.1%}: its intensities do not follow from the structure"
            found.add(abstain=over, code="r_bragg_high", text=text, measured=r_bragg, limit=limit)
        fraction = phase.weight_fraction
        if fraction is None or fraction.esd is None or not fraction.esd > 0 or len(state.phases) == 1:
            continue
        if fraction.value < limits.phase_significance * fraction.esd:
            text = f"{phase.name}: {fraction.value:.4f} +- {fraction.esd:.4f} by weight is not significant"
            ratio = fraction.value / fraction.esd
            code = "phase_not_significant"
            found.add(abstain=False, code=code, text=text, measured=ratio, limit=limits.phase_significance)


def _audit_correlation(state: FitState, policy: Policy, found: _Findings) -> None:
    value, limit = state.complexity.max_correlation, policy.limits.max_correlation
    if value is not None and abs(value) > limit:
        pair = state.complexity.max_correlation_pair
        between = f" between {pair[0]} and {pair[1]}" if pair else ""
        text = f"|r| = {abs(value):.3f}{between}: the data hardly tell these apart"
        found.add(abstain=False, code="correlation_high", text=text, measured=abs(value), limit=limit)


def _audit_absorption(state: FitState, policy: Policy, found: _Findings) -> None:
    """Say what grains of an ordinary size would do to the weight fractions where the phases absorb differently."""
    values = {parameter.name: parameter.value for parameter in state.parameters}
    absorbers = []
    for phase in state.phases:
        density, absorption = (values.get(f"phase.{phase.name}.{name}") for name in ("density", "linear_absorption"))
        if phase.weight_fraction is None or not density or absorption is None:
            return
        absorbers.append(Absorber(max(phase.weight_fraction.value, 0.0), density, absorption))
    if len(absorbers) < 2 or not sum(a.weight_fraction for a in absorbers) > 0.0:
        return
    diameter, limit = policy.audit.grain_diameter_um, policy.audit.microabsorption_warn
    corrected = corrected_fractions(absorbers, radius_um=0.5 * diameter)
    changes = [new - old.weight_fraction for new, old in zip(corrected, absorbers, strict=True)]
    largest = max(abs(change) for change in changes)
    if largest > limit:
        worst = max(range(len(changes)), key=lambda index: abs(changes[index]) / max(corrected[index], 1e-9))
        text = (
            f"microabsorption: with grains of {diameter:g} um {state.phases[worst].name} would be"
            f" {100 * corrected[worst]:.1f} % by weight, not {100 * absorbers[worst].weight_fraction:.1f} %; the phases"
            " absorb too differently for fractions without a known grain size."
            f" {_grain_range(state, absorbers, policy)}"
        )
        found.add(abstain=False, code="microabsorption", text=text, measured=largest, limit=limit)


def _grain_range(state: FitState, absorbers: list[Absorber], policy: Policy) -> str:
    """Say between what the weight fractions lie for grains of a usual size, all alike."""
    fine, coarse = policy.audit.grain_range_um
    ends = [corrected_fractions(absorbers, radius_um=0.5 * diameter) for diameter in (fine, coarse)]
    ranges = [
        f"{phase.name} {100 * first:.1f} to {100 * last:.1f} %"
        for phase, first, last in zip(state.phases, *ends, strict=True)
    ]
    return f"From {fine:g} to {coarse:g} um: {', '.join(ranges)}"


def _audit_amorphous(state: FitState, policy: Policy, found: _Findings) -> None:
    """Say where the amorphous remainder that a standard gives cannot be, or is not seen, or not measured."""
    values = {p.name: p for p in state.parameters}
    amorphous, leverage = values.get(AMORPHOUS), values.get(AMORPHOUS_LEVERAGE)
    if amorphous is None or leverage is None:
        return
    value, esd = amorphous.value, amorphous.esd
    external = MASS_ABSORPTION in values
    if esd is None and external:
        return  # no scale was refined: other findings say so
    if esd is None:
        text = (
            f"{100 * value:.1f} % by weight beside the standard follow from the declared amount alone: the standard is"
            " the only crystalline phase of the model, so that the pattern says nothing about it"
        )
        found.add(abstain=False, code="amorphous_not_measured", text=text, measured=value)
        return
    limit = policy.audit.phase_significance * esd
    if value < -limit:
        causes = _EXTERNAL_CAUSES if external else _INTERNAL_CAUSES
        text = f"the phases add up to {100 * (1 - value):.1f} +- {100 * esd:.1f} % of the specimen: {causes}"
        code = "absolute_fractions_exceed_one" if external else "amorphous_negative"
        found.add(abstain=False, code=code, text=text, measured=value, limit=-limit)
        return
    beside = policy.audit.external_error if external else policy.audit.fraction_error
    limit = policy.audit.phase_significance * math.hypot(esd, beside * leverage.value)
    if value < limit:
        text = (
            f"amorphous content {100 * value:.1f} +- {100 * esd:.1f} % by weight is below the detection limit of"
            f" {100 * limit:.1f} %: so much follows from what such figures are wrong by beside their esd"
        )
        found.add(abstain=False, code="amorphous_below_detection", text=text, measured=value, limit=limit)
