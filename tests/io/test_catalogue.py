"""Every pattern of the data catalogue: right numbers, or a clear refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autoxrd.domain.pattern import AxisKind, SigmaOrigin
from autoxrd.errors import UserInputError
from autoxrd.io import assess_pattern, read_pattern
from tests.conftest import SHARED_DATA

NOT_READ_YET = (".rasx", ".brml")
# Points that the catalogue counts and that are no measurement: filling of the last record, or angles <= 0.
FEWER = {
    "FAP.XRA": 9,
    "PBSO4.XRA": 9,
    "pattern_A.xra": 9,
    "garnet.raw": 1,
    "LaMnO3_50k.gsas": 4,
    "PBSO4.CWN": 9,
    "Al2O3.dat": 4,
    "D1A5.dat": 101,
}
MEASURED = ("gsas_fxye", "gsas_esd", "columns_xye")


def _cases() -> list[pytest.ParameterSet]:
    cases = []
    for meta in sorted(SHARED_DATA.glob("*/meta.json")) if SHARED_DATA.is_dir() else []:
        folder = meta.parent.name
        if folder == "malformed-open":
            continue
        names = {f"{folder}/{entry['file']}": entry for entry in json.loads(meta.read_text())["patterns"]}
        cases += [pytest.param(name, entry, id=name) for name, entry in names.items()]
    return cases or [pytest.param("absent/absent.xy", {}, id="absent")]


@pytest.mark.parametrize(("relative", "entry"), _cases())
def test_pattern_of_the_catalogue(relative: str, entry: dict, shared_file: Callable[[str], Path]) -> None:
    path = shared_file(relative)
    binary_raw = path.suffix.lower() == ".raw" and path.read_bytes().startswith(b"RAW")
    if binary_raw or path.suffix.lower() in NOT_READ_YET:
        with pytest.raises(UserInputError) as caught:
            read_pattern(path)
        assert caught.value.code == "format_unsupported"
        assert path.name in str(caught.value)
        assert "looks like" in str(caught.value)
        return
    truth = entry["verified"][0]
    pattern = read_pattern(path)
    fewer = FEWER.get(path.name, 0)
    assert pattern.n_points == truth["n"] - fewer
    if fewer:
        assert {notice.code for notice in pattern.notices} & {"padding_dropped", "points_below_zero_dropped"}
    else:
        assert pattern.x[0] == pytest.approx(truth["x0"], abs=1e-4)
        assert pattern.x[-1] == pytest.approx(truth["x1"], abs=1e-4)
    if path.name != "D1A5.dat":
        assert pattern.x[0] == pytest.approx(truth["x0"], abs=1e-4)
    assert pattern.y.max() == pytest.approx(truth["ymax"], rel=1e-9)
    assert np.all(np.diff(pattern.x) > 0)
    assert np.all(pattern.sigma > 0)
    assert len(pattern.source_sha256) == 64
    assert (pattern.axis is AxisKind.TOF) == (path.suffix == ".gsa")
    if pattern.format in MEASURED:
        assert pattern.sigma_origin is SigmaOrigin.MEASURED
    if not truth["integer"] and pattern.sigma_origin is SigmaOrigin.COUNTING:
        assert "counting_sigma_uncertain" in {notice.code for notice in pattern.notices}
    assess_pattern(pattern)


def test_the_second_column_of_three_is_an_esd_only_where_it_is_one(shared_file: Callable[[str], Path]) -> None:
    for name in ("id-limntiof-open/Mn2O3+LiF.xy", "id-limntiof-open/MnO2.xy"):
        pattern = read_pattern(shared_file(name))
        assert pattern.sigma_origin is SigmaOrigin.COUNTING
        assert "third_column_not_esd" in {notice.code for notice in pattern.notices}
        np.testing.assert_allclose(pattern.sigma, np.sqrt(np.maximum(pattern.y, 1.0)))
    # Counting time varies along this scan, so that esd / sqrt(y) jumps from 1.2 to 0.4.
    assert read_pattern(shared_file("sync-hct-dash/hct_dash.xye")).sigma_origin is SigmaOrigin.MEASURED


def test_detectors_that_were_averaged_narrow_the_counting_error(shared_file: Callable[[str], Path]) -> None:
    pattern = read_pattern(shared_file("neut-garnet-d1a/garnet.raw"))
    ratio = pattern.sigma / np.sqrt(np.maximum(pattern.y, 1.0))
    assert ratio.max() == pytest.approx(1.0)
    assert ratio.min() < 0.35  # up to ten detectors saw the middle of the range


def test_gsas_and_fullprof_copies_of_one_measurement_agree(shared_file: Callable[[str], Path]) -> None:
    gsas = read_pattern(shared_file("neut-pbso4-d1a-lambda/PBSO4.CWN"))
    fullprof = read_pattern(shared_file("neut-pbso4-d1a-lambda/pbso4.dat"))
    n = gsas.n_points
    np.testing.assert_array_equal(gsas.y, fullprof.y[:n])
    np.testing.assert_allclose(gsas.sigma, fullprof.sigma[:n])
    assert fullprof.hints.radiation == "neutron"


def test_headers_give_hints(shared_file: Callable[[str], Path]) -> None:
    hints = read_pattern(shared_file("id-geo2-zno-dara/GeO2-ZnO_700C_60min.xrdml")).hints
    assert hints.wavelengths_angstrom == (1.540598, 1.544426)
    assert (hints.ka2_ratio, hints.anode, hints.goniometer_radius_mm) == (0.5, "Cu", 145.0)
    assert hints.radiation == "xray"
    assert hints.counting_seconds == 13.77
    hints = read_pattern(shared_file("sync-nac-11bm/11BM_NAC.fxye")).hints
    assert (hints.wavelengths_angstrom, hints.temperature_kelvin) == ((0.413909,), 298.0)
    assert read_pattern(shared_file("sync-hct-dash/hct_dash.xye")).hints.wavelengths_angstrom == (1.1294,)
    hints = read_pattern(shared_file("vendor-open/BT86_.UXD")).hints
    assert (hints.wavelengths_angstrom, hints.ka2_ratio, hints.anode) == ((1.5406, 1.54439), 0.5, "Cu")
    assert (hints.goniometer_radius_mm, hints.counting_seconds) == (200.5, 0.5)
