"""How does a job end? Final audit, export of the engine's files, and the report's input."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

from numpy.typing import NDArray

from autoxrd import __version__
from autoxrd.agent.auditing import audited
from autoxrd.agent.codec import arrays_of, decode_reflections, decode_structures, load_arrays
from autoxrd.agent.controller import Stopped
from autoxrd.agent.history import step_records
from autoxrd.agent.job import FIRST, Job
from autoxrd.domain.histogram import Histogram
from autoxrd.domain.naming import HISTOGRAM
from autoxrd.domain.pattern import Notice
from autoxrd.domain.state import FitState, MeasuredValue, ParameterValue
from autoxrd.gates.histograms import as_seen_by
from autoxrd.gates.policy import policy_hash
from autoxrd.report.model import FitArrays, JobInfo, ReportInput, Verdict
from autoxrd.store.records import Finish
from autoxrd.store.writing import GraphWriter

__all__ = ["Conclusion", "conclude", "concluded", "report_input"]

_OWN_FIGURES = ("rp", "rwp", "rexp", "gof", "chi2", "rwp_no_background", "abs_residual")
_LIBRARIES = ("numpy", "scipy", "gemmi", "pydantic", "rietx", "rietx-kernels")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the job says in the end.

    Args:
        state_id: the final state.
        verdict: accepted, accepted_with_warnings or abstained.
        reasons, warnings: codes with their texts.
        notes: what the planner tells beside them.
    """

    state_id: str
    verdict: Verdict
    reasons: tuple[Notice, ...]
    warnings: tuple[Notice, ...]
    notes: tuple[Notice, ...] = ()


def conclude(graph: GraphWriter, job: Job, stopped: Stopped) -> Conclusion:
    """Audit the final state and close the graph."""
    state = graph.state(stopped.state)
    path = graph.accepted_path(stopped.state)
    last = path[-1][0].action.kind if path else None
    audit = audited(graph, job, state, last_kind=last)
    reasons = tuple(Notice(f.code, f.text) for f in audit.reasons)
    objections = tuple(Notice(code, text) for code, text in stopped.objections)
    warnings = [Notice(f.code, f.text) for f in audit.warnings]
    warnings += [Notice(code, text) for code, text in stopped.notes if code.endswith("_ambiguous")]
    warnings += [Notice(code, text) for code, text in stopped.warnings]
    if stopped.code != "planner_finished":
        warnings.append(Notice(stopped.code, stopped.text))
    verdict = Verdict(audit.verdict)
    if objections:  # one way only: a planner can take a verdict back, never give a better one
        verdict, reasons = Verdict.ABSTAINED, (*reasons, *objections)
    elif verdict is Verdict.ACCEPTED and warnings:
        verdict = Verdict.ACCEPTED_WITH_WARNINGS
    content = {
        "verdict": verdict.value,
        "reasons": [[n.code, n.text] for n in reasons],
        "warnings": [[n.code, n.text] for n in warnings],
        "stopped": [stopped.code, stopped.text],
        "notes": [list(note) for note in stopped.notes],
    }
    if graph.finished() is None:
        graph.finish(stopped.state, content)
    notes = tuple(Notice(code, text) for code, text in stopped.notes if not code.endswith("_ambiguous"))
    return Conclusion(stopped.state, verdict, reasons, tuple(warnings), notes)


def concluded(finish: Finish) -> Conclusion:
    """Read back what `conclude` recorded: a report can be made again without asking the planner again."""
    said = finish.verdict
    reasons, warnings, notes = (
        tuple(Notice(str(code), str(text)) for code, text in said[name]) for name in ("reasons", "warnings", "notes")
    )
    notes = tuple(note for note in notes if not note.code.endswith("_ambiguous"))
    return Conclusion(str(finish.final_state), Verdict(said["verdict"]), reasons, warnings, notes)


