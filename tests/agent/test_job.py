"""The main job on a small simulated pattern with known truth, through the command."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zipfile
from pathlib import Path

import pytest

from autoxrd.agent.controller import rejudge
from autoxrd.store.graph import Graph
from autoxrd.store.verify import verify
from tests.agent.checks import check_graph
from tests.agent.conftest import Run
from tests.agent.small import TRUTH


def test_the_truth_is_found_within_the_stated_uncertainty(finished: tuple[Path, str]) -> None:
    summary = json.loads(finished[1])
    a = summary["phases"][0]["cell"]["a"]
    assert abs(a["value"] - TRUTH["phase.fluorite.cell.a"]) < 3 * a["esd"]
    assert summary["quality"]["gof"] < 1.1
    assert summary["verdict"] == "accepted_with_warnings"
    # 75 degrees of one cubic phase cannot tell a displacement from a zero offset: that must be said
    assert [w["code"] for w in summary["warnings"]] == ["position_model_ambiguous"]
    assert summary["instrument"]["displacement_mm"]["value"] == pytest.approx(TRUTH["sample.displacement"], abs=0.03)


def test_the_json_object_has_the_promised_form(finished: tuple[Path, str]) -> None:
    out, stdout = finished
    summary = json.loads(stdout)
    keys = ["schema", "verdict", "reasons", "quality", "phases", "amorphous", "instrument", "unexplained_peak_ratio"]
    keys += ["unexplained_peaks", "warnings", "steps", "engine", "wall_seconds", "graph_root", "final_state", "files"]
    assert list(summary) == keys
    for name in summary["files"].values():
        assert (out / name).is_file()
    report = json.loads((out / "report.json").read_text())
    assert {k: report[k] for k in keys if k not in ("files", "wall_seconds")} == {
        k: summary[k] for k in keys if k not in ("files", "wall_seconds")
    }


def test_every_promised_file_is_there(finished: tuple[Path, str]) -> None:
    out = finished[0]
    for name in ("report.html", "report.json", "fluorite.cif", "profile.csv", "reflections.csv", "parameters.csv"):
        assert (out / name).stat().st_size > 200, name
    manifest = json.loads((out / "manifest.json").read_text())
    with zipfile.ZipFile(out / "bundle.zip") as bundle:
        assert set(bundle.namelist()) >= {"report.html", "graph.json", "manifest.json"}
    assert (
        all(len(entry["sha256"]) == 64 for entry in manifest["files"].values())
        if isinstance(manifest["files"], dict)
        else all(len(entry["sha256"]) == 64 for entry in manifest["files"])
    )


def test_the_graph_keeps_its_promises(finished: tuple[Path, str]) -> None:
    check_graph(finished[0])


def test_the_same_input_gives_the_same_graph(
    finished: tuple[Path, str], inputs: tuple[Path, Path], autoxrd: Run, tmp_path: Path
) -> None:
    pattern, cif = inputs
    again = autoxrd("refine", pattern, "-s", cif, "--anode", "Cu", "--out", tmp_path / "again", "--json")
    assert json.loads(again.stdout)["graph_root"] == json.loads(finished[1])["graph_root"]
    assert (tmp_path / "again" / "graph.json").read_bytes() == (finished[0] / "graph.json").read_bytes()


def test_names_of_files_do_not_change_the_result(
    finished: tuple[Path, str], inputs: tuple[Path, Path], autoxrd: Run, tmp_path: Path
) -> None:
    pattern, cif = inputs
    shutil.copy(pattern, tmp_path / "qpa-cpd1 fluorapatite.dat")
    shutil.copy(cif, tmp_path / "fluorite.cif")
    done = autoxrd(
        "refine", tmp_path / "qpa-cpd1 fluorapatite.dat", "-s", tmp_path / "fluorite.cif", "--anode", "Cu", "--out",
        tmp_path / "out", "--json",
    )  # fmt: skip
    one, other = json.loads(done.stdout), json.loads(finished[1])
    assert one["quality"] == other["quality"]
    assert one["phases"] == other["phases"]


def test_replay_gives_the_same_figures(finished: tuple[Path, str], autoxrd: Run) -> None:
    done = autoxrd("replay", finished[0], "--json")
    outcome = json.loads(done.stdout)
    assert done.returncode == 0
    assert outcome["equal"]
    assert all(step["identical"] for step in outcome["steps"])


def test_graph_and_verify_speak(finished: tuple[Path, str], autoxrd: Run) -> None:
    drawn = autoxrd("graph", finished[0], "--why")
    assert drawn.returncode == 0
    assert "final" in drawn.stdout
    assert "prediction:" in drawn.stdout
    checked = autoxrd("verify", finished[0])
    assert checked.returncode == 0
    assert checked.stdout.startswith("OK")


def test_verify_finds_a_doctored_result(finished: tuple[Path, str], autoxrd: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(finished[0], copy)
    report = json.loads((copy / "report.json").read_text())
    report["graph_root"] = "0" * 64
    (copy / "report.json").write_text(json.dumps(report))
    assert autoxrd("verify", copy).returncode == 3


def test_verify_finds_a_decision_that_does_not_follow(finished: tuple[Path, str], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(finished[0], copy)
    with sqlite3.connect(copy / "graph.sqlite") as database:
        names = [r[0] for r in database.execute("select name from sqlite_master where type = 'trigger'")]
        for name in names:
            database.execute(f'drop trigger "{name}"')
        database.execute("update states set content = replace(content, '\"rwp\":0.0', '\"rwp\":0.1')")
    database.close()
    report = verify(copy, judge=rejudge)
    assert not report.ok


def test_resume_of_a_finished_job_changes_nothing(finished: tuple[Path, str], autoxrd: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(finished[0], copy)
    done = autoxrd("resume", copy, "--json")
    assert json.loads(done.stdout)["graph_root"] == json.loads(finished[1])["graph_root"]
    assert verify(copy, judge=rejudge).ok


def test_a_used_directory_is_not_overwritten(
    finished: tuple[Path, str], inputs: tuple[Path, Path], autoxrd: Run
) -> None:
    before = (finished[0] / "graph.sqlite").read_bytes()
    done = autoxrd("refine", inputs[0], "-s", inputs[1], "--anode", "Cu", "--out", finished[0])
    assert done.returncode == 2
    assert "resume" in done.stderr
    assert (finished[0] / "graph.sqlite").read_bytes() == before


def test_a_budget_ends_the_job_with_a_warning(inputs: tuple[Path, Path], autoxrd: Run, tmp_path: Path) -> None:
    done = autoxrd(
        "refine", inputs[0], "-s", inputs[1], "--anode", "Cu", "--out", tmp_path / "out", "--json", "--max-steps", 2
    )
    summary = json.loads(done.stdout)
    assert summary["steps"] == {"accepted": 2, "rejected": 0}
    assert "budget_steps" in [w["code"] for w in summary["warnings"]]
    with Graph.open(tmp_path / "out", read_only=True) as graph:
        assert graph.finished() is not None
