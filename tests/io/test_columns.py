"""Two- and three-column text in the forms that people have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autoxrd.domain.pattern import AxisKind, SigmaOrigin
from autoxrd.errors import UserInputError
from autoxrd.io import read_pattern
from autoxrd.io.settings import ReadSettings
from tests.io.samples import peaks, table, write

X, Y = peaks()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("blank.xy", table(X, Y)),
        ("tab.dat", table(X, Y, form="%.4f\t%g")),
        ("comma.csv", table(X, Y, form="%.4f,%g")),
        ("comma_blank.csv", table(X, Y, form="%.4f, %g")),
        ("semicolon.csv", table(X, Y, form="%.4f;%g")),
        ("semicolon_decimal_comma.csv", table(X, Y, form="%.4f;%g").replace(".", ",")),
        ("tab_decimal_comma.txt", table(X, Y, form="%.4f\t%.1f").replace(".", ",")),
        ("fortran_d.prn", table(X, Y, form="%.4f %.6E").replace("E", "D")),
        ("crlf.xy", table(X, Y, newline="\r\n")),
        ("cr.xy", table(X, Y, newline="\r")),
        ("hash.xy", "# sample\n# 2theta I\n" + table(X, Y)),
        ("bang.xy", "! sample\n" + table(X, Y)),
        ("quote.xy", '\'Id: "x" Anode: "Cu"\n' + table(X, Y)),
        ("slashes.xy", "// sample\n" + table(X, Y)),
        ("block.xy", "/* a\n b 1 2\n*/\n" + table(X, Y)),
        ("words.csv", "2theta (deg),intensity (counts)\n" + table(X, Y, form="%.4f,%g")),
        ("trailing_separator.csv", table(X, Y, form="%.4f,%g,")),
        ("footer_comment.xy", table(X, Y) + "# end\n\n"),
        ("descending.xy", table(X[::-1], Y[::-1])),
        ("bom.xy", "\ufeff2theta I\n" + table(X, Y)),
    ],
)
def test_forms_of_the_same_table(tmp_path: Path, name: str, text: str) -> None:
    pattern = read_pattern(write(tmp_path / name, text))
    np.testing.assert_allclose(pattern.x, X, atol=1e-9)
    np.testing.assert_array_equal(pattern.y, Y)
    assert pattern.sigma_origin is SigmaOrigin.COUNTING
    np.testing.assert_allclose(pattern.sigma, np.sqrt(np.maximum(Y, 1.0)))
    assert not pattern.x.flags.writeable
    assert pattern.source_name == name


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "e.txt", "2theta [°] counts\r\n" + table(X, Y, newline="\r\n"), encoding=encoding)
    np.testing.assert_array_equal(read_pattern(path).y, Y)


def _refused(tmp_path: Path, text: str, name: str = "bad.xy") -> UserInputError:
    with pytest.raises(UserInputError) as caught:
        read_pattern(write(tmp_path / name, text))
    assert str(caught.value).startswith(name)
    return caught.value


def _rows() -> list[str]:
    return table(X, Y).splitlines()


@pytest.mark.parametrize(
    ("line", "content", "code"),
    [
        (100, "14.95 oops", "pattern_line_invalid"),
        (100, "14.95 1 2", "pattern_line_invalid"),
        (100, "14.95 nan", "pattern_nan"),
        (100, "14.95 inf", "pattern_nan"),
        (100, "14.95 --", "pattern_nan"),
        (100, "14.90 7", "pattern_duplicate_x"),
        (100, "14.89 7", "pattern_not_monotonic"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, line: int, content: str, code: str) -> None:
    rows = _rows()
    rows[line - 1] = content
    error = _refused(tmp_path, "\n".join(rows))
    assert error.code == code
    assert error.context["line"] == line
    assert f"line {line}" in str(error)


@pytest.mark.parametrize(
    ("y", "code"),
    [
        (np.zeros_like(Y), "pattern_no_intensity"),
        (np.full_like(Y, -3.0), "pattern_no_intensity"),
        (np.full_like(Y, 7.0), "pattern_flat"),
        (Y - np.median(Y) - 5, "pattern_negative"),
        (np.random.default_rng(0).permutation(Y * 10), "pattern_is_noise"),
    ],
)
def test_columns_without_a_pattern(tmp_path: Path, y: np.ndarray, code: str) -> None:
    assert _refused(tmp_path, table(X, y)).code == code


def test_other_refusals(tmp_path: Path) -> None:
    rows = _rows()
    assert _refused(tmp_path, "\n".join(rows[:49])).code == "pattern_too_short"
    assert _refused(tmp_path, "\n".join(rows[200:] + rows[:300])).code == "pattern_ranges_overlap"
    assert _refused(tmp_path, table(X * 10, Y)).code == "pattern_axis_unclear"
    assert _refused(tmp_path, "just words\nand more\n").code == "format_unknown"
    assert _refused(tmp_path, "2theta background\n" + table(X, Y)).code == "pattern_is_background"
    with pytest.raises(UserInputError) as caught:
        read_pattern(write(tmp_path / "big.xy", table(X, Y)), settings=ReadSettings(max_bytes=100))
    assert caught.value.code == "file_too_large"
    with pytest.raises(UserInputError) as caught:
        read_pattern(tmp_path)
    assert caught.value.code == "file_is_directory"
    with pytest.raises(UserInputError) as caught:
        read_pattern(tmp_path / "nowhere.xy")
    assert caught.value.code == "file_missing"


def test_the_header_names_the_axis(tmp_path: Path) -> None:
    q = write(tmp_path / "q.dat", "# q(nm^-1) I\n" + table(X, Y))
    pattern = read_pattern(q)
    assert pattern.axis is AxisKind.Q
    np.testing.assert_allclose(pattern.x, X / 10.0)
    high = X * 4.0 + 20.0
    pattern = read_pattern(write(tmp_path / "theta.xy", "theta,intensity\n" + table(high, Y, form="%.4f,%g")))
    assert pattern.axis is AxisKind.TWO_THETA
    assert "axis_taken_as_two_theta" in {notice.code for notice in pattern.notices}
    for header in ("2Theta Intensity", "# 2-theta  I", "two_theta,counts", "TwoTheta\tLYNX", "tth I", "Angle Counts"):
        path = write(tmp_path / "h.xy", header + "\n" + table(X, Y))
        assert read_pattern(path).axis is AxisKind.TWO_THETA


@pytest.mark.parametrize("header", ["# 2theta I esd", "2theta,int,sigma", "! 2 theta  counts  error", "tth I su"])
def test_a_named_third_column_is_believed(tmp_path: Path, header: str) -> None:
    sigma = np.full_like(Y, 9.0)
    path = write(tmp_path / "n.xye", header + "\n" + table(X, Y, sigma, form="%.4f %g %g"))
    pattern = read_pattern(path)
    assert pattern.sigma_origin is SigmaOrigin.MEASURED
    np.testing.assert_array_equal(pattern.sigma, sigma)


@pytest.mark.parametrize(
    ("third", "is_esd"),
    [
        (np.sqrt(Y), True),
        (0.3 * np.sqrt(Y), True),
        (0.02 * Y + np.sqrt(Y), True),
        (np.where(X < 20, 1.0, 0.4) * np.sqrt(Y), True),
        (np.full_like(Y, 1.0), False),
        (np.full_like(Y, 118.0), False),
        (118.0 + 0.1 * X, False),
        (Y + 3.0, False),
        (Y - 118.0 * 0.99, False),
    ],
)
def test_an_unnamed_third_column_is_judged(tmp_path: Path, third: np.ndarray, is_esd: bool) -> None:
    pattern = read_pattern(write(tmp_path / "t.xy", table(X, Y, third, form="%.4f %g %.5f")))
    assert (pattern.sigma_origin is SigmaOrigin.MEASURED) == is_esd
    if not is_esd:
        assert any(notice.code.startswith("third_column") for notice in pattern.notices)


def test_sqrt_with_zeros_is_replaced_by_counting(tmp_path: Path) -> None:
    y = np.where(np.arange(Y.size) % 40 == 0, 0.0, Y)
    path = write(tmp_path / "z.xye", "# 2theta I esd\n" + table(X, y, np.sqrt(y), form="%.4f %g %.3f"))
    pattern = read_pattern(path)
    assert pattern.sigma_origin is SigmaOrigin.COUNTING
    assert pattern.sigma.min() == 1.0
    assert "third_column_is_root" in {notice.code for notice in pattern.notices}


def test_one_bad_esd_refuses_the_file(tmp_path: Path) -> None:
    sigma = np.sqrt(Y)
    sigma[41] = 0.0
    error = _refused(tmp_path, "2theta I esd\n" + table(X, Y, sigma, form="%.4f %g %.3f"))
    assert error.code == "pattern_esd_invalid"
    assert error.context["line"] == 43


def test_rates_say_that_their_error_is_a_guess(tmp_path: Path) -> None:
    pattern = read_pattern(write(tmp_path / "r.xy", table(X, Y / 96.0, form="%.4f %.3f")))
    assert "counting_sigma_uncertain" in {notice.code for notice in pattern.notices}


def test_the_extension_decides_nothing(tmp_path: Path) -> None:
    pattern = read_pattern(write(tmp_path / "a.xrdml", table(X, Y)))
    assert pattern.format == "columns_xy"


def test_dash_wavelength_and_comment_hints(tmp_path: Path) -> None:
    text = "1.1294\n" + table(X, Y, np.sqrt(Y), form="%.4f %g %.3f")
    assert read_pattern(write(tmp_path / "d.xye", text)).hints.wavelengths_angstrom == (1.1294,)
    text = '\'Id: "s" Anode: "Co" TimePerStep: "96"\n# Wavelength (A) = 1.78897\n# Temp (K) = 100.5\n' + table(X, Y)
    hints = read_pattern(write(tmp_path / "c.xy", text)).hints
    assert (hints.anode, hints.wavelengths_angstrom, hints.counting_seconds) == ("Co", (1.78897,), 96.0)
    assert hints.temperature_kelvin == 100.5
