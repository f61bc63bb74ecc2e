"""The ``--json`` object of a job, which is also the head of report.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from autoxrd.domain.pattern import Notice
from autoxrd.domain.standard import absolute_name
from autoxrd.domain.state import MeasuredValue, PhaseSummary
from autoxrd.gates.amounts import fraction_uncertainty
from autoxrd.report.boundary import Boundary
from autoxrd.report.model import ReportInput, Verdict
from autoxrd.report.parameters import uncertainties
from autoxrd.report.standards import AmorphousReport, ExternalAmorphousReport, amorphous_report

__all__ = [
    "CodedText",
    "Percentages",
    "ReportSummary",
    "build_summary",
    "coded",
]


class CodedText(Boundary):
    """A stable code and a sentence for a person."""

    code: str
    text: str


class Percentages(Boundary):
    """R factors in percent, definitions of Toby (2006), doi:10.1154/1.2179804."""

    rwp_percent: float
    rexp_percent: float
    gof: float
    rp_percent: float
    rwp_without_background_percent: float
    n_points: int
    n_parameters: int


class CellReport(Boundary):
    """Cell lengths in angstrom, angles in degrees, volume in cubic angstrom."""

    a: MeasuredValue
    b: MeasuredValue
    c: MeasuredValue
    alpha: MeasuredValue
    beta: MeasuredValue
    gamma: MeasuredValue
    volume: MeasuredValue


class PhaseReport(Boundary):
    """One phase of the final state."""

    name: str
    space_group: str
    cell: CellReport
    cell_uncertainty: dict[str, float]
    """By cell parameter, angstrom or degrees: its esd, widened by what zero offset, displacement, transparency, axial
    divergence, widths and displacement parameters may be beside the values that were refined or held; a cell that was
    held has one too; empty where the engine does not tell, and of a certified cell, which counts as exact."""
    cell_certified: bool = Field(default=False, exclude_if=lambda certified: not certified)
    """The cell was stated as certified and held: zero, displacement, wavelength or DIFC and the other cells are fitted
    to it; not written where it was not."""
    weight_fraction: MeasuredValue | None
    """0 to 1 among the crystalline phases; null where it cannot be told."""
    weight_fraction_uncertainty: float | None
    """Standard uncertainty of the weight fraction: of the fit, widened like the cell's, and what mixtures of known
    composition are wrong by beside it (`audit.fraction_error` of the policy)."""
    r_bragg_percent: float | None
    detection_limit: float | None
    """Weight fraction below which the phase would not be told from nothing; null where no esd is known."""
    absolute_weight_fraction: MeasuredValue | None
    """0 to 1 of the whole specimen, by the standard; null without one."""


class InstrumentReport(Boundary):
    """What was found of the instrument; null where the model has no such parameter."""

    zero_deg: MeasuredValue | None
    """Degrees 2theta, added to the calculated positions; null over the time of flight."""
    displacement_mm: MeasuredValue | None
    wavelengths_angstrom: list[float]
    """Empty over the time of flight."""


class HistogramReport(Boundary):
    """One of several histograms that were refined together: its own figures."""

    name: str
    """As it stands in selectors, ``histogram.NAME.instrument.zero``."""
    pattern: str
    radiation: str
    quality: Percentages
    instrument: InstrumentReport
    cells: dict[str, CellReport]
    """By phase: the sample's cell, or with this histogram's wavelength or strain what it sees."""
    weight_fractions: dict[str, MeasuredValue | None]
    """By phase, from this histogram's scale factors alone."""


class UnexplainedPeakReport(Boundary):
    """A peak of the residual that no calculated reflection explains."""

    two_theta_deg: float | None
    """Null over the time of flight, where the spacing says it."""
    d_angstrom: float
    area_share: float
    """Share of the area of all observed peaks, 0 to 1."""
    histogram: str = Field(default="", exclude_if=lambda name: not name)
    """Which of several histograms has it; not written where there is one."""


