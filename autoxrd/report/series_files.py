"""Write what a series leaves: series.csv, series.json and series.html; the same rows in each."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from autoxrd.domain.state import MeasuredValue
from autoxrd.errors import StorageError
from autoxrd.report.build import put_file
from autoxrd.report.format import fixed, pretty
from autoxrd.report.page import asset, content_policy, environment, json_for_html
from autoxrd.report.series_model import PatternRow, PhaseRow, SeriesReport
from autoxrd.report.tables import write_csv
from autoxrd.report.trends import trend_figure
from autoxrd.report.words import humanised

__all__ = ["series_csv", "series_html", "shown_row", "write_series"]

_FILES = {"html": "series.html", "json": "series.json", "csv": "series.csv"}
_SCRIPTS = ("plotly-basic.min.js", "trends.js")
_CELL = ("a", "b", "c", "alpha", "beta", "gamma", "volume")
_WIDTHS = ("size", "strain", "crystallite_size_nm", "microstrain_percent")
_WORDS = {
    "accepted": "accepted",
    "accepted_with_warnings": "accepted, with warnings",
    "abstained": "abstained",
    "failed": "failed",
}


def write_series(report: SeriesReport, folder: Path) -> SeriesReport:
    """Write the three files; return the report with their names.

    Raises:
        StorageError: ``series_not_written``.
    """
    report = report.model_copy(update={"files": dict(_FILES)})
    content = {
        "csv": series_csv(report),
        "json": (report.model_dump_json(indent=2) + "\n").encode(),
        "html": series_html(report).encode(),
    }
    try:
        for kind, data in content.items():
            put_file(folder / _FILES[kind], data)
    except OSError as error:
        text = f"The table of the series cannot be written to {folder}: {error.strerror or error}."
        raise StorageError("series_not_written", text) from error
    return report


def _names(report: SeriesReport) -> list[str]:
    return list(dict.fromkeys(phase.name for row in report.patterns for phase in row.phases))


def series_csv(report: SeriesReport) -> bytes:
    """Write one line a pattern; each measured quantity has a column for its esd, empty where it has none.

    ``PHASE.weight_fraction`` and the like are fractions, R factors are in percent, lengths in angstrom.
    """
    names = _names(report)
    head = ["number", "pattern", report.quantity or "value", "unit", "verdict", "started_from", "restarted_because"]
    head += ["codes", "rwp_percent", "gof", "unexplained_peak_ratio", "n_parameters"]
    head += _pairs(["displacement_mm", "zero_deg", "amorphous"])
    profile = sorted({key for row in report.patterns for key in row.profile})
    head += _pairs(profile)
    for name in names:
        head += _pairs([f"{name}.{key}" for key in (*_CELL, "weight_fraction", "absolute_weight_fraction", *_WIDTHS)])
        head += [f"{name}.r_bragg_percent", f"{name}.seen"]
    head += ["job", "sha256"]
    return write_csv(head, (_line(row, report, names, profile) for row in report.patterns))


def _pairs(names: list[str]) -> list[str]:
    return [part for name in names for part in (name, f"{name}_esd")]


def _pair(value: MeasuredValue | None) -> list[object]:
    return [None, None] if value is None else [value.value, value.esd]


def _line(row: PatternRow, report: SeriesReport, names: list[str], profile: list[str]) -> list[object]:
    cells: list[object] = [row.number, row.name, row.value, report.unit, row.verdict, row.started_from]
    cells += [" ".join(row.restarted_because), " ".join(row.codes), row.rwp_percent, row.gof]
    cells += [row.unexplained_peak_ratio, row.n_parameters]
    for value in (row.displacement_mm, row.zero_deg, row.amorphous, *(row.profile.get(key) for key in profile)):
        cells += _pair(value)
    found = {phase.name: phase for phase in row.phases}
    for name in names:
        cells += _phase_cells(found.get(name))
    return [*cells, row.job, row.sha256]


def _phase_cells(phase: PhaseRow | None) -> list[object]:
    if phase is None:
        return [None] * (2 * (len(_CELL) + 2 + len(_WIDTHS)) + 2)
    cells: list[object] = []
    for key in _CELL:
        cells += _pair(phase.cell.get(key))
    cells += _pair(phase.weight_fraction) + _pair(phase.absolute_weight_fraction)
    for key in _WIDTHS:
        cells += _pair(phase.widths.get(key))
    return [*cells, phase.r_bragg_percent, phase.seen]


def series_html(report: SeriesReport) -> str:
    """Render the page: trend plots and the table; every row leads to its job's report."""
    scripts = [asset(name) for name in _SCRIPTS]
    figure = trend_figure(report)
    return (
        environment()
        .get_template("series.html.j2")
        .render(
            report=report,
            rows=[shown_row(row) for row in report.patterns],
            names=_names(report),
            panels=figure["panels"],
            amorphous=any(row.amorphous is not None for row in report.patterns),
            data=json_for_html(figure),
            css=Markup(asset("report.css")),  # noqa: S704 - ours and reviewed
            scripts=[Markup(s) for s in scripts],  # noqa: S704
            content_policy=content_policy(scripts),
        )
    )


def shown_row(row: PatternRow) -> dict[str, object]:
    """Return a row as it is written in the page's table."""
    found = {phase.name: phase for phase in row.phases}
    phases = {
        name: {
            "cell": ", ".join(dict.fromkeys(_written(p.cell.get(key)) for key in ("a", "b", "c"))),
            "weight": _written(p.absolute_weight_fraction or p.weight_fraction, 100.0, 4),
        }
        for name, p in found.items()
        if p.seen
    }
    return {
        "row": row,
        "value": "" if row.value is None else f"{row.value:g}",
        "verdict": _WORDS[row.verdict],
        "tone": {"accepted": "good", "accepted_with_warnings": "warn"}.get(row.verdict, "bad"),
        "rwp": fixed(row.rwp_percent, 2),
        "gof": fixed(row.gof, 2),
        "phases": phases,
        "amorphous": _written(row.amorphous, 100.0, 4),
        "restarted": ", ".join(humanised(code).lower() for code in row.restarted_because),
        "codes": row.codes,
        "report": f"{row.job}/report.html" if row.job and row.verdict != "failed" else "",
    }


def _written(value: MeasuredValue | None, scale: float = 1.0, digits: int = 6) -> str:
    if value is None:
        return "–"
    return pretty(scale * value.value, None if value.esd is None else scale * value.esd, digits=digits)
