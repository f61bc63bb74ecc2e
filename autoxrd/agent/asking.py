"""What does the record say of a state? Features, diagnosis and audit, looked up and judged, never computed anew."""

from __future__ import annotations

from autoxrd.agent.answers import Audit, CauseFound, Coded, Diagnosis, Features, Release, StateHead
from autoxrd.agent.auditing import audited
from autoxrd.agent.job import Job
from autoxrd.domain.state import FitState
from autoxrd.errors import NotFound, UserInputError
from autoxrd.gates.audit import AuditFinding, Verdict
from autoxrd.gates.known import of_known_cell
from autoxrd.gates.metrics import GAIN_PREFIX, is_timed
from autoxrd.science.diagnosis import DiagnosisSettings, rank_causes
from autoxrd.store.reading import GraphReader

__all__ = ["ask_audit", "ask_diagnosis", "ask_features", "find_state", "head_of"]

_SHORTEST_PREFIX = 4


def find_state(graph: GraphReader, named: str | None = None) -> str:
    """Return the id of a state that a person or an agent named.

    Args:
        graph: of the job.
        named: ``root``, ``current`` (the last accepted state), ``final``, an id or at least four digits of it; None
            means the final state of a finished job, else the current one.

    Raises:
        NotFound: ``root_missing``, ``state_unknown``, ``final_missing``.
        UserInputError: ``state_ambiguous``.
    """
    root, current, finish = graph.root(), graph.current(), graph.finished()
    if root is None or current is None:
        raise NotFound("root_missing", "The job has no state yet: go on with it first (autoxrd resume).")
    final = finish.final_state if finish else None
    if named in (None, "final"):
        if named == "final" and final is None:
            raise NotFound("final_missing", "The job has no final state yet: finish it, or name another state.")
        return final or current
    if named in ("root", "current"):
        return root if named == "root" else current
    assert named is not None
    ids = [node.id for node in graph.states() if node.id == named or _is_prefix(named, node.id)]
    if not ids:
        text = (
            f"The job has no state {named[:40]!r}: 'autoxrd graph' shows them; root, current and final are names too."
        )
        raise NotFound("state_unknown", text)
    if len(ids) > 1:
        raise UserInputError("state_ambiguous", f"{named!r} begins the ids of {len(ids)} states: give more digits.")
    return ids[0]


def _is_prefix(named: str, state_id: str) -> bool:
    return len(named) >= _SHORTEST_PREFIX and state_id.startswith(named)


def head_of(graph: GraphReader, state_id: str) -> StateHead:
    """Return what tells a state from others."""
    node, finish = graph.node(state_id), graph.finished()
    return StateHead(
        id=node.id,
        stage=node.state.stage,
        status=node.status.value,
        final=finish is not None and finish.final_state == node.id,
        quality=node.state.quality,
        released=node.state.released,
    )


def ask_features(graph: GraphReader, named: str | None = None) -> Features:
    """Return every measured feature of a state."""
    state_id = find_state(graph, named)
    return Features(state=head_of(graph, state_id), features=graph.state(state_id).features)


def ask_diagnosis(graph: GraphReader, named: str | None = None) -> Diagnosis:
    """Return the causes that the features of a state name, and what each further release promises."""
    state_id = find_state(graph, named)
    state = graph.state(state_id)
    causes = rank_causes(state.features)
    return Diagnosis(
        state=head_of(graph, state_id),
        causes=tuple(
            CauseFound(cause=c.name, feature=c.feature, chi2=c.chi2, significance=c.significance, rival=c.rival)
            for c in causes
        ),
        releases=_releases(state),
        unexplained_peaks=state.unexplained_peaks,
        axis_unit="us" if is_timed(state) else "deg",
        violations=state.violations,
        cautions=tuple(_cautions(state)),
    )


def _releases(state: FitState) -> tuple[Release, ...]:
    found = [
        Release(
            selector=name.removeprefix(GAIN_PREFIX),
            gain=feature.value,
            f_value=feature.significance,
            parameters=feature.n_used,
        )
        for name, feature in state.features.items()
        if name.startswith(GAIN_PREFIX)
        and feature.available
        and feature.value is not None
        and not of_known_cell(name.removeprefix(GAIN_PREFIX), state)
    ]
    return tuple(sorted(found, key=lambda r: (-r.gain, r.selector)))


def _cautions(state: FitState) -> list[Coded]:
    """Return what limits the diagnosis: it reads first-order gains, on the record's own conditions."""
    found, settings = [], DiagnosisSettings()
    if "background" not in state.released:
        text = "Scale factors and background are not fitted in this state; release them first, then ask again."
        found.append(Coded(code="linear_not_fitted", text=text))
    rms = state.features.get("position.rms")
    if rms is not None and rms.available and rms.value is not None and rms.value > settings.linear_fwhm:
        text = (
            f"The lines are off by {rms.value:.2f} of their width: what a release of shifts promises is a guess here, "
            "and the measured offsets speak for them instead."
        )
        found.append(Coded(code="offsets_not_linear", text=text, measured=rms.value, limit=settings.linear_fwhm))
    if not state.convergence.converged:
        found.append(Coded(code="not_converged", text="The least squares of this state did not converge."))
    return found


def ask_audit(graph: GraphReader, job: Job, named: str | None = None) -> Audit:
    """Judge a state as the result of its job, without ending the job."""
    state_id = find_state(graph, named)
    head, state = head_of(graph, state_id), graph.state(state_id)
    path = graph.accepted_path(state_id) if head.status != "rejected" else []
    audit = audited(graph, job, state, last_kind=path[-1][0].action.kind if path else None)
    reasons, warnings = [_coded(f) for f in audit.reasons], [_coded(f) for f in audit.warnings]
    if head.status == "rejected":
        reasons.insert(0, Coded(code="state_rejected", text="The gate rejected this state: it cannot be a result."))
    notes: list[Coded] = []
    if head.final:
        warnings, notes = _with_record(graph, warnings)
    verdict: Verdict = "accepted_with_warnings" if warnings else "accepted"
    return Audit(
        state=head,
        verdict="abstained" if reasons else verdict,
        reasons=tuple(reasons),
        warnings=tuple(warnings),
        notes=tuple(notes),
    )


def _with_record(graph: GraphReader, warnings: list[Coded]) -> tuple[list[Coded], list[Coded]]:
    """Add the warnings and notes that the job was closed with: what its planner saw is no figure of the state."""
    finish = graph.finished()
    recorded = finish.verdict if finish else {}
    known = {item.code for item in warnings}
    more = [Coded(code=code, text=text) for code, text in recorded.get("warnings", ()) if code not in known]
    told = known | {item.code for item in more}
    notes = [Coded(code=code, text=text) for code, text in recorded.get("notes", ()) if code not in told]
    return [*warnings, *more], notes


def _coded(finding: AuditFinding) -> Coded:
    return Coded(code=finding.code, text=finding.text, measured=finding.measured, limit=finding.limit)
