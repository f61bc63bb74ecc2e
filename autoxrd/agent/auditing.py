"""How is the final state of a job judged? The gate's audit, and causes beyond the model where that is not good."""

from __future__ import annotations

from collections.abc import Iterator

from autoxrd.agent.codec import arrays_of, decode_reflections, decode_structures, load_arrays
from autoxrd.agent.job import Job
from autoxrd.domain.action import ActionKind
from autoxrd.domain.naming import full_name
from autoxrd.domain.pattern import AxisKind
from autoxrd.domain.standard import AMORPHOUS, ExternalStandard, Standard
from autoxrd.domain.state import FitState
from autoxrd.gates.audit import AuditFinding, FinalAudit, Verdict, final_audit
from autoxrd.gates.known import known_cells
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.suspects import Suspects, find_suspects
from autoxrd.store.reading import GraphReader

__all__ = ["audited"]

_LEAST_PRESENCE = UnexplainedSettings().presence_esd


def audited(graph: GraphReader, job: Job, state: FitState, *, last_kind: ActionKind | None) -> FinalAudit:
    """Return the audit of a state as the result of its job.

    Args:
        graph: holds the state's arrays.
        job: its job.
        state: the state.
        last_kind: kind of the last accepted action on its path, None where there is none.
    """
    audit = _with_standards(final_audit(state, policy=job.policy, last_kind=last_kind), job, state)
    if audit.verdict == "accepted":
        return audit
    audit = final_audit(state, policy=job.policy, last_kind=last_kind, suspects=_suspects(graph, job, state))
    audit = _with_standards(audit, job, state)
    if audit.verdict != "abstained" or not job.candidates:
        return audit
    return audit._replace(reasons=(_none_fits(job), *audit.reasons))


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


_SCALE_MOVED = 2e-3
"""Relative: wavelengths of reactors and DIFC of files are stated to 1e-3 or better."""
_SCALES = {"instrument.wavelength": "the wavelength", "instrument.difC": "DIFC"}


def _with_standards(audit: FinalAudit, job: Job, state: FitState) -> FinalAudit:
    """Warn where a standard was declared and the state gives nothing by it, or something that cannot be."""
    found = [*_unseen(job, state), *_moved_scales(job, state)]
    if not found:
        return audit
    verdict: Verdict = "accepted_with_warnings" if audit.verdict == "accepted" else audit.verdict
    return audit._replace(verdict=verdict, warnings=(*audit.warnings, *found))


def _unseen(job: Job, state: FitState) -> Iterator[AuditFinding]:
    """Return the standards that the final model does not have, or what was taken for granted of one."""
    if job.standard is not None:
        finding = _of_standard(job.standard, seen=any(p.name == AMORPHOUS for p in state.parameters))
        if finding is not None:
            yield finding
    for known in job.known_cells:
        presence = state.features.get(f"presence.{known.phase}")
        weak = presence is not None and presence.value is not None and presence.value < _LEAST_PRESENCE
        if known.phase not in known_cells(state) or weak:
            text = f"{known.phase}, whose cell was to set the scale of lengths, is not seen in the pattern"
            yield AuditFinding(code="known_cell_not_seen", text=f"{text}: the other cells are not tied to it")


def _moved_scales(job: Job, state: FitState) -> Iterator[AuditFinding]:
    """Return what a certified cell makes of a wavelength or DIFC that is too far from the stated one to be true."""
    values = {p.name: p.value for p in state.parameters}
    for histogram in job.histograms if known_cells(state) else ():
        flight = histogram.instrument.flight
        given = flight.dif_c if flight is not None else next(iter(histogram.instrument.wavelengths_angstrom), 0.0)
        scale = "instrument.wavelength" if flight is None else "instrument.difC"
        value = values.get(full_name(histogram.name, scale) if job.others else scale, given)
        if given and abs(value / given - 1.0) > _SCALE_MOVED:
            names = ", ".join(known_cells(state))
            text = (
                f"with the stated cell of {names} {_SCALES[scale]} comes out at {value:.6g},"
                f" {100 * (value / given - 1):+.2f} % from {given:.6g}: the cell, or what was stated of the instrument,"
                " is wrong"
            )
            yield AuditFinding(code="known_cell_doubtful", text=text, measured=value / given - 1.0, limit=_SCALE_MOVED)


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