def report_input(
    graph: GraphWriter,
    job: Job,
    conclusion: Conclusion,
    *,
    engine_files: Mapping[str, bytes],
    extra_notices: Sequence[Notice] = (),
    wall_seconds: float,
    command: str = "",
) -> ReportInput:
    """Collect all that the report renders from the graph."""
    state = graph.state(conclusion.state_id)
    stored = load_arrays(graph.artifacts.get(state.arrays))
    arrays = arrays_of(stored, FIRST)
    attempts = graph.attempts()
    nodes = graph.states()
    root = next(node for node in nodes if node.parent is None)
    engine_seconds = sum(float(a.telemetry.get("engine_seconds") or 0.0) for a in attempts)
    whole = ReportInput(
        job=_job_info(job, command, _started(graph), job.histograms[0]),
        verdict=conclusion.verdict,
        reasons=conclusion.reasons,
        warnings=conclusion.warnings,
        qc_notices=(*job.notices, *conclusion.notes, *extra_notices),
        state=state,
        state_id=conclusion.state_id,
        graph_root=graph.root_hash(),
        arrays=FitArrays(**{name: arrays[name] for name in FitArrays.__dataclass_fields__}),
        reflections=decode_reflections(arrays),
        structures=decode_structures(graph.artifacts.get(state.files["structures"])),
        steps=step_records(attempts, {node.id: node.state for node in nodes}),
        graph=graph.export(),
        engine_files=engine_files,
        engine_seconds=engine_seconds + float(root.telemetry.get("engine_seconds") or 0.0),
        wall_seconds=wall_seconds,
    )
    if not job.others:
        return whole
    return replace(whole, histograms={h.name: _seen(whole, job, h, arrays_of(stored, h.name)) for h in job.histograms})


def _seen(whole: ReportInput, job: Job, histogram: Histogram, arrays: Mapping[str, NDArray[Any]]) -> ReportInput:
    """Return the report's input as one of several histograms sees it: its data, its figures, its bare names."""
    state = as_seen_by(histogram.name, whole.state)
    own = {p.name: p for p in state.parameters}
    level = {name: whole.state.features[f"{HISTOGRAM}{histogram.name}.{name}"].value or 0.0 for name in _OWN_FIGURES}
    quality = whole.state.quality.model_copy(
        update={
            **level,
            "n_points": int(arrays["x"].size),
            "n_parameters": sum(1 for name in arrays["covariance_names"].tolist() if name),
            "r_bragg": {p.name: _r_bragg(state, p.name) for p in state.phases},
        }
    )
    phases = tuple(
        phase.model_copy(
            update={
                "weight_fraction": _value(own, f"phase.{phase.name}.weight_fraction"),
                "cell": {
                    key: _value(own, f"phase.{phase.name}.effective_cell.{key}") or value
                    for key, value in phase.cell.items()
                },
                "r_bragg": _r_bragg(state, phase.name),
            }
        )
        for phase in state.phases
    )
    return replace(
        whole,
        job=_job_info(job, whole.job.command, whole.job.created, histogram),
        state=state.model_copy(update={"quality": quality, "phases": phases}),
        arrays=FitArrays(**{name: arrays[name] for name in FitArrays.__dataclass_fields__}),
        reflections=decode_reflections(arrays),
        engine_files={},
    )


def _r_bragg(state: FitState, phase: str) -> float | None:
    feature = state.features.get(f"r_bragg.{phase}")
    return None if feature is None else feature.value


def _value(parameters: Mapping[str, ParameterValue], name: str) -> MeasuredValue | None:
    found = parameters.get(name)
    return None if found is None else MeasuredValue(value=found.value, esd=found.esd)


def _started(graph: GraphWriter) -> str:
    """Return when the job was started, from its log; the seconds suffice."""
    events = graph.events()
    return str(events[0].telemetry.get("recorded_at", ""))[:19] if events else ""


def _job_info(job: Job, command: str, created: str, histogram: Histogram) -> JobInfo:
    pattern = histogram.pattern
    return JobInfo(
        pattern_name=pattern.source_name,
        pattern_sha256=pattern.source_sha256,
        pattern_format=pattern.format,
        pattern_title=pattern.title,
        axis=pattern.axis,
        sigma_origin=pattern.sigma_origin,
        instrument=histogram.instrument,
        structures=job.phases,
        planner=f"{job.planner} {job.planner_version}",
        policy_name=job.policy.name,
        policy_hash=policy_hash(job.policy),
        versions=_versions(),
        command=command,
        created=created,
        excluded_regions=tuple((float(a), float(b)) for a, b in histogram.settings.get("excluded_regions", ())),
        standard=job.standard,
        known_cells=job.known_cells,
        detection_esds=job.policy.audit.phase_significance,
        fraction_error=job.policy.audit.fraction_error,
        external_error=job.policy.audit.external_error,
        profile_match=job.profile_match,
        candidate_sets=job.screening,
    )


def _versions() -> dict[str, str]:
    found = {"autoxrd": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
