"""Table, JSON and page of a series say the same; a gap is a gap, and no text of a file runs anywhere."""

from __future__ import annotations

import csv
import io
import json

from autoxrd.domain.state import MeasuredValue
from autoxrd.report.series_files import series_csv, series_html
from autoxrd.report.series_model import PatternRow, PhaseRow, SeriesReport
from autoxrd.report.trends import trend_figure


def phase(name: str, a: float, share: float) -> PhaseRow:
    length = MeasuredValue(value=a, esd=1e-4)
    cell = {"a": length, "b": length, "c": MeasuredValue(value=13.0, esd=2e-4)}
    cell |= {angle: MeasuredValue(value=90.0) for angle in ("alpha", "beta", "gamma")}
    return PhaseRow(
        name=name,
        seen=share > 0,
        cell={**cell, "volume": MeasuredValue(value=a * a * 13.0, esd=0.01)},
        weight_fraction=MeasuredValue(value=share, esd=0.004),
        absolute_weight_fraction=None,
        widths={"size": MeasuredValue(value=0.08, esd=0.002)},
        r_bragg_percent=2.5,
    )


def row(number: int, *phases: PhaseRow, verdict: str = "accepted", **changes: object) -> PatternRow:
    content = {
        "number": number, "name": f"run_{number}.xy", "sha256": "ab" * 32, "value": 300.0 + 20 * number,
        "verdict": verdict, "started_from": "neighbour", "restarted_because": [], "codes": ["gof_high"], "error": "",
        "rwp_percent": 8.0 + number, "gof": 1.2, "misfit": 0.02, "unexplained_peak_ratio": 0.001, "n_parameters": 12,
        "phases": list(phases), "job": f"00{number}-run", "other_job": "",
    }  # fmt: skip
    return PatternRow.model_validate(content | changes)


def report() -> SeriesReport:
    rows = [
        row(1, phase("main", 4.75, 1.0), phase("new", 5.0, 0.0)),
        row(2, phase("main", 4.76, 0.8), phase("new", 5.1, 0.2), restarted_because=["unexplained_jump"]),
        row(
            3, verdict="failed", name="</script><b>x", error="No number in line 7.", phases=[], rwp_percent=None, job=""
        ),
        row(4, phase("main", 4.78, 0.5), phase("new", 5.2, 0.5), verdict="abstained"),
    ]
    return SeriesReport(
        order="temperature", quantity="temperature", unit="K", chunks=[1], patterns=rows, accepted=2, abstained=1,
        failed=1, restarted=1, wall_seconds=60.0, files={},
    )  # fmt: skip


def test_the_table_has_a_line_for_each_pattern_and_an_esd_for_each_value() -> None:
    lines = list(csv.DictReader(io.StringIO(series_csv(report()).decode())))
    assert [line["verdict"] for line in lines] == ["accepted", "accepted", "failed", "abstained"]
    assert [line["temperature"] for line in lines] == ["320", "340", "360", "380"]
    assert float(lines[1]["new.weight_fraction"]) == 0.2
    assert float(lines[1]["new.weight_fraction_esd"]) == 0.004
    assert (lines[0]["new.seen"], lines[1]["new.seen"]) == ("false", "true")
    assert lines[1]["restarted_because"] == "unexplained_jump"
    assert lines[2]["main.a"] == ""
    assert len({len(line) for line in lines}) == 1
    assert None not in lines[0]


def test_trends_have_gaps_and_only_what_moves_on_its_own() -> None:
    figure = trend_figure(report())
    panels = {panel["title"]: panel["curves"] for panel in figure["panels"]}
    assert figure["axis"] == "temperature / K"
    assert figure["x"] == [320.0, 340.0, 360.0, 380.0]
    assert figure["restarted"] == [False, True, False, False]
    assert panels["main: a"][0]["y"] == [4.75, 4.76, None, 4.78]
    assert panels["main: a"][0]["esd"] == [1e-4, 1e-4, None, 1e-4]
    assert "main: c" in panels
    assert not {"main: b", "main: α", "Specimen displacement"} & set(panels)
    assert [curve["name"] for curve in panels["Weight fractions"]] == ["main", "new"]
    assert panels["Weight fractions"][1]["y"] == [None, 20.0, None, 50.0]


def test_the_page_shows_every_pattern_and_runs_no_text_of_a_file() -> None:
    page = series_html(report())
    assert "</script><b>x" not in page
    assert "No number in line 7." in page
    assert '<a href="002-run/report.html">run_2.xy</a>' in page
    assert "tried anew: unexplained jump" in page
    start = page.index('id="data">') + len('id="data">')
    assert json.loads(page[start : page.index("</script>", start)])["status"][3] == "abstained"
