"""A standard measured apart: the amorphous share comes out, stands in the record, and unlike pairs are refused."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autoxrd.agent.controller import rejudge
from autoxrd.agent.external import ExternalRequest, Specimen, external_standard
from autoxrd.agent.inputs import Request, load_job
from autoxrd.domain.standard import ExternalStandard, InternalStandard
from autoxrd.domain.state import ParameterValue
from autoxrd.engines.registry import get_engine
from autoxrd.errors import UserInputError
from autoxrd.report.series_model import PatternRow
from autoxrd.series.host import answer_to, task_of
from autoxrd.series.ordering import Place
from autoxrd.series.rows import failed_row
from autoxrd.series.run import SeriesRequest, run_series
from autoxrd.store.graph import Graph
from autoxrd.store.reading import GraphReader
from autoxrd.store.verify import verify
from tests.agent.apart import COMPOSITION, CRYSTALLINE, LONGER, Apart, write_apart
from tests.agent.conftest import Run

ENGINES = ["rietx", pytest.param("gsasii", marks=pytest.mark.gsasii)]


@pytest.fixture(scope="module", params=ENGINES)
def pair(request: pytest.FixtureRequest, autoxrd: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Apart, Path]:
    """Files of a standard and a specimen, and the directory of the standard's finished job."""
    files = write_apart(tmp_path_factory.mktemp("apart"), request.param)
    out = tmp_path_factory.mktemp("standard") / "job"
    words = ["-s", files.cif, "--anode", "Cu", "--engine", request.param, "--out", out, "--json"]
    done = autoxrd("refine", files.standard, *words)
    assert done.returncode == 0, done.stderr
    return files, out


