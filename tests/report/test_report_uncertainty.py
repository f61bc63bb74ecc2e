"""Uncertainties beside the esds: in the tables, in the summary and on the page."""

from __future__ import annotations

import csv
import io
import math

import pytest

from autoxrd.domain.state import ParameterValue
from autoxrd.report.build import render_files
from autoxrd.report.model import ReportInput
from autoxrd.report.summary import build_summary
from autoxrd.report.tables import parameters_csv
from tests.report.factory import report_input

STATED = {
    "phase.fluorapatite.cell.a": 0.0012,
    "phase.fluorapatite.cell.b": 0.0012,
    "phase.fluorapatite.cell.volume": 0.08,
    "phase.fluorapatite.scale": 2.1e-6,
    "phase.fluorapatite.weight_fraction": 0.004,
}


def _stated() -> ReportInput:
    base = report_input(n=301)
    beside = [
        ParameterValue(name=f"{name}.uncertainty", value=value, derived=True, released=False)
        for name, value in STATED.items()
    ]
    return report_input(n=301, state=base.state.model_copy(update={"parameters": (*base.state.parameters, *beside)}))


def test_the_table_has_uncertainties_in_a_column_and_not_as_rows() -> None:
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(parameters_csv(_stated()).decode()))}
    assert not [name for name in rows if name.endswith(".uncertainty")]
    assert float(rows["phase.fluorapatite.cell.a"]["uncertainty"]) == STATED["phase.fluorapatite.cell.a"]
    assert rows["instrument.zero"]["uncertainty"] == ""


def test_a_weight_fraction_is_as_uncertain_as_the_fit_and_known_mixtures_together() -> None:
    inp = _stated()
    phases = build_summary(inp, {}).phases
    share = phases[0].weight_fraction.value
    beside = 2.0 * inp.job.fraction_error * math.sqrt(share * (1.0 - share))
    assert phases[0].weight_fraction_uncertainty == pytest.approx(math.hypot(0.004, beside))
    # without a word of the engine the esd stands for the fit
    other = phases[1].weight_fraction
    assert phases[1].weight_fraction_uncertainty == pytest.approx(math.hypot(other.esd, beside))


def test_the_page_writes_equal_edges_once_and_volumes_not_in_degrees() -> None:
    page = " ".join(render_files(_stated())[0]["report.html"].decode().split())
    assert "fluorapatite a ± 0.0012 Å" in page
    assert "b ± 0.0012" not in page
    assert "0.08 °" not in page
    assert "2.1×10⁻⁶" in page
