"""What report.json adds to the ``--json`` object: steps, parameters, features, checks, versions, methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.domain.state import Complexity, Convergence, Feature, Violation
from autoxrd.report.boundary import Boundary
from autoxrd.report.citations import CITATIONS
from autoxrd.report.methods import methods_text
from autoxrd.report.model import ReportInput, StepRecord
from autoxrd.report.parameters import accepted_path, parameter_rows
from autoxrd.report.summary import CodedText, ReportSummary, build_summary, coded

__all__ = ["Report", "build_report"]


class PatternReport(Boundary):
    """The measured pattern."""

    name: str
    sha256: str
    format: str
    title: str
    axis: str
    sigma_origin: str
    excluded_regions: list[tuple[float, float]]


class SettingsReport(Boundary):
    """The instrument as the job started from it."""

    radiation: str
    geometry: str
    wavelengths_angstrom: list[float]
    relative_intensities: list[float]
    polarization: float
    goniometer_radius_mm: float | None
    profile_calibrated: bool
    origin: str


class JobReport(Boundary):
    """What was asked, with what."""

    pattern: PatternReport
    instrument: SettingsReport
    structure_files: dict[str, str]
    """Phase name -> SHA-256 of the structure file it came from."""
    planner: str
    policy_name: str
    policy_hash: str
    command: str
    created: str


class StepReport(Boundary):
    """One attempt with everything that decided it."""

    ordinal: int
    planner: str
    action: Action
    decision: Decision
    parent_state: str
    candidate_state: str | None
    on_accepted_path: bool
    rwp_percent_before: float | None
    rwp_percent_after: float | None
    violations: list[Violation]
    error: str
    seconds: float


class ParameterReport(Boundary):
    """One parameter or derived quantity of the final state; columns as in parameters.csv."""

    name: str
    phase: str
    atom: str
    quantity: str
    value: float | None
    esd: float | None
    uncertainty: float | None
    """Standard uncertainty with what the fit held let go within what it plausibly is; null where that is not told."""
    unit: str
    lower: float | None
    upper: float | None
    released_in_step: int | None
    derived: bool


class ReferenceReport(Boundary):
    """A work that the methods text cites."""

    text: str
    doi: str


class MethodsReport(Boundary):
    """A methods section for a paper, generated from what was done."""

    paragraphs: list[str]
    references: list[ReferenceReport]


class CandidateSetReport(Boundary):
    """A set of candidates as their lines ranked it before anything was refined."""

    phases: list[str]
    """The strongest first."""
    explained: float
    """Share of the signal."""
    behind: float
    """Bayesian information criterion less that of the best set."""
    strains: list[float]
    """Relative change of each phase's cell lengths."""
    shift_deg: float
    """Common shift of all lines, degrees 2theta."""


class Details(Boundary):
    """Everything behind the summary."""

    job: JobReport
    candidate_sets: list[CandidateSetReport]
    """Best first; empty where no candidates were given."""
    reasons: list[CodedText]
    qc_notices: list[CodedText]
    steps: list[StepReport]
    parameters: list[ParameterReport]
    features: dict[str, Feature]
    violations: list[Violation]
    complexity: Complexity
    convergence: Convergence
    versions: dict[str, str]
    methods: MethodsReport
    file_sha256: dict[str, str]
    """File name -> SHA-256, of the files written before this one."""


class Report(ReportSummary):
    """The whole of report.json."""

    details: Details


def _job(inp: ReportInput) -> JobReport:
    job, ins = inp.job, inp.job.instrument
    return JobReport(
        pattern=PatternReport(
            name=job.pattern_name, sha256=job.pattern_sha256, format=job.pattern_format, title=job.pattern_title,
            axis=job.axis.value, sigma_origin=job.sigma_origin.value, excluded_regions=list(job.excluded_regions),
        ),
        instrument=SettingsReport(
            radiation=ins.radiation.value, geometry=ins.geometry.value,
            wavelengths_angstrom=list(ins.wavelengths_angstrom),
            relative_intensities=[line.relative_intensity for line in ins.lines],
            polarization=ins.polarization, goniometer_radius_mm=ins.goniometer_radius_mm,
            profile_calibrated=ins.profile_calibrated, origin=ins.origin,
        ),
        structure_files={s.name: s.source_sha256 for s in job.structures},
        planner=job.planner, policy_name=job.policy_name, policy_hash=job.policy_hash,
        command=job.command, created=job.created,
    )  # fmt: skip


def _step(step: StepRecord, *, planner: str, on_path: bool) -> StepReport:
    return StepReport(
        ordinal=step.ordinal,
        planner=step.planner or planner,
        action=step.action,
        decision=step.decision,
        parent_state=step.parent_state,
        candidate_state=step.candidate_state,
        on_accepted_path=on_path,
        rwp_percent_before=None if step.rwp_before is None else 100 * step.rwp_before,
        rwp_percent_after=None if step.rwp_after is None else 100 * step.rwp_after,
        violations=list(step.violations),
        error=step.error,
        seconds=step.seconds,
    )


def _parameters(inp: ReportInput) -> list[ParameterReport]:
    return [
        ParameterReport(
            name=r.name, phase=r.phase, atom=r.atom, quantity=r.quantity, value=r.value, esd=r.esd,
            uncertainty=r.uncertainty, unit=r.unit, lower=r.lower, upper=r.upper, released_in_step=r.released_in_step,
            derived=r.derived,
        )
        for r in parameter_rows(inp)
    ]  # fmt: skip


def _methods(inp: ReportInput) -> MethodsReport:
    text = methods_text(inp)
    # A work without a DOI is a program: its version identifies it.
    version = {inp.state.engine: f" Version {inp.state.engine_version}."}
    references = [
        ReferenceReport(text=CITATIONS[k].full + ("" if CITATIONS[k].doi else version.get(k, "")), doi=CITATIONS[k].doi)
        for k in text.cited
    ]
    return MethodsReport(paragraphs=list(text.paragraphs), references=references)


def build_report(inp: ReportInput, files: Mapping[str, str], file_sha256: Mapping[str, str]) -> Report:
    """Build report.json: the ``--json`` object and the details behind it.

    Args:
        inp: the report's input.
        files: what it is -> file name.
        file_sha256: hashes of the files that are already rendered.
    """
    path = {s.ordinal for s in accepted_path(inp.steps, inp.state_id)}
    details = Details(
        job=_job(inp),
        candidate_sets=[CandidateSetReport(**dataclasses.asdict(one)) for one in inp.job.candidate_sets],
        reasons=coded(inp.reasons),
        qc_notices=coded(inp.qc_notices),
        steps=[_step(s, planner=inp.job.planner, on_path=s.ordinal in path) for s in inp.steps],
        parameters=_parameters(inp),
        features=dict(inp.state.features),
        violations=list(inp.state.violations),
        complexity=inp.state.complexity,
        convergence=inp.state.convergence,
        versions=dict(inp.job.versions),
        methods=_methods(inp),
        file_sha256=dict(file_sha256),
    )
    summary = build_summary(inp, files)
    return Report(**{name: getattr(summary, name) for name in ReportSummary.model_fields}, details=details)
