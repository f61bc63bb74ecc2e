"""The main job on real patterns with known truth, through the command. Marked ``real``: half a minute to two each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent.checks import check_graph
from tests.agent.conftest import Run

pytestmark = pytest.mark.real

File = Callable[[str], Path]


def _refine(autoxrd: Run, out: Path, *words: object) -> dict[str, Any]:
    done = autoxrd("refine", *words, "--out", out, "--json")
    assert done.returncode in (0, 3), done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    check_graph(out)
    return summary


def _cell(summary: dict[str, Any], phase: int = 0) -> dict[str, float]:
    return {key: quantity["value"] for key, quantity in summary["phases"][phase]["cell"].items()}


def test_the_demo_needs_no_file_of_ours(autoxrd: Run, tmp_path: Path) -> None:
    done = autoxrd("demo", "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["quality"]["rwp_percent"] <= 9.6
    assert _cell(summary)["a"] == pytest.approx(9.3719, abs=0.0010)
    assert _cell(summary)["c"] == pytest.approx(6.8859, abs=0.0008)
    assert (tmp_path / "out" / "report.html").is_file()


def test_fluorapatite(autoxrd: Run, shared_file: File, tmp_path: Path) -> None:
    summary = _refine(
        autoxrd,
        tmp_path / "out",
        shared_file("lab-fap-gsas2/FAP.XRA"),
        "--structure",
        shared_file("lab-fap-gsas2/fluorapatite.cif"),
        "--instrument",
        shared_file("lab-fap-gsas2/INST_XRY.PRM"),
    )
    assert summary["quality"]["rwp_percent"] <= 9.6
    assert _cell(summary)["a"] == pytest.approx(9.3719, abs=0.0010)
    assert _cell(summary)["c"] == pytest.approx(6.8859, abs=0.0008)
    assert summary["verdict"].startswith("accepted")


WEIGHED = {
    "1a": {"1000017": 1.15, "zincite": 4.04, "1000043": 94.81},
    "1b": {"1000017": 94.31, "zincite": 1.36, "1000043": 4.33},
    "1e": {"1000017": 55.12, "zincite": 15.25, "1000043": 29.62},
    "1g": {"1000017": 31.37, "zincite": 34.21, "1000043": 34.42},
}


@pytest.mark.parametrize("sample", WEIGHED)
def test_round_robin_mixtures(sample: str, autoxrd: Run, shared_file: File, tmp_path: Path) -> None:
    truth = WEIGHED[sample]
    words: list[object] = [shared_file(f"qpa-cpd1-open/cpd-{sample}.prn"), "--anode", "Cu"]
    for stem in truth:
        words += ["--structure", shared_file(f"qpa-cpd1-open/{stem}.cif")]
    summary = _refine(autoxrd, tmp_path / "out", *words)
    fractions = [phase["weight_fraction"]["value"] for phase in summary["phases"]]
    assert sum(fractions) == pytest.approx(1.0, abs=1e-6)
    for found, weighed in zip(fractions, truth.values(), strict=True):
        assert 100 * found == pytest.approx(weighed, abs=2.0)


def test_synchrotron_pattern_with_a_hidden_impurity(autoxrd: Run, shared_file: File, tmp_path: Path) -> None:
    summary = _refine(
        autoxrd,
        tmp_path / "out",
        shared_file("sync-nac-11bm/11BM_NAC.fxye"),
        "--structure",
        shared_file("sync-nac-11bm/NAC.cif"),
        "--instrument",
        shared_file("sync-nac-11bm/11bm_gsas.prm"),
    )
    assert _cell(summary)["a"] == pytest.approx(10.2505, abs=0.0015)
    # CaF2, a = 5.4646 angstrom, 0.413909 angstrom: 111 at 7.52, 220 at 12.30 and 311 at 14.43 degrees
    found = [peak["two_theta_deg"] for peak in summary["unexplained_peaks"]]
    for expected in (7.522, 12.298, 14.430):
        assert min(abs(position - expected) for position in found) < 0.02
    assert "unexplained_peaks" in [w["code"] for w in summary["warnings"]] + list(summary["reasons"])


def test_garnet_with_neutrons(autoxrd: Run, shared_file: File, tmp_path: Path) -> None:
    summary = _refine(
        autoxrd,
        tmp_path / "out",
        shared_file("neut-garnet-d1a/garnet.raw"),
        "--structure",
        shared_file("neut-garnet-d1a/garnet_YFeAl.cif"),
        "--instrument",
        shared_file("neut-garnet-d1a/inst_d1a.prm"),
    )
    assert summary["quality"]["rwp_percent"] <= 6.0


def test_a_large_zero_offset_is_found(autoxrd: Run, shared_file: File, tmp_path: Path) -> None:
    summary = _refine(
        autoxrd,
        tmp_path / "out",
        shared_file("neut-lbco-hrpt/lbco_hrpt.xye"),
        "--structure",
        shared_file("neut-lbco-hrpt/LBCO.cif"),
        "--wavelength",
        "1.494",
        "--radiation",
        "neutron",
    )
    assert summary["instrument"]["zero_deg"]["value"] == pytest.approx(0.61, abs=0.03)
    assert summary["quality"]["gof"] < 1.35