class MatchReport(Boundary):
    """What a profile match shows of its lattices; intensities are free, so that agreement alone proves nothing."""

    lines: int
    """Calculated lines in the range that can be told apart."""
    lines_seen: int
    """Of these, with an intensity above the noise."""
    figure_of_merit: float | None
    """De Wolff (1968), doi:10.1107/S002188986800508X: lines at random have 2, a right cell more than 10; null where too
    few lines stand out."""
    figure_of_merit_of: str
    """How many observed lines it is of, and by how many calculated ones they are explained."""


class StepCounts(Boundary):
    """How many attempts were accepted and rejected."""

    accepted: int
    rejected: int


class EngineReport(Boundary):
    """Which engine computed the fit, and how long it took."""

    name: str
    version: str
    seconds: float


class ReportSummary(Boundary):
    """The result of a job: R factors in percent, lengths in angstrom, fractions 0 to 1."""

    schema_: Literal["autoxrd.report/1"] = Field(default="autoxrd.report/1", alias="schema")
    verdict: Verdict
    reasons: list[str]
    quality: Percentages
    phases: list[PhaseReport]
    amorphous: AmorphousReport | ExternalAmorphousReport | None
    """By an internal or an external standard. Null where no standard was declared, or nothing of it was seen."""
    instrument: InstrumentReport
    """Of the first histogram where there are several."""
    histograms: list[HistogramReport] = Field(default_factory=list, exclude_if=lambda items: not items)
    """Each of several histograms; not written where there is one."""
    match: MatchReport | None = Field(default=None, exclude_if=lambda match: match is None)
    """Of a profile match; not written of a structure."""
    unexplained_peak_ratio: float | None
    unexplained_peaks: list[UnexplainedPeakReport]
    warnings: list[CodedText]
    steps: StepCounts
    engine: EngineReport
    wall_seconds: float
    graph_root: str
    final_state: str
    files: dict[str, str]
    """What it is -> file name inside the job's directory."""


def coded(notices: tuple[Notice, ...]) -> list[CodedText]:
    """Carry domain notices over the boundary."""
    return [CodedText(code=n.code, text=n.text) for n in notices]


def percentages(inp: ReportInput) -> Percentages:
    """Return the R factors of the final state in percent."""
    q = inp.state.quality
    return Percentages(
        rwp_percent=100 * q.rwp,
        rexp_percent=100 * q.rexp,
        gof=q.gof,
        rp_percent=100 * q.rp,
        rwp_without_background_percent=100 * q.rwp_no_background,
        n_points=q.n_points,
        n_parameters=q.n_parameters,
    )


def _cell_uncertainty(inp: ReportInput, phase: str) -> dict[str, float]:
    start = f"phase.{phase}.cell."
    return {name.removeprefix(start): v for name, v in uncertainties(inp).items() if name.startswith(start)}


def _weight_uncertainty(inp: ReportInput, phase: PhaseSummary) -> float | None:
    """Return the standard uncertainty of a weight fraction, with what mixtures are wrong by beside the fit."""
    if phase.weight_fraction is None or phase.weight_fraction.esd is None:
        return None
    beside = fraction_uncertainty(phase.weight_fraction.value, inp.job.fraction_error)
    fitted = uncertainties(inp).get(f"phase.{phase.name}.weight_fraction", phase.weight_fraction.esd)
    return math.hypot(fitted, beside)


def _phase(inp: ReportInput, phase: PhaseSummary) -> PhaseReport:
    r_bragg = inp.state.quality.r_bragg.get(phase.name, phase.r_bragg)
    return PhaseReport(
        name=phase.name,
        space_group=phase.space_group,
        cell=CellReport(**phase.cell),
        cell_uncertainty=_cell_uncertainty(inp, phase.name),
        cell_certified=any(known.phase == phase.name for known in inp.job.known_cells),
        weight_fraction=phase.weight_fraction,
        weight_fraction_uncertainty=_weight_uncertainty(inp, phase),
        r_bragg_percent=None if r_bragg is None else 100 * r_bragg,
        detection_limit=_detection_limit(inp, phase.weight_fraction),
        absolute_weight_fraction=_value(inp, absolute_name(phase.name)),
    )


