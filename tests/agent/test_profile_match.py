"""A job that fits the lines of a cell without a structure, and the step that does so on the way to one."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import gemmi
import pytest

from autoxrd.agent.controller import rejudge
from autoxrd.agent.drafting import draft
from autoxrd.agent.external import ExternalRequest
from autoxrd.agent.inputs import Measured, Request, load_job
from autoxrd.agent.job import Job
from autoxrd.agent.replay import replay_job
from autoxrd.agent.stepping import gate_action, take_step
from autoxrd.domain.standard import InternalStandard
from autoxrd.errors import UserInputError
from autoxrd.jobs.request import JobRequest
from autoxrd.store.graph import Graph
from autoxrd.store.verify import verify
from tests.agent.checks import check_graph
from tests.agent.conftest import Run
from tests.agent.small import CIF, TRUTH

CELL = CIF.partition("loop_")[0]
TRUE_A = TRUTH["phase.fluorite.cell.a"]


@pytest.fixture(scope="session")
def cell(inputs: tuple[Path, Path]) -> Path:
    """A CIF of fluorite with its cell and space group, and no atom."""
    path = inputs[0].with_name("cell.cif")
    path.write_text(CELL)
    return path


@pytest.fixture(scope="session")
def matched(
    inputs: tuple[Path, Path], cell: Path, autoxrd: Run, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """Directory and standard output (JSON) of the small job as a profile match."""
    out = tmp_path_factory.mktemp("match") / "out"
    done = autoxrd("refine", inputs[0], "-s", cell, "--anode", "Cu", "--profile-match", "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def test_a_cell_alone_is_matched_and_judged_by_its_lines(matched: tuple[Path, str]) -> None:
    out, text = matched
    summary = json.loads(text)
    assert summary["verdict"] in ("accepted", "accepted_with_warnings")
    assert summary["quality"]["gof"] < 1.1
    phase = summary["phases"][0]
    assert phase["weight_fraction"] is None
    assert phase["r_bragg_percent"] is None
    a = phase["cell"]["a"]
    assert abs(a["value"] - TRUE_A) < 4.0 * max(a["esd"], phase["cell_uncertainty"]["a"])
    assert summary["match"]["lines_seen"] == 8
    assert summary["match"]["figure_of_merit"] > 50.0
    # what only a structure predicts is not measured, and is no reason for a warning
    features = json.loads((out / "report.json").read_text())["details"]["features"]
    assert not [n for n in features if n.startswith(("r_bragg", "intensity.", "missing_peak", "presence", "reachable"))]
    assert not {w["code"] for w in summary["warnings"]} - {"position_model_ambiguous"}
    check_graph(out)


def test_the_report_says_what_it_is_and_has_the_intensities(matched: tuple[Path, str]) -> None:
    out, _ = matched
    methods = json.loads((out / "report.json").read_text())["details"]["methods"]
    text = " ".join(methods["paragraphs"])
    assert "without a structural model" in text
    assert "Rietveld method" not in text
    cited = {reference["doi"] for reference in methods["references"]}
    assert {"10.1016/0025-5408(88)90019-0", "10.1107/S0021889881009618"} <= cited
    rows = list(csv.DictReader((out / "reflections.csv").read_text().splitlines()))
    strong = [row for row in rows if row["line"] == "1.540593" and float(row["f2"]) > 3.0 * float(row["f2_esd"]) > 0.0]
    assert {(row["h"], row["k"], row["l"]) for row in strong} >= {("1", "1", "1"), ("2", "2", "0"), ("3", "1", "1")}
    block = gemmi.cif.read_file(str(out / "cell.cif"))[0]
    assert not block.find_values("_atom_site_fract_x")
    assert len(block.find_values("_refln_F_squared_meas")) == len(block.find_values("_refln_F_squared_sigma")) > 5
    page = (out / "report.html").read_text()
    assert "This is a profile match" in page
    assert "Figure of merit" in page


def test_it_is_repeated_to_the_bit_and_its_record_says_what_it_is(matched: tuple[Path, str]) -> None:
    out, _ = matched
    assert replay_job(out).equal
    assert verify(out, judge=rejudge).ok
    with Graph.open(out, read_only=True) as graph:
        assert graph.job.settings["profile_match"] is True
        assert Job.from_record(graph.job, graph.artifacts).mode == "lebail"
        assert not [s for s in graph.job.structures if s["atoms"]]


def test_an_interrupted_match_goes_on_as_one(
    inputs: tuple[Path, Path], cell: Path, matched: tuple[Path, str], autoxrd: Run, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    words = ("refine", inputs[0], "-s", cell, "--anode", "Cu", "--profile-match", "-o", job)
    assert autoxrd(*words, "--prepare").returncode == 0
    done = json.loads(autoxrd("resume", job, "--json").stdout)
    assert done["quality"] == json.loads(matched[1])["quality"]


def test_a_lattice_that_is_not_there_is_not_accepted(inputs: tuple[Path, Path], autoxrd: Run, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.cif"
    lengths = {"_cell_length_a 5.4631": "_cell_length_a 4.1", "_cell_length_b 5.4631": "_cell_length_b 4.1"}
    text = CELL.replace("_cell_length_c 5.4631", "_cell_length_c 7.3").replace("F m -3 m", "P 4/m m m")
    for old, new in lengths.items():
        text = text.replace(old, new)
    wrong.write_text(text)
    done = autoxrd("refine", inputs[0], "-s", wrong, "--anode", "Cu", "--profile-match", "-o", tmp_path / "o", "--json")
    assert done.returncode == 3
    summary = json.loads(done.stdout)
    assert summary["verdict"] == "abstained"
    assert {"unexplained_peaks", "lattice_not_supported"} <= set(summary["reasons"])
    assert summary["match"]["figure_of_merit"] < 3.0


def test_a_cell_that_is_too_large_is_told(inputs: tuple[Path, Path], autoxrd: Run, tmp_path: Path) -> None:
    double = tmp_path / "double.cif"
    double.write_text(CELL.replace("5.4631", "10.9262").replace("F m -3 m", "P m -3 m"))
    done = autoxrd(
        "refine", inputs[0], "-s", double, "--anode", "Cu", "--profile-match", "-o", tmp_path / "o", "--json"
    )
    assert "lines_without_intensity" in {w["code"] for w in json.loads(done.stdout)["warnings"]}


def test_without_the_option_a_cell_alone_is_refused_with_the_way_out(inputs: tuple[Path, Path], cell: Path) -> None:
    with pytest.raises(UserInputError, match="--profile-match") as caught:
        load_job(Request(pattern=inputs[0], structures=(cell,), anode="Cu"))
    assert caught.value.code == "cif_no_atoms"


def test_atoms_are_left_aside_and_told(inputs: tuple[Path, Path], cell: Path) -> None:
    pattern, cif = inputs
    job, _ = load_job(Request(pattern=pattern, structures=(cif,), anode="Cu", profile_match=True))
    bare, _ = load_job(Request(pattern=pattern, structures=(cell,), anode="Cu", profile_match=True))
    assert job.structures[0].atoms == () == bare.structures[0].atoms
    assert job.structures[0].cell == bare.structures[0].cell
    assert "atoms_not_used" in {n.code for n in job.notices} - {n.code for n in bare.notices}
    with pytest.raises(UserInputError, match="has no cell") as caught:
        load_job(Request(pattern=pattern, structures=(_empty(cif),), anode="Cu", profile_match=True))
    assert caught.value.code == "cif_cell_missing"


def _empty(cif: Path) -> Path:
    path = cif.with_name("empty.cif")
    path.write_text("data_empty\n_space_group_name_H-M_alt 'F m -3 m'\n")
    return path


@pytest.mark.parametrize("option", ["--candidate", "--standard", "--external-standard", "--with"])
def test_what_needs_a_structure_is_refused_by_name(inputs: tuple[Path, Path], cell: Path, option: str) -> None:
    pattern, cif = inputs
    more = {
        "--candidate": {"candidates": (cif,)},
        "--standard": {"standard": InternalStandard("cell", 0.2)},
        "--external-standard": {"external": ExternalRequest(pattern.parent)},
        "--with": {"others": (Measured(pattern=pattern, anode="Cu"),)},
    }[option]
    with pytest.raises(UserInputError, match=option) as caught:
        load_job(Request(pattern=pattern, structures=(cell,), anode="Cu", profile_match=True, **more))  # type: ignore[arg-type]
    assert caught.value.code == "profile_match_alone"


def test_the_service_takes_the_same_wish() -> None:
    assert JobRequest.model_validate({"fit": {"profile_match": True}}).fit.profile_match
    with pytest.raises(ValueError, match="standard"):
        JobRequest.model_validate(
            {"fit": {"profile_match": True}, "standard": {"phase": "corundum", "weight_percent": 20.0}}
        )


@pytest.mark.gsasii
def test_gsasii_finds_the_same_cell(
    inputs: tuple[Path, Path], cell: Path, matched: tuple[Path, str], autoxrd: Run, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("refine", inputs[0], "-s", cell, "--anode", "Cu", "--profile-match", "--engine", "gsasii")
    done = autoxrd(*words, "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    here, there = json.loads(done.stdout), json.loads(matched[1])
    a, b = (found["phases"][0]["cell"]["a"] for found in (here, there))
    assert abs(a["value"] - b["value"]) < 3.0 * (a["esd"] ** 2 + b["esd"] ** 2) ** 0.5
    assert here["quality"]["rwp_percent"] == pytest.approx(there["quality"]["rwp_percent"], rel=0.01)
    assert here["match"]["lines_seen"] == 8
    assert replay_job(out).equal
    check_graph(out)


@pytest.fixture(scope="session")
def far(inputs: tuple[Path, Path], autoxrd: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starting state of a job whose cell is 1 % too large."""
    folder = tmp_path_factory.mktemp("far")
    cif = folder / "fluorite.cif"
    cif.write_text(CIF.replace("5.4631", f"{1.01 * 5.4631:.4f}"))
    done = autoxrd("refine", inputs[0], "-s", cif, "--anode", "Cu", "--prepare", "-o", folder / "job")
    assert done.returncode == 0, done.stderr
    return folder / "job"


