"""The whole report, written and read back."""

from __future__ import annotations

import json
from pathlib import Path

from autoxrd.report.build import write_report
from tests.report.factory import report_input


def test_report_writes_every_promised_file(tmp_path: Path) -> None:
    paths = write_report(report_input(n=601), tmp_path)
    promised = {"html", "json", "profile", "reflections", "parameters", "graph", "manifest", "bundle", "cif.corundum"}
    assert promised <= set(paths)
    assert all(p.is_file() and p.stat().st_size > 0 for p in paths.values())
    head = json.loads(paths["json"].read_text())
    assert head["schema"] == "autoxrd.report/1"
    assert {k: tmp_path / v for k, v in head["files"].items()} == paths
