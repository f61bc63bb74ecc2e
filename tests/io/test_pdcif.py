"""The powder profile of a CIF: axes, uncertainties, gaps, several blocks, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autoxrd.errors import UserInputError
from autoxrd.io import read_pattern
from autoxrd.report.cif import phase_cif
from tests.io.samples import peaks, write
from tests.report.factory import report_input

X, Y = peaks()
RANGE = f"_pd_meas_2theta_range_min {X[0]:.4f}\n_pd_meas_2theta_range_max {X[-1]:.4f}\n"
RANGE += f"_pd_meas_2theta_range_inc {X[1] - X[0]:.6f}\n"
RADIATION = """_diffrn_radiation_probe x-ray
loop_
_diffrn_radiation_wavelength
_diffrn_radiation_wavelength_wt
1.540598(2) 1.000
1.544390 0.380
"""


def _loop(names: tuple[str, ...], *columns: list[str]) -> str:
    rows = "\n".join(" ".join(row) for row in zip(*columns, strict=True))
    return "loop_\n" + "\n".join(names) + "\n" + rows + "\n"


def _counts(y: np.ndarray = Y) -> str:
    return _loop(("_pd_meas_counts_total",), [f"{v:.0f}" for v in y])


def _refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(UserInputError) as caught:
        read_pattern(write(tmp_path / "p.cif", text))
    return caught.value.code


def test_counts_over_a_range_with_two_lines(tmp_path: Path) -> None:
    pattern = read_pattern(write(tmp_path / "p.cif", f"data_one\n_cell_length_a 5.0\n{RADIATION}{RANGE}{_counts()}"))
    assert pattern.format == "pdcif"
    np.testing.assert_allclose(pattern.x, X, atol=1e-3)
    np.testing.assert_allclose(pattern.y, np.round(Y))
    np.testing.assert_allclose(pattern.sigma, np.sqrt(np.maximum(np.round(Y), 1.0)))
    assert pattern.hints.wavelengths_angstrom == (1.540598, 1.54439)
    assert pattern.hints.ka2_ratio == pytest.approx(0.38)
    assert pattern.hints.radiation == "xray"


def test_listed_angles_esds_in_brackets_and_gaps(tmp_path: Path) -> None:
    y = [f"{v:.1f}(25)" for v in Y]
    y[3], y[7] = ".", "?"
    angles = [f"{v:.4f}" for v in X]
    text = "data_a\n" + _loop(("_pd_meas_2theta_scan", "_pd_proc_intensity_total"), angles, y)
    pattern = read_pattern(write(tmp_path / "p.cif", text))
    kept = np.delete(np.arange(X.size), (3, 7))
    np.testing.assert_allclose(pattern.x, np.round(X[kept], 4))
    np.testing.assert_allclose(pattern.y, np.round(Y[kept], 1))
    np.testing.assert_allclose(pattern.sigma, 2.5)
    assert "points_without_value" in {notice.code for notice in pattern.notices}


def test_weights_give_the_uncertainty_of_intensities_but_not_of_counts(tmp_path: Path) -> None:
    y, weight = [f"{v:.1f}" for v in Y], ["0.25"] * Y.size
    names = ("_pd_proc_intensity_total", "_pd_proc_ls_weight")
    pattern = read_pattern(write(tmp_path / "p.cif", f"data_a\n{RANGE}{_loop(names, y, weight)}"))
    np.testing.assert_allclose(pattern.sigma, 2.0)
    names = ("_pd_meas_counts_total", "_pd_proc_ls_weight")
    counts = read_pattern(write(tmp_path / "c.cif", f"data_a\n{RANGE}{_loop(names, y, weight)}"))
    assert not np.allclose(counts.sigma, 2.0)


def test_the_first_of_several_profiles_is_read_and_said(tmp_path: Path) -> None:
    text = f"data_s\n_cell_length_a 5\ndata_a\n{RANGE}{_counts()}\ndata_b\n{RANGE}{_counts(2 * Y)}"
    path = write(tmp_path / "p.cif", text)
    first, second = read_pattern(path), read_pattern(path, bank=2)
    assert "other_banks_ignored" in {notice.code for notice in first.notices}
    np.testing.assert_allclose(second.y, np.round(2 * Y))
    with pytest.raises(UserInputError) as caught:
        read_pattern(path, bank=3)
    assert caught.value.code == "bank_missing"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"data_a\n{_counts()}", "pdcif_no_axis"),
        (f"data_a\n{RANGE}{_counts(Y[:-3])}", "pdcif_no_axis"),
        (f"data_a\n{RANGE}_pd_meas_counts_total ?\n", "pdcif_no_data"),
        (f"data_a\n{RANGE}loop_\n_pd_meas_counts_total\n'1\n2 3\n", "pdcif_malformed"),
        (
            "data_a\n"
            + _loop(("_pd_meas_time_of_flight", "_pd_meas_intensity_total"), ["1", "2", "3"], ["4", "5", "6"]),
            "format_unsupported",
        ),
        ("data_a\n_cell_length_a 5.0\nloop_\n_atom_site_label\nSi\n", "format_unsupported"),
    ],
)
def test_pdcif_refusals(tmp_path: Path, text: str, code: str) -> None:
    assert _refused(tmp_path, text) == code


def test_the_profile_of_a_report_is_a_pattern_again(tmp_path: Path) -> None:
    inp = report_input(n=6001)
    (tmp_path / "report.cif").write_bytes(phase_cif(inp, 0))
    pattern = read_pattern(tmp_path / "report.cif")
    np.testing.assert_allclose(pattern.x, inp.arrays.x, atol=1e-5)
    np.testing.assert_allclose(pattern.y, inp.arrays.y_obs, rtol=1e-5)
    np.testing.assert_allclose(pattern.sigma, inp.arrays.sigma, rtol=1e-3)