def _specimen(autoxrd: Run, pair: tuple[Apart, Path], out: Path, *more: object) -> str:
    with Graph.open(pair[1], read_only=True) as graph:
        engine = str(graph.job.engine["name"])
    files = pair[0]
    words = ["-s", files.cif, "--anode", "Cu", "--engine", engine, "--external-standard", pair[1], "--out", out]
    done = autoxrd("refine", files.specimen, *words, *more, "--json")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def specimen(pair: tuple[Apart, Path], autoxrd: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Directory and standard output of the specimen's job; the standard's lies in another place afterwards."""
    out = tmp_path_factory.mktemp("specimen") / "job"
    said = _specimen(autoxrd, pair, out, "--composition", COMPOSITION, "--intensity-ratio", LONGER)
    return out, said


def test_the_amorphous_share_is_found_within_its_uncertainty(specimen: tuple[Path, str]) -> None:
    summary = json.loads(specimen[1])
    found = summary["amorphous"]
    assert (found["method"], found["standard"], found["intensity_ratio"]) == ("external", "corundum", LONGER)
    value, esd = found["weight_fraction"]["value"], found["weight_fraction"]["esd"]
    assert esd < 0.02
    assert abs(value - (1.0 - CRYSTALLINE)) < 3 * esd
    phase = summary["phases"][0]
    assert phase["weight_fraction"]["value"] == pytest.approx(1.0)
    assert phase["absolute_weight_fraction"]["value"] == pytest.approx(1.0 - value)
    assert found["change_for_one_percent"] == pytest.approx(0.01 * (1.0 - value))
    assert found["constant"]["esd"] > 0.0
    codes = {warning["code"] for warning in summary["warnings"]}
    assert not codes & {"mass_absorption_assumed", "absolute_fractions_exceed_one"}


def test_report_tables_and_methods_show_it(specimen: tuple[Path, str]) -> None:
    page = (specimen[0] / "report.html").read_text()
    assert "Amorphous content by external standard" in page
    assert "corundum (standard.xy)" in page
    with (specimen[0] / "parameters.csv").open() as table:
        rows = {row["name"]: row for row in csv.DictReader(table)}
    assert rows["sample.mass_absorption"]["unit"] == "cm2/g"
    assert {"sample.amorphous_weight_fraction", "phase.corundum.absolute_weight_fraction"} <= rows.keys()
    methods = " ".join(json.loads((specimen[0] / "report.json").read_text())["details"]["methods"]["paragraphs"])
    assert "With corundum as external standard (100 % of it crystalline" in methods


def test_the_record_needs_the_standard_no_more(
    pair: tuple[Apart, Path], specimen: tuple[Path, str], autoxrd: Run, tmp_path: Path
) -> None:
    moved = shutil.copytree(specimen[0], tmp_path / "alone")
    with Graph.open(pair[1], read_only=True) as graph:
        root = graph.root_hash()
    with Graph.open(moved, read_only=True) as graph:
        said = graph.job.settings["external_standard"]
        assert str(pair[1]) not in json.dumps(graph.job.model_dump(mode="json"))
    assert said["source"]["graph_root"] == root
    assert said["source"]["engine_version"]
    assert said["wavelengths_angstrom"][0] == pytest.approx(1.5405929)
    pair[1].rename(pair[1].with_name("gone"))
    try:
        assert verify(moved, judge=rejudge).ok
        outcome = json.loads(autoxrd("replay", moved, "--json").stdout)
    finally:
        pair[1].with_name("gone").rename(pair[1])
    assert outcome["equal"]


def test_without_time_and_composition_the_report_says_what_is_taken_for_granted(
    pair: tuple[Apart, Path], autoxrd: Run, tmp_path: Path
) -> None:
    """Three times the standard's time, told to nobody: more than all of the specimen."""
    summary = json.loads(_specimen(autoxrd, pair, tmp_path / "job"))
    found = summary["amorphous"]
    assert (found["intensity_origin"], found["mass_absorption_origin"]) == ("assumed", "phases")
    assert found["mass_absorption_cm2_g"] == pytest.approx(found["standard_mass_absorption_cm2_g"])
    assert found["weight_fraction"]["value"] < -3 * found["weight_fraction"]["esd"]
    codes = {warning["code"]: warning["text"] for warning in summary["warnings"]}
    assert "mass absorption" in codes["absolute_fractions_exceed_one"]
    assert "--composition" in codes["mass_absorption_assumed"]
    page = (tmp_path / "job" / "report.html").read_text()
    assert "neither stated nor told by both files" in page


def _request(pair: tuple[Apart, Path], more: Mapping[str, Any], said: Mapping[str, Any]) -> Request:
    with Graph.open(pair[1], read_only=True) as graph:
        engine = str(graph.job.engine["name"])
    given: dict[str, Any] = {"anode": "Cu", **more}
    external = ExternalRequest(pair[1], **said)
    return Request(pattern=pair[0].specimen, structures=(pair[0].cif,), engine=engine, external=external, **given)


@pytest.mark.parametrize(
    ("more", "said", "code", "word"),
    [
        ({"anode": "Co"}, {}, "external_standard_differs", "1.789"),
        ({"monochromator_two_theta_deg": 26.6}, {}, "external_standard_differs", "--monochromator"),
        ({"form_factors": "as_given"}, {}, "external_standard_differs", "--form-factors"),
        ({"geometry": "debye_scherrer"}, {}, "external_standard_geometry", "--standard PHASE=WT%"),
        ({"standard": InternalStandard("corundum", 0.2)}, {}, "standard_twice", "internal"),
        ({}, {"composition": "Al2O3:60"}, "composition_invalid", "60 %"),
        ({}, {"composition": "Al2O3:100", "mass_absorption_cm2_g": 31.0}, "mass_absorption_twice", "one of the two"),
        ({}, {"mass_absorption_cm2_g": -1.0}, "mass_absorption_invalid", "-1"),
        ({}, {"intensity_ratio": 0.0}, "intensity_ratio_invalid", "above 0"),
        ({}, {"crystallinity": 1.2}, "standard_invalid", "120"),
    ],
)
def test_an_unlike_pair_is_refused_by_name(
    pair: tuple[Apart, Path], more: Mapping[str, Any], said: Mapping[str, Any], code: str, word: str
) -> None:
    with pytest.raises(UserInputError) as caught:
        load_job(_request(pair, more, said))
    assert caught.value.code == code
    assert word in caught.value.detail


def test_another_engine_or_version_is_refused(pair: tuple[Apart, Path]) -> None:
    """The same words, with what the standard was refined by changed in a copy of what is asked for."""
    job, _ = load_job(_request(pair, {}, {}))
    engine = get_engine(job.engine).capabilities()
    specimen = Specimen(
        job.pattern, job.instrument, job.structures, engine, job.engine_version, dict(job.engine_settings)
    )
    for change in ({"engine": replace(engine, name="other")}, {"engine_version": "0.1"}):
        with pytest.raises(UserInputError, match="one engine of one version") as caught:
            external_standard(ExternalRequest(pair[1]), replace(specimen, **change))
        assert caught.value.code == "external_standard_differs"
    with pytest.raises(UserInputError) as caught:
        external_standard(ExternalRequest(pair[1]), replace(specimen, engine=replace(engine, scale_volume_power=None)))
    assert caught.value.code == "external_standard_unusable"


def test_a_job_that_cannot_vouch_for_its_scale_is_refused(
    pair: tuple[Apart, Path], autoxrd: Run, tmp_path: Path
) -> None:
    nowhere, prepared, short, damaged = (tmp_path / name for name in ("nowhere", "prepared", "short", "damaged"))
    words = ["-s", pair[0].cif, "--anode", "Cu"]
    assert autoxrd("refine", pair[0].standard, *words, "--prepare", "--out", prepared).returncode == 0
    assert (
        autoxrd("refine", pair[0].standard, *words, "--max-steps", 1, "--policy", "strict", "--out", short).returncode
        == 3
    )
    shutil.copytree(pair[1], damaged)
    with Graph.open(pair[1], read_only=True) as graph:
        finish = graph.finished()
        assert finish is not None
        arrays = graph.state(str(finish.final_state)).arrays
    file = next(path for path in damaged.rglob("*") if path.is_file() and arrays.endswith(path.name))
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-1])
    cases = {nowhere: "missing", prepared: "unfinished", short: "abstained", damaged: "damaged"}
    for directory, kind in cases.items():
        with pytest.raises(UserInputError) as caught:
            load_job(_of(pair, directory))
        assert caught.value.code == f"external_standard_{kind}"


