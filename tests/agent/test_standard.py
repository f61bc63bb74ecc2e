"""A mixture with an internal standard and a glass: the amorphous content comes out, is told, and is repeated."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from autoxrd.agent.controller import rejudge
from autoxrd.store.verify import verify
from tests.agent.conftest import Run
from tests.agent.mixture import MAIN, STANDARD, write_mixture


@pytest.fixture(scope="module")
def mixture(autoxrd: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Directory and standard output of the finished job."""
    pattern, standard, main = write_mixture(tmp_path_factory.mktemp("mixture"))
    out = tmp_path_factory.mktemp("mixture-job") / "out"
    words = ["-s", standard, "-s", main, "--anode", "Cu", "--standard", "Fluorite=20", "--out", out, "--json"]
    done = autoxrd("refine", pattern, *words)
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def test_the_amorphous_content_is_found_within_its_uncertainty(mixture: tuple[Path, str]) -> None:
    found = json.loads(mixture[1])["amorphous"]
    assert found["standard"] == "fluorite"
    value, esd = found["weight_fraction"]["value"], found["weight_fraction"]["esd"]
    assert esd < 0.03
    assert abs(value - (1.0 - STANDARD - MAIN)) < 3 * esd
    rest = found["weight_fraction_without_standard"]["value"]
    assert rest == pytest.approx(value / (1.0 - STANDARD), abs=1e-9)
    change = found["change_for_one_percent"]
    assert found["detection_limit"] == pytest.approx(3 * (esd**2 + change**2) ** 0.5)
    assert change == pytest.approx(0.01 * (1 - value) ** 2 / STANDARD)


def test_every_phase_has_its_share_of_the_specimen_and_a_detection_limit(mixture: tuple[Path, str]) -> None:
    phases = {p["name"]: p for p in json.loads(mixture[1])["phases"]}
    assert phases["fluorite"]["absolute_weight_fraction"]["value"] == pytest.approx(STANDARD)
    main = phases["halite"]["absolute_weight_fraction"]
    assert abs(main["value"] - MAIN) < 3 * main["esd"]
    assert phases["halite"]["detection_limit"] == pytest.approx(3 * phases["halite"]["weight_fraction"]["esd"])


def test_the_report_and_the_tables_show_it(mixture: tuple[Path, str]) -> None:
    out = mixture[0]
    page = (out / "report.html").read_text()
    assert "Amorphous content by internal standard" in page
    assert "Of the specimen / %" in page
    with (out / "parameters.csv").open() as table:
        names = {row["name"] for row in csv.DictReader(table)}
    assert {"sample.amorphous_weight_fraction", "phase.halite.absolute_weight_fraction"} <= names
    methods = " ".join(json.loads((out / "report.json").read_text())["details"]["methods"]["paragraphs"])
    assert "fluorite as internal standard (20 % of the specimen" in methods


def test_the_record_gives_the_same_again(mixture: tuple[Path, str], autoxrd: Run) -> None:
    assert verify(mixture[0], judge=rejudge).ok
    outcome = json.loads(autoxrd("replay", mixture[0], "--json").stdout)
    assert outcome["equal"]