def _value(inp: ReportInput, name: str) -> MeasuredValue | None:
    return next((MeasuredValue(value=p.value, esd=p.esd) for p in inp.state.parameters if p.name == name), None)


def _detection_limit(inp: ReportInput, fraction: MeasuredValue | None) -> float | None:
    return None if fraction is None or fraction.esd is None else inp.job.detection_esds * fraction.esd


def _instrument(inp: ReportInput) -> InstrumentReport:
    values = {p.name: MeasuredValue(value=p.value, esd=p.esd) for p in inp.state.parameters}
    wavelengths, flight = list(inp.job.instrument.wavelengths_angstrom), inp.job.instrument.flight is not None
    if wavelengths and (refined := values.get("instrument.wavelength")):
        # Only the first line is a parameter; the others keep their ratio to it.
        wavelengths = [w * refined.value / wavelengths[0] for w in wavelengths]
    return InstrumentReport(
        zero_deg=None if flight else values.get("instrument.zero"),
        displacement_mm=values.get("sample.displacement"),
        wavelengths_angstrom=wavelengths,
    )


def _histogram(name: str, seen: ReportInput) -> HistogramReport:
    return HistogramReport(
        name=name,
        pattern=seen.job.pattern_name,
        radiation=seen.job.instrument.radiation.value,
        quality=percentages(seen),
        instrument=_instrument(seen),
        cells={p.name: CellReport(**p.cell) for p in seen.state.phases},
        weight_fractions={p.name: p.weight_fraction for p in seen.state.phases},
    )


def _match(inp: ReportInput) -> MatchReport | None:
    features = inp.state.features
    if not inp.job.profile_match or "match.lines" not in features:
        return None
    merit = features["match.figure_of_merit"]
    return MatchReport(
        lines=round(features["match.lines"].value or 0.0),
        lines_seen=round(features["match.lines_seen"].value or 0.0) if "match.lines_seen" in features else 0,
        figure_of_merit=merit.value,
        figure_of_merit_of=merit.reason,
    )


def build_summary(inp: ReportInput, files: Mapping[str, str]) -> ReportSummary:
    """Build the ``--json`` object.

    Args:
        inp: the report's input.
        files: what it is -> file name, as written beside the report.
    """
    ratio, timed = inp.state.features.get("unexplained_peak_ratio"), inp.job.instrument.flight is not None
    accepted = sum(s.accepted for s in inp.steps)
    return ReportSummary(
        verdict=inp.verdict,
        reasons=[r.code for r in inp.reasons],
        quality=percentages(inp),
        phases=[_phase(inp, p) for p in inp.state.phases],
        amorphous=amorphous_report(inp),
        instrument=_instrument(next(iter(inp.histograms.values()), inp)),
        histograms=[_histogram(name, seen) for name, seen in inp.histograms.items()],
        match=_match(inp),
        unexplained_peak_ratio=ratio.value if ratio and ratio.available else None,
        unexplained_peaks=[
            UnexplainedPeakReport(
                two_theta_deg=None if timed else p.two_theta_deg,
                d_angstrom=p.d_angstrom,
                area_share=p.area_share,
                histogram=p.histogram,
            )
            for p in inp.state.unexplained_peaks
        ],
        warnings=coded(inp.warnings),
        steps=StepCounts(accepted=accepted, rejected=len(inp.steps) - accepted),
        engine=EngineReport(name=inp.state.engine, version=inp.state.engine_version, seconds=inp.engine_seconds),
        wall_seconds=inp.wall_seconds,
        graph_root=inp.graph_root,
        final_state=inp.state_id,
        files=dict(files),
    )
