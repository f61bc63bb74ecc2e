"""Rigaku RAS: code page, scans, attenuation, rates, axes, damaged files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from autoxrd.errors import UserInputError
from autoxrd.io import read_pattern
from tests.io.samples import peaks, write

X, Y = peaks()
HEADER = {
    "FILE_SAMPLE": "石英|quartz",
    "HW_GONIOMETER_RADIUS-2": "190.0",
    "HW_GONIOMETER_RADIUS-3": "300.0",
    "HW_XG_TARGET_NAME": "Cu",
    "HW_XG_WAVE_LENGTH_ALPHA1": "1.540593",
    "HW_XG_WAVE_LENGTH_ALPHA2": "1.544414",
    "HW_XG_WAVE_LENGTH_BETA": "1.392250",
    "MEAS_COND_AXIS_NAME_INTERNAL-8": "CounterMonochromator",
    "MEAS_COND_AXIS_POSITION-8": "None",
    "MEAS_COND_XG_WAVE_TYPE": "Ka",
    "MEAS_SCAN_AXIS_X": "2θ/θ",
    "MEAS_SCAN_SPEED": "6.0000",
    "MEAS_SCAN_SPEED_UNIT": "deg/min",
    "MEAS_SCAN_STEP": "0.0500",
    "MEAS_SCAN_UNIT_X": "deg",
    "MEAS_SCAN_UNIT_Y": "counts",
}


def ras(x: NDArray = X, y: NDArray = Y, factor: NDArray | float | None = 1.0, scans: int = 1, **changed: str) -> str:
    """A file of equal scans; header entries are replaced or added by their names in small letters."""
    entries = HEADER | {"MEAS_DATA_COUNT": f"{x.size}.0000000000"}
    entries |= {name.upper(): value for name, value in changed.items()}
    head = "\n".join(f'*{name} "{value}"' for name, value in entries.items())
    columns = [x, y] if factor is None else [x, y, np.broadcast_to(factor, y.shape)]
    rows = "\n".join(" ".join(f"{value:.4f}" for value in row) for row in zip(*columns, strict=True))
    scan = f"*RAS_HEADER_START\n{head}\n*RAS_HEADER_END\n*RAS_INT_START\n{rows}\n*RAS_INT_END\n"
    return f"*RAS_DATA_START\n{scan * scans}*RAS_DATA_END\n"


@pytest.mark.parametrize("encoding", ["cp932", "utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_header_is_read_in_its_code_page(tmp_path: Path, encoding: str, newline: str) -> None:
    pattern = read_pattern(write(tmp_path / "a.ras", ras().replace("\n", newline), encoding=encoding))
    np.testing.assert_allclose(pattern.x, X)
    np.testing.assert_array_equal(pattern.y, Y)
    np.testing.assert_allclose(pattern.sigma, np.sqrt(Y))
    hints = pattern.hints
    assert (pattern.format, pattern.title, pattern.notices) == ("rigaku_ras", "quartz", ())
    assert hints.wavelengths_angstrom == (1.540593, 1.544414)
    assert (hints.anode, hints.radiation, hints.goniometer_radius_mm) == ("Cu", "xray", 300.0)
    assert hints.counting_seconds == pytest.approx(0.5)
    assert hints.intensity_seconds == pytest.approx(0.5)


def test_the_radius_of_a_small_instrument_stands_one_entry_before(tmp_path: Path) -> None:
    text = ras(**{"hw_goniometer_radius-2": "150.0", "hw_goniometer_radius-3": "0"})
    assert read_pattern(write(tmp_path / "a.ras", text)).hints.goniometer_radius_mm == 150.0


def test_attenuated_counts_keep_the_error_of_what_was_counted(tmp_path: Path) -> None:
    factor = np.where(Y > 500, 10.0, 1.0)
    pattern = read_pattern(write(tmp_path / "a.ras", ras(factor=factor)))
    np.testing.assert_allclose(pattern.y, Y * factor)
    np.testing.assert_allclose(pattern.sigma, np.sqrt(Y) * factor)
    np.testing.assert_allclose(read_pattern(write(tmp_path / "b.ras", ras(factor=None))).y, Y)


@pytest.mark.parametrize(
    ("speed", "unit", "seconds"), [("6.0", "deg/min", 0.5), ("0.5", "sec.", 0.5), ("0.1", "deg/sec", 0.5)]
)
def test_rates_get_their_error_from_the_counting_time(tmp_path: Path, speed: str, unit: str, seconds: float) -> None:
    factor = np.where(Y > 500, 10.0, 1.0)
    changed = {"meas_scan_unit_y": "cps", "meas_scan_speed": speed, "meas_scan_speed_unit": unit}
    pattern = read_pattern(write(tmp_path / "a.ras", ras(y=Y / seconds, factor=factor, **changed)))
    np.testing.assert_allclose(pattern.y, Y * factor / seconds)
    np.testing.assert_allclose(pattern.sigma, np.sqrt(Y) * factor / seconds)
    assert pattern.hints.counting_seconds == pytest.approx(seconds)
    assert pattern.hints.intensity_seconds == 1.0
    assert pattern.notices == ()


@pytest.mark.parametrize("unit", ["", "rpm"])
def test_rates_without_a_counting_time_are_told(tmp_path: Path, unit: str) -> None:
    text = ras(meas_scan_unit_y="cps", meas_scan_speed_unit=unit)
    pattern = read_pattern(write(tmp_path / "a.ras", text))
    assert [notice.code for notice in pattern.notices] == ["counting_sigma_uncertain"]
    assert pattern.hints.counting_seconds is None


def test_crystals_in_the_beam_are_told(tmp_path: Path) -> None:
    before = read_pattern(write(tmp_path / "a.ras", ras(meas_cond_xg_wave_type="Ka1")))
    assert before.hints.wavelengths_angstrom == (1.540593,)
    assert [notice.code for notice in before.notices] == ["incident_monochromator"]
    after = read_pattern(write(tmp_path / "b.ras", ras(**{"meas_cond_axis_position-8": "Bent"})))
    assert [notice.code for notice in after.notices] == ["diffracted_monochromator"]


def test_the_first_of_several_scans_is_read_and_said(tmp_path: Path) -> None:
    second = ras(y=2.0 * Y, meas_scan_speed="3.0").split("*RAS_DATA_START\n")[1]
    path = write(tmp_path / "a.ras", ras().replace("*RAS_DATA_END\n", "") + second)
    assert "other_banks_ignored" in {notice.code for notice in read_pattern(path).notices}
    other = read_pattern(path, bank=2)
    np.testing.assert_allclose(other.y, 2.0 * Y)
    assert other.notices == ()
    assert other.hints.counting_seconds == pytest.approx(1.0)
    with pytest.raises(UserInputError) as caught:
        read_pattern(path, bank=3)
    assert caught.value.code == "bank_missing"


ROW = f"{X[7]:.4f} {Y[7]:.4f} 1.0000"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('*RAS_DATA_START\n*RAS_HEADER_START\n*FILE_TYPE "RAS_RAW"\n', "ras_no_scan"),
        ("*RAS_DATA_START\n*RAS_INT_START\n*RAS_INT_END\n", "ras_no_data"),
        (ras(meas_scan_axis_x_internal="Omega"), "ras_not_powder"),
        (ras(meas_scan_axis_x="2θχ/φ"), "ras_not_powder"),
        (ras(meas_scan_unit_x="mm"), "ras_not_powder"),
        (ras()[:-600], "pattern_truncated"),
        (ras(meas_data_count="401"), "pattern_truncated"),
        (ras(factor=0.0), "ras_attenuation_invalid"),
        (ras().replace(ROW, ROW.replace("1.0000", "-3")), "ras_attenuation_invalid"),
        (ras().replace(ROW, ROW.replace("1.0000", "nan")), "ras_attenuation_invalid"),
        (ras().replace(ROW, f"{X[7]:.4f} nan 1.0"), "pattern_nan"),
        (ras().replace(ROW, f"{X[7]:.4f}"), "pattern_line_invalid"),
        (ras().replace(ROW, ROW + " 4 5"), "pattern_line_invalid"),
        (ras().replace(ROW, "ten twelve one"), "pattern_line_invalid"),
        (ras().replace(ROW, ROW + "\n" + ROW, 1).replace("400.0", "401.0"), "pattern_duplicate_x"),
        (ras(X[:20], Y[:20]), "pattern_too_short"),
    ],
)
def test_ras_refusals(tmp_path: Path, text: str, code: str) -> None:
    with pytest.raises(UserInputError) as caught:
        read_pattern(write(tmp_path / "a.ras", text))
    assert caught.value.code == code
    assert "\n" not in caught.value.detail
    if ROW not in text and code.startswith(("pattern_line", "ras_attenuation")) and "*" in text:
        assert caught.value.context["line"] > 1


def test_real_files(shared_file: Callable[[str], Path]) -> None:
    small = read_pattern(shared_file("id-hob2-xerus-ras/HoB21.ras"))
    assert (small.n_points, small.hints.goniometer_radius_mm, small.hints.anode) == (3001, 150.0, "Cu")
    assert small.hints.wavelengths_angstrom == (1.540593, 1.544414)
    assert small.hints.counting_seconds == pytest.approx(0.4)
    assert [notice.code for notice in small.notices] == ["diffracted_monochromator"]
    large = read_pattern(shared_file("vendor-open/rigaku_nims.ras"))
    assert (large.n_points, large.hints.goniometer_radius_mm, large.title) == (3501, 300.0, "Test Sample")
    assert large.hints.counting_seconds == pytest.approx(0.075)
    assert int(np.sum(large.y == 0.0)) == 34
    assert float(large.sigma.min()) == 1.0