def _of(pair: tuple[Apart, Path], job: Path) -> Request:
    return replace(_request(pair, {}, {}), external=ExternalRequest(job))


def test_a_textured_standard_and_one_with_warnings_are_told(
    pair: tuple[Apart, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As brucite of the round robin: accepted, and ten percent wrong."""
    with Graph.open(pair[1], read_only=True) as graph:
        finish = graph.finished()
        assert finish is not None
        state = graph.state(str(finish.final_state))
    row = ParameterValue(name="phase.corundum.preferred_orientation", value=0.66, released=True)
    textured = state.model_copy(update={"parameters": (*state.parameters, row)})
    warned = replace(finish, verdict={**finish.verdict, "warnings": [["gof_high", "GoF = 5"]]})
    monkeypatch.setattr(GraphReader, "state", lambda _self, _id: textured)
    monkeypatch.setattr(GraphReader, "finished", lambda _self: warned)
    job, _ = load_job(_request(pair, {}, {}))
    told = {notice.code: notice.text for notice in job.notices}
    assert "0.66" in told["external_standard_textured"]
    assert "gof_high" in told["external_standard_warned"]


def test_the_command_refuses_in_one_sentence_and_writes_nothing(
    pair: tuple[Apart, Path], autoxrd: Run, tmp_path: Path
) -> None:
    out = tmp_path / "job"
    words = ["-s", pair[0].cif, "--anode", "Cu", "--out", out]
    for more, word in ((["--mass-absorption", 31], "--external-standard"), (["--external-standard", out], "holds no")):
        done = autoxrd("refine", pair[0].specimen, *words, *more)
        assert done.returncode == 2
        assert word in done.stderr
        assert not out.exists()


def test_times_in_both_files_give_the_ratio(pair: tuple[Apart, Path], autoxrd: Run, tmp_path: Path) -> None:
    """The same counts as XRDML, whose reader knows the time; a rate stands for one second."""
    files = [_xrdml(tmp_path, path, seconds) for path, seconds in zip(pair[0][:2], (4.0, 4.0 * LONGER), strict=True)]
    standard = tmp_path / "standard"
    with Graph.open(pair[1], read_only=True) as graph:
        engine = str(graph.job.engine["name"])
    words = ["-s", pair[0].cif, "--anode", "Cu", "--engine", engine, "--out", standard]
    assert autoxrd("refine", files[0], *words).returncode == 0
    request = replace(_of(pair, standard), pattern=files[1])
    job, _ = load_job(request)
    assert isinstance(job.standard, ExternalStandard)
    assert (job.standard.intensity_origin, job.standard.intensity_ratio) == ("files", pytest.approx(LONGER))
    stated = replace(request, external=ExternalRequest(standard, intensity_ratio=2.0))
    job, _ = load_job(stated)
    assert isinstance(job.standard, ExternalStandard)
    assert (job.standard.intensity_origin, job.standard.intensity_ratio) == ("given", 2.0)


def test_a_series_takes_it_for_every_pattern(pair: tuple[Apart, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.xy"
    rows = [line.split() for line in pair[0].specimen.read_text().splitlines()]
    other.write_text("".join(f"{x} {int(y) + int(y) % 3 - 1}\n" for x, y in rows))
    external = ExternalRequest(pair[1], composition=COMPOSITION, intensity_ratio=LONGER)
    each = replace(_request(pair, {}, {}), external=external)
    request = SeriesRequest((pair[0].specimen, other), each)
    report = run_series(request, tmp_path / "series")
    for row in report.patterns:
        assert row.amorphous is not None
        assert row.amorphous.value == pytest.approx(1.0 - CRYSTALLINE, abs=4 * (row.amorphous.esd or 0.0))
        assert row.phases[0].absolute_weight_fraction is not None
    less = replace(request, each=replace(request.each, external=replace(external, intensity_ratio=2.0)))
    with pytest.raises(UserInputError, match="another --out"):
        run_series(less, tmp_path / "series")


def test_what_is_asked_for_survives_the_way_into_another_process(pair: tuple[Apart, Path], tmp_path: Path) -> None:
    asked = _request(pair, {}, {"composition": COMPOSITION, "intensity_ratio": LONGER, "crystallinity": 0.9})
    found: list[Request] = []

    def refine(request: Request, place: Place, _folder: Path, _before: PatternRow | None) -> PatternRow:
        found.append(request)
        return failed_row(place, started_from="structures", sha256="", code="x", error="x")

    task = task_of(asked, Place(1, pair[0].specimen, None), tmp_path, None)
    answer_to(json.loads(json.dumps(task)), refine)
    assert found == [asked]


def _xrdml(directory: Path, source: Path, seconds: float) -> Path:
    x, y = np.loadtxt(source).T
    path = directory / f"{source.stem}.xrdml"
    path.write_text(
        '<?xml version="1.0"?><xrdMeasurements xmlns="http://www.xrdml.com/XRDMeasurement/2.0"><xrdMeasurement>'
        '<scan scanAxis="Gonio" status="Completed"><dataPoints><positions axis="2Theta" unit="deg">'
        f"<startPosition>{x[0]}</startPosition><endPosition>{x[-1]}</endPosition></positions>"
        f"<commonCountingTime>{seconds}</commonCountingTime>"
        f'<counts unit="counts">{" ".join(f"{value:.0f}" for value in y)}</counts>'
        "</dataPoints></scan></xrdMeasurement></xrdMeasurements>"
    )
    return path
