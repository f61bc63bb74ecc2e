"""How is the final state of a job judged? The gate's audit, and causes beyond the model where that is not good."""

from __future__ import annotations

from autoxrd.agent.codec import arrays_of, decode_reflections, decode_structures, load_arrays
from autoxrd.agent.job import Job
from autoxrd.domain.action import ActionKind
from autoxrd.domain.pattern import AxisKind
from autoxrd.domain.standard import AMORPHOUS, ExternalStandard, Standard
from autoxrd.domain.state import FitState
from autoxrd.gates.audit import AuditFinding, FinalAudit, Verdict, final_audit
from autoxrd.science.suspects import Suspects, find_suspects
from autoxrd.store.reading import GraphReader

__all__ = ["audited"]


def audited(graph: GraphReader, job: Job, state: FitState, *, last_kind: ActionKind | None) -> FinalAudit:
    """Return the audit of a state as the result of its job.

    Args:
        graph: holds the state's arrays.
        job: its job.
        state: the state.
        last_kind: kind of the last accepted action on its path, None where there is none.
    """
    audit = _with_standard(final_audit(state, policy=job.policy, last_kind=last_kind), job, state)
    if audit.verdict == "accepted":
        return audit
    audit = final_audit(state, policy=job.policy, last_kind=last_kind, suspects=_suspects(graph, job, state))
    audit = _with_standard(audit, job, state)
    if audit.verdict != "abstained" or not job.candidates:
        return audit
    return audit._replace(reasons=(_none_fits(job), *audit.reasons))


def _with_standard(audit: FinalAudit, job: Job, state: FitState) -> FinalAudit:
    """Warn where a standard was declared and the state gives nothing by it, or something was taken for granted."""
    if job.standard is None:
        return audit
    finding = _of_standard(job.standard, seen=any(p.name == AMORPHOUS for p in state.parameters))
    if finding is None:
        return audit
    verdict: Verdict = "accepted_with_warnings" if audit.verdict == "accepted" else audit.verdict
    return audit._replace(verdict=verdict, warnings=(*audit.warnings, finding))


def _of_standard(standard: Standard, *, seen: bool) -> AuditFinding | None:
    nothing = "no fraction of the whole specimen and no amorphous content can be given"
    if not isinstance(standard, ExternalStandard):
        text = f"the standard {standard.phase} has no measurable share in the final model: {nothing}"
        return None if seen else AuditFinding(code="standard_not_seen", text=text)
    if not seen:
        text = f"the final model has no phase with a refined scale to hold against the external standard: {nothing}"
        return AuditFinding(code="standard_not_seen", text=text)
    if standard.absorption_origin != "phases":
        return None
    text = (
        "the specimen's mass absorption is taken as that of its refined phases: what is amorphous is taken to absorb"
        " alike; state it with --mass-absorption or --composition"
    )
    return AuditFinding(code="mass_absorption_assumed", text=text)


def _suspects(graph: GraphReader, job: Job, state: FitState) -> Suspects | None:
    """Look for causes beyond the model; in several histograms, each is asked and the first that has a cause tells."""
    wholly = load_arrays(graph.artifacts.get(state.arrays))
    found = None
    for histogram in job.histograms:
        if histogram.pattern.axis is not AxisKind.TWO_THETA:
            continue
        arrays = arrays_of(wholly, histogram.name)
        peaks = [p for p in state.unexplained_peaks if p.histogram in ("", histogram.name)]
        suspects = find_suspects(
            arrays["x"],
            arrays["y_obs"],
            arrays["sigma"],
            reflections=decode_reflections(arrays),
            structures=decode_structures(graph.artifacts.get(state.files["structures"])),
            peaks=tuple(peaks),
            instrument=histogram.instrument,
        )
        if found is None or (found.wavelength is None and found.magnetic is None):
            found = suspects
    return found


def _none_fits(job: Job) -> AuditFinding:
    """Say that the candidates do not do, and how far they came."""
    count = len(job.candidates)
    if not job.screening:
        text = f"none of the {count} candidates explains the pattern: no set of them was found in its lines"
        return AuditFinding(code="no_candidate_fits", text=text)
    best = job.screening[0]
    text = (
        f"no set of the {count} candidates makes a model that can be accepted; by their lines the best is "
        f"{' + '.join(best.phases)}, which explains {best.explained:.0%} of the signal"
    )
    return AuditFinding(code="no_candidate_fits", text=text, measured=best.explained)
