"""What came of a pattern's job, as a row: read back from its record, whether it ended now or in an earlier run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from autoxrd.agent.result import concluded
from autoxrd.domain.standard import AMORPHOUS, absolute_name
from autoxrd.domain.state import FitState, MeasuredValue, ParameterValue, PhaseSummary
from autoxrd.gates.model_class import misfit_beyond_noise
from autoxrd.report.series_model import PatternRow, PhaseRow, StartedFrom
from autoxrd.series.ordering import Place
from autoxrd.store.graph import Graph
from autoxrd.store.reading import GraphReader

__all__ = ["failed_row", "row_from", "row_of", "seen_phases"]

_WIDTHS = ("size", "strain", "crystallite_size_nm", "microstrain_percent")


def row_of(directory: Path, place: Place, *, started_from: StartedFrom) -> PatternRow:
    """Return the row of a finished job.

    Raises:
        NotFound: there is no job.
        StorageError: its record is damaged.
    """
    with Graph.open(directory, read_only=True) as graph:
        return row_from(
            graph, number=place.number, name=place.path.name, value=place.value, started_from=started_from,
            job=directory.name,
        )  # fmt: skip


def row_from(
    graph: GraphReader, *, number: int, name: str, value: float | None, started_from: StartedFrom, job: str
) -> PatternRow:
    """Return the row of a job that is concluded.

    Args:
        graph: of the job.
        number: place in the series, from 1.
        name: of the pattern.
        value: of the quantity along the series.
        started_from: what the job began with.
        job: how the job is called in the row.

    Raises:
        StorageError: its record is damaged.
    """
    finish = graph.finished()
    assert finish is not None  # the caller ran it to its end
    conclusion = concluded(finish)
    state = graph.state(conclusion.state_id)
    record = graph.job
    significance = float(record.policy.get("audit", {}).get("phase_significance", 0.0))
    seen = seen_phases(state, significance)
    verdict: Literal["accepted", "accepted_with_warnings", "abstained", "failed"] = conclusion.verdict.value
    values = {p.name: p for p in state.parameters}
    q = state.features.get("unexplained_peak_ratio")
    return PatternRow(
        number=number,
        name=name,
        sha256=str(record.histograms[0].pattern.get("source_sha256", "")),
        value=value,
        verdict=verdict,
        started_from=started_from,
        restarted_because=[],
        codes=[notice.code for notice in (*conclusion.reasons, *conclusion.warnings)],
        error="",
        rwp_percent=100 * state.quality.rwp,
        gof=state.quality.gof,
        misfit=misfit_beyond_noise(state.quality.rwp_no_background, state.quality.gof),
        unexplained_peak_ratio=q.value if q is not None and q.available else None,
        n_parameters=state.quality.n_parameters,
        phases=_phases(state, values, seen),
        displacement_mm=_measured(values.get("sample.displacement")),
        zero_deg=_measured(values.get("instrument.zero")),
        profile={p.name: MeasuredValue(value=p.value, esd=p.esd) for p in state.parameters if _is_width(p)},
        amorphous=_measured(values.get(AMORPHOUS)),
        steps=len(graph.attempts()),
        job=job,
        other_job="",
    )


def seen_phases(state: FitState, esds: float) -> tuple[str, ...]:
    """Return the phases whose scale was refined and is at least that many esds; the others are not determined."""
    scales = {p.name: p for p in state.parameters if p.name.endswith(".scale")}
    found = ((phase.name, scales.get(f"phase.{phase.name}.scale")) for phase in state.phases)
    return tuple(n for n, s in found if s is not None and s.released and s.esd and s.value >= esds * s.esd)


def failed_row(
    place: Place, *, started_from: StartedFrom, sha256: str, code: str, error: str, job: str = ""
) -> PatternRow:
    """Return the row of a pattern that gave no model."""
    return PatternRow(
        number=place.number,
        name=place.path.name,
        sha256=sha256,
        value=place.value,
        verdict="failed",
        started_from=started_from,
        restarted_because=[],
        codes=[code],
        error=error,
        job=job,
        other_job="",
    )


def _is_width(parameter: ParameterValue) -> bool:
    return parameter.name.startswith("profile.") and parameter.released


def _measured(parameter: ParameterValue | None) -> MeasuredValue | None:
    return None if parameter is None else MeasuredValue(value=parameter.value, esd=parameter.esd)


def _phases(state: FitState, values: dict[str, ParameterValue], seen: tuple[str, ...]) -> list[PhaseRow]:
    rows = [_phase(phase, state, values, seen=phase.name in seen) for phase in state.phases]
    if all(row.seen for row in rows):
        return rows
    # a phase with a held scale lends the others an esd that says nothing
    return [row.model_copy(update={"weight_fraction": _bare(row.weight_fraction)}) for row in rows]


def _bare(value: MeasuredValue | None) -> MeasuredValue | None:
    return None if value is None else MeasuredValue(value=value.value)


def _phase(phase: PhaseSummary, state: FitState, values: dict[str, ParameterValue], *, seen: bool) -> PhaseRow:
    r_bragg = state.quality.r_bragg.get(phase.name, phase.r_bragg)
    widths = {name: _measured(values.get(f"phase.{phase.name}.{name}")) for name in _WIDTHS}
    return PhaseRow(
        name=phase.name,
        seen=seen,
        cell=dict(phase.cell),
        weight_fraction=phase.weight_fraction,
        absolute_weight_fraction=_measured(values.get(absolute_name(phase.name))),
        widths={name: value for name, value in widths.items() if value is not None},
        r_bragg_percent=None if r_bragg is None else 100 * r_bragg,
    )
