"""Intensities on a grid: FullProf, DBWS, PSI, D1A, Maud."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autoxrd.domain.pattern import SigmaOrigin
from autoxrd.errors import UserInputError
from autoxrd.io import read_pattern
from tests.io.samples import peaks, write

X, Y = peaks()
ROWS = "\n".join(" ".join(f"{v:g}" for v in Y[i : i + 10]) for i in range(0, Y.size, 10))
HEAD = f"{X[0]:.3f} 0.05 {X[-1]:.3f}"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"{HEAD}\n{ROWS}\n", "grid_free"),
        (f"! title\n# more\n\n{HEAD}  text\n{ROWS}\n", "grid_free"),
        (f"a title line\n{HEAD}\n" + "\n".join(f"{v:g}" for v in Y), "grid_free"),
        (f"{X[0]:8.4f}{0.05:8.4f}{X[-1]:8.4f}\n{ROWS}\n", "grid_free"),
        (f"a title\n400 0.05 {X[0]} 1.5406 1\n" + "\n".join(f"{v:g}\t" for v in Y), "maud_plot"),
    ],
)
def test_forms(tmp_path: Path, text: str, name: str) -> None:
    pattern = read_pattern(write(tmp_path / "a.dat", text))
    assert pattern.format == name
    np.testing.assert_allclose(pattern.x, X)
    np.testing.assert_array_equal(pattern.y, Y)


def test_header_columns_may_touch(tmp_path: Path) -> None:
    x = 10.0 + 0.25 * np.arange(400)
    text = f"{x[0]:8.4f}{0.25:8.4f}{x[-1]:8.4f}\n{ROWS}\n"
    assert "0.2500109.7500" in text
    pattern = read_pattern(write(tmp_path / "a.dat", text))
    assert pattern.format == "grid_fixed"
    np.testing.assert_allclose(pattern.x, x)


def test_esds_after_the_counts(tmp_path: Path) -> None:
    sigma = np.sqrt(Y) * 1.3
    text = (
        f"title\nlambda= 1.494, T= 0\n{HEAD} 1000.\n{ROWS}\n" + "\n".join(f"{v:.3f}" for v in sigma) + "\n Filelist=x\n"
    )
    pattern = read_pattern(write(tmp_path / "a.dat", text))
    assert pattern.sigma_origin is SigmaOrigin.MEASURED
    np.testing.assert_allclose(pattern.sigma, sigma, atol=1e-3)
    assert pattern.hints.wavelengths_angstrom == (1.494,)


def test_filling_is_dropped_and_a_cut_file_refused(tmp_path: Path) -> None:
    pattern = read_pattern(write(tmp_path / "a.dat", f"{HEAD}\n{ROWS}\n1. 1. 1.\n"))
    np.testing.assert_array_equal(pattern.y, Y)
    assert "padding_dropped" in {notice.code for notice in pattern.notices}
    for text, code in (
        (f"{HEAD}\n{ROWS[: len(ROWS) * 3 // 4]}", "pattern_truncated"),
        (f"{HEAD}\n" + ROWS.replace("\n", "\nnonsense\n", 35).replace("nonsense\n", "", 34), "pattern_line_invalid"),
        (f"a title\n400 0.05 {X[0]} 1.5406 1\n" + "\n".join(f"{v:g}" for v in Y[:300]), "pattern_truncated"),
    ):
        with pytest.raises(UserInputError) as caught:
            read_pattern(write(tmp_path / "b.dat", text))
        assert caught.value.code == code
        assert "line" in caught.value.context