def test_a_match_brings_a_cell_in_and_the_structure_is_what_is_judged(far: Path, tmp_path: Path) -> None:
    job = tmp_path / "job"
    shutil.copytree(far, job)
    action = draft(job, "profile_match", ("background", "phase.fluorite.cell")).action
    assert action is not None
    assert action.kind == "profile_match"
    assert gate_action(job, action.model_dump_json()).legal
    stepped = take_step(job, action.model_dump_json(), by="person")
    assert stepped.accepted
    with Graph.open(job, read_only=True) as graph:
        state = graph.state(str(graph.attempts()[-1].candidate))
    assert set(state.released) == {"background", "phase.fluorite.scale"}
    assert state.phases[0].cell["a"].value == pytest.approx(TRUE_A, abs=0.005)
    assert state.quality.r_bragg["fluorite"] is not None
    assert state.phases[0].weight_fraction is not None
    free = {p.name for p in state.parameters if p.released and not p.derived}
    assert "phase.fluorite.scale" in free
    assert "phase.fluorite.cell.a" not in free
    assert verify(job, judge=rejudge).ok
    assert replay_job(job).equal


def test_a_cell_that_no_release_reaches_is_brought_in_by_the_rules(
    inputs: tuple[Path, Path], autoxrd: Run, tmp_path: Path
) -> None:
    cif = tmp_path / "fluorite.cif"
    cif.write_text(CIF.replace("5.4631", f"{1.02 * 5.4631:.4f}"))
    out = tmp_path / "out"
    done = autoxrd("refine", inputs[0], "-s", cif, "--anode", "Cu", "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    a, stated = summary["phases"][0]["cell"]["a"]["value"], summary["phases"][0]["cell_uncertainty"]["a"]
    assert abs(a - TRUE_A) < 3.0 * stated
    assert summary["quality"]["gof"] < 1.1
    assert summary["phases"][0]["r_bragg_percent"] < 3.0
    with Graph.open(out, read_only=True) as graph:
        kinds = [attempt.action.kind for attempt in graph.attempts() if attempt.accepted]
    assert kinds.count("profile_match") == 1
    check_graph(out)
    assert replay_job(out).equal


def test_in_a_match_there_is_no_step_that_is_one(matched: tuple[Path, str]) -> None:
    out, _ = matched
    with Graph.open(out, read_only=True) as graph:
        root = graph.root()
    action = {
        "kind": "profile_match", "stage": "profile_match", "parameters": ["phase.cell.cell"], "rationale": "again",
        "parent": root,
        "evidence": [{"feature": "rwp", "value": 0.1, "comparison": ">", "threshold": 0.0, "source": root}],
        "predictions": [{"metric": "rwp", "direction": "decrease", "minimum_effect": 0.01}],
    }  # fmt: skip
    assert "kind_not_executed" in gate_action(out, json.dumps(action)).reasons
