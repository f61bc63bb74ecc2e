"""GSAS powder text: banks, forms, filling, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autoxrd.domain.pattern import AxisKind, SigmaOrigin
from autoxrd.errors import UserInputError
from autoxrd.io import read_pattern
from tests.io.samples import peaks, write

X, Y = peaks(n=397, step=0.02)


def _std(y: np.ndarray, detectors: np.ndarray | None = None, declared: int | None = None, bank: int = 1) -> str:
    fields = [f"{(int(detectors[i]) if detectors is not None else ''):>2}{int(value):6d}" for i, value in enumerate(y)]
    fields += ["       0"] * (-len(fields) % 10)
    rows = ["".join(fields[i : i + 10]) for i in range(0, len(fields), 10)]
    return f"BANK {bank} {declared or y.size} {len(rows)} CONST 1000 2 0 0 STD\n" + "\n".join(rows) + "\n"


def test_std_drops_the_filling_of_its_last_record(tmp_path: Path) -> None:
    pattern = read_pattern(write(tmp_path / "a.raw", "title  \n" + _std(Y)))
    assert pattern.format == "gsas_std"
    assert pattern.title == "title"
    np.testing.assert_array_equal(pattern.y, Y)
    np.testing.assert_allclose(pattern.x, X)
    assert {notice.code for notice in pattern.notices} == {"padding_dropped"}


def test_zeros_that_are_counts_stay(tmp_path: Path) -> None:
    y = np.where(X > 17.0, 0, np.rint(Y / 100.0))
    pattern = read_pattern(write(tmp_path / "a.raw", "t\n" + _std(y)))
    assert pattern.n_points == y.size


def test_std_detectors_scale_the_error(tmp_path: Path) -> None:
    detectors = np.where(X < 12, 1, 4)
    pattern = read_pattern(write(tmp_path / "a.raw", "t\n" + _std(Y, detectors)))
    np.testing.assert_allclose(pattern.sigma, np.sqrt(np.maximum(Y * detectors, 1.0)) / detectors)
    assert pattern.sigma_origin is SigmaOrigin.COUNTING


def test_counts_that_run_over_the_detector_columns_are_rejoined(tmp_path: Path) -> None:
    y = Y.copy()
    y[60] = 2_345_678.0
    text = _std(np.minimum(y, 999999)).replace("  999999", f"{int(y[60]):8d}")
    pattern = read_pattern(write(tmp_path / "a.raw", "t\n" + text))
    assert pattern.y.max() == y[60]


def test_esd_and_fxye(tmp_path: Path) -> None:
    sigma = np.sqrt(Y) * 0.7
    pairs = [f"{a:8.0f}{b:8.2f}" for a, b in zip(Y, sigma, strict=True)]
    rows = ["".join(pairs[i : i + 5]) for i in range(0, len(pairs), 5)]
    text = f"t\nBANK 1 {Y.size} {len(rows)} CONST 1000 2 0 0 ESD\n" + "\n".join(rows) + "\n"
    pattern = read_pattern(write(tmp_path / "a.gsa", text))
    np.testing.assert_allclose(pattern.sigma, sigma, atol=0.006)
    rows = [f"{a * 100:15.4f}{b:15.3f}{c:15.4f}" for a, b, c in zip(X, Y, sigma, strict=True)]
    text = f"t\n# Wavelength = 0.4586\nBANK 1 {Y.size} {Y.size} CONS 1000 2 0 0 FXYE\n" + "\n".join(rows) + "\n"
    pattern = read_pattern(write(tmp_path / "a.fxye", text))
    np.testing.assert_allclose(pattern.x, X)
    assert pattern.hints.wavelengths_angstrom == (0.4586,)
    tof = text.replace("CONS 1000 2 0 0", "SLOG 1000 2 0.0004 0")
    assert read_pattern(write(tmp_path / "t.gsa", tof)).axis is AxisKind.TOF


def test_banks_are_chosen_by_number(tmp_path: Path) -> None:
    text = "t\n" + _std(Y) + _std(Y[::-1], bank=3)
    path = write(tmp_path / "b.gsa", text)
    first = read_pattern(path)
    np.testing.assert_array_equal(first.y, Y)
    assert "other_banks_ignored" in {notice.code for notice in first.notices}
    np.testing.assert_array_equal(read_pattern(path, bank=3).y, Y[::-1])
    with pytest.raises(UserInputError) as caught:
        read_pattern(path, bank=2)
    assert caught.value.code == "bank_missing"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("STD", "ALT"), "format_unsupported"),
        (("CONST 1000 2 0 0", "SLOG 1000 2 0 0"), "format_unsupported"),
        (("BANK 1 397", "BANK 1 900"), "pattern_truncated"),
        (("CONST 1000 2", "CONST 1000 0"), "gsas_bank_invalid"),
        (("CONST 1000 2 0 0", "CONST start"), "gsas_bank_invalid"),
        (("\n     ", "\n  ab "), "pattern_line_invalid"),
    ],
)
def test_gsas_refusals(tmp_path: Path, change: tuple[str, str], code: str) -> None:
    text = ("t\n" + _std(Y)).replace(*change)
    with pytest.raises(UserInputError) as caught:
        read_pattern(write(tmp_path / "a.raw", text))
    assert caught.value.code == code
    assert "line" in caught.value.context
