"""report.json keeps its promise: the issue's object at its head, and a committed schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from autoxrd.report.build import render_files
from autoxrd.report.schema import schema_text
from autoxrd.report.summary import build_summary
from tests.report.factory import report_input

SCHEMA = Path(__file__).parents[2] / "schemas" / "report.schema.json"


def test_the_committed_schema_is_the_code_s() -> None:
    renew = "python -m autoxrd.report.schema > schemas/report.schema.json"
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), f"renew it: {renew}"


def test_report_json_fits_the_schema() -> None:
    files, _ = render_files(report_input(n=301))
    jsonschema.validate(json.loads(files["report.json"]), json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_the_json_object_has_exactly_the_promised_names() -> None:
    head = json.loads(build_summary(report_input(n=301), {"html": "report.html"}).model_dump_json())
    assert list(head) == [
        "schema", "verdict", "reasons", "quality", "phases", "amorphous", "instrument",
        "unexplained_peak_ratio", "unexplained_peaks", "warnings", "steps", "engine", "wall_seconds",
        "graph_root", "final_state", "files",
    ]  # fmt: skip
    assert list(head["quality"]) == [
        "rwp_percent", "rexp_percent", "gof", "rp_percent", "rwp_without_background_percent", "n_points",
        "n_parameters",
    ]  # fmt: skip
    assert list(head["phases"][0]) == [
        "name", "space_group", "cell", "cell_uncertainty", "weight_fraction",
        "weight_fraction_uncertainty", "r_bragg_percent", "detection_limit",
        "absolute_weight_fraction",
    ]  # fmt: skip
    assert list(head["phases"][0]["cell"]) == ["a", "b", "c", "alpha", "beta", "gamma", "volume"]
    assert head["phases"][0]["cell"]["a"] == {"value": 9.371723, "esd": 4.3e-5}
    assert list(head["instrument"]) == ["zero_deg", "displacement_mm", "wavelengths_angstrom"]
    assert list(head["unexplained_peaks"][0]) == ["two_theta_deg", "d_angstrom", "area_share"]
    assert list(head["warnings"][0]) == ["code", "text"]
    assert head["steps"] == {"accepted": 10, "rejected": 3}
    assert list(head["engine"]) == ["name", "version", "seconds"]
    assert 5 < head["quality"]["rwp_percent"] < 15


def test_a_refined_wavelength_replaces_the_nominal_one_and_carries_its_ratio() -> None:
    inp = report_input(n=301)
    wave = inp.state.parameters[0].model_copy(update={"name": "instrument.wavelength", "value": 1.5500, "esd": 1e-4})
    state = inp.state.model_copy(update={"parameters": (*inp.state.parameters, wave)})
    waves = build_summary(report_input(n=301, state=state), {}).instrument.wavelengths_angstrom
    assert waves[0] == 1.55
    assert abs(waves[1] / waves[0] - 1.5444274 / 1.5405929) < 1e-12
