"""Read two- and three-column text: .xy .xye .csv .dat .txt .prn, whatever the separator and the header."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import AxisKind, FloatArray, Notice
from autoxrd.io.esd import judge_third_column
from autoxrd.io.headers import ColumnNames, column_names, hints_from_text
from autoxrd.io.raw import RawPattern, Reader, to_float
from autoxrd.io.settings import DEFAULT_READ_SETTINGS, ReadSettings
from autoxrd.io.source import Source, shown

__all__ = ["COLUMNS", "data_lines", "split_row"]

_COMMENT = ("#", "!", ";", "'", '"', "//", "%")
_DECIMAL_COMMA = re.compile(r"^[+-]?\d*,\d+(?:[eE][+-]?\d+)?$")
_LOOK_AHEAD = 3


@dataclass
class _Table:
    """Rows of numbers found in a text, and the text around them."""

    values: NDArray[np.float64]
    rows: NDArray[np.int64]
    header: list[str] = field(default_factory=list)
    lone_number: float | None = None


def data_lines(lines: list[str], *, headers: list[str] | None = None) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, stripped line) without blank and comment lines; comments go to ``headers``."""
    in_block = False
    for number, line in enumerate(lines, start=1):
        stripped = line.strip(" \t\x00\x0b\x0c\x1a\ufeff")
        if not stripped:
            continue
        opens = stripped.startswith("/*")
        if in_block or opens or stripped.startswith(_COMMENT):
            if opens:
                in_block = True
            if in_block and "*/" in stripped:
                in_block = False
            if headers is not None:
                headers.append(stripped)
            continue
        yield number, stripped


def split_row(line: str) -> list[float] | None:
    """Split one row into numbers, or None when it is not numeric.

    Semicolon, tab, blank or comma separate; a comma is a decimal mark where another separator is there.
    """
    for mark in ("#", "!"):
        if mark in line:
            line = line.split(mark, 1)[0]
    if ";" in line:
        tokens = [token.strip().replace(",", ".") for token in line.rstrip("; \t").split(";")]
    elif "," in line:
        tokens = _split_with_comma(line)
    else:
        tokens = line.split()
    values: list[float] = []
    for token in tokens:
        value = to_float(token)
        if value is None:
            return None
        values.append(value)
    return values or None


def _split_with_comma(line: str) -> list[str]:
    """Tell ``5,02 151`` (decimal commas) from ``5.02, 151`` (comma separated)."""
    blanks = line.split()
    decimal = [bool(_DECIMAL_COMMA.match(token)) for token in blanks]
    if len(blanks) > 1 and any(decimal) and all(d or "," not in t for d, t in zip(decimal, blanks, strict=True)):
        return [token.replace(",", ".") for token in blanks]
    return [token.strip() for token in line.rstrip(", \t").split(",")]


def _find_start(entries: list[tuple[int, str]], limit: int) -> int | None:
    """Index of the first row of a run of rows with two or more numbers each and equal width."""
    for index in range(min(len(entries), limit)):
        first = split_row(entries[index][1])
        if first is None or len(first) < 2:
            continue
        ahead = [split_row(line) for _, line in entries[index + 1 : index + _LOOK_AHEAD]]
        if ahead and all(row is not None and len(row) == len(first) for row in ahead):
            return index
    return None


def _understands(source: Source) -> bool:
    """Whether a run of rows with two or more numbers stands near the head of the text."""
    if source.looks_binary:
        return False
    entries = [entry for entry, _ in zip(data_lines(source.lines), range(600), strict=False)]
    return _find_start(entries, DEFAULT_READ_SETTINGS.max_header_lines) is not None


def _table(source: Source, settings: ReadSettings) -> _Table:
    """Read all rows; every line after the first row must be one."""
    comments: list[str] = []
    entries = list(data_lines(source.lines, headers=comments))
    start = _find_start(entries, settings.max_header_lines)
    if start is None:
        raise source.error("format_unknown", "holds no table of numbers; expected rows of 2theta and intensity.")
    if len(entries) - start > settings.max_points:
        raise source.error("pattern_too_long", f"has more than {settings.max_points} rows.")
    values: list[list[float]] = []
    width = len(split_row(entries[start][1]) or ())
    for number, line in entries[start:]:
        row = split_row(line)
        if row is None or len(row) != width:
            found = "text" if row is None else f"{len(row)}"
            sentence = f"expected {width} numbers as in the rows above, found {found}: '{shown(line)}'."
            raise source.error("pattern_line_invalid", sentence, line=number)
        values.append(row)
    before = [line for _, line in entries[:start]]
    lone = split_row(before[-1]) if before else None
    header = _header_in_order(source.lines, entries[start][0])
    return _Table(
        values=np.asarray(values, dtype=np.float64),
        rows=np.asarray([number for number, _ in entries[start:]], dtype=np.int64),
        header=header,
        lone_number=lone[0] if lone is not None and len(lone) == 1 else None,
    )


def _header_in_order(lines: list[str], first_row: int) -> list[str]:
    """Comment and text lines before the first row of numbers, in file order."""
    return [line.strip(" \t\x00\ufeff") for line in lines[: first_row - 1] if line.strip(" \t\x00\ufeff")]


def _read(source: Source, bank: int | None, settings: ReadSettings) -> RawPattern:
    """Read the table and decide what its columns are."""
    table = _table(source, settings)
    names = column_names(table.header)
    if names.second_is_background:
        sentence = "the header calls the second column a background; expected the measured intensities."
        raise source.error("pattern_is_background", sentence)
    x = np.ascontiguousarray(table.values[:, 0])
    y = np.ascontiguousarray(table.values[:, 1])
    axis, x, notices = _axis(source, names, x)
    sigma, extra = _sigma(source, names, table, y, settings)
    hints = hints_from_text(table.header)
    if table.lone_number is not None and 0.1 < table.lone_number < 10.0:
        # DASH writes the wavelength alone on the first line.
        hints = replace(hints, wavelengths_angstrom=(table.lone_number,))
    width = table.values.shape[1]
    return RawPattern(
        x=x,
        y=y,
        sigma=sigma,
        rows=table.rows,
        axis=axis,
        format="columns_xye" if sigma is not None else "columns_xy",
        title=_title(table.header, names),
        hints=hints,
        notices=notices + extra + _unused(width),
    )


def _title(header: list[str], names: ColumnNames) -> str:
    """First header line that is not the line of column names."""
    for index, line in enumerate(header):
        if index != names.index and any(char.isalpha() for char in line):
            return line.strip("#!;'\"/*% \t")
    return ""


def _axis(source: Source, names: ColumnNames, x: FloatArray) -> tuple[AxisKind, FloatArray, tuple[Notice, ...]]:
    """Settle the abscissa; a column called theta is refused where it could be either."""
    if names.bare_theta:
        if float(np.nanmax(x)) <= 90.0:
            sentence = (
                "the header calls the first column 'theta'; write '2theta' there if the values are 2theta, "
                "or double them if they are theta."
            )
            raise source.error("pattern_axis_unclear", sentence)
        text = "The header says theta, but values above 90 degrees can only be 2theta: read as 2theta."
        return AxisKind.TWO_THETA, x, (Notice("axis_taken_as_two_theta", text),)
    if names.q_per_nm:
        return AxisKind.Q, x / 10.0, (Notice("axis_q_per_nm", "Q was given in 1/nm and is now in 1/angstrom."),)
    return names.axis or AxisKind.TWO_THETA, x, ()


def _sigma(
    source: Source, names: ColumnNames, table: _Table, y: FloatArray, settings: ReadSettings
) -> tuple[FloatArray | None, tuple[Notice, ...]]:
    """Take the third column as uncertainties only where it can be that."""
    if table.values.shape[1] < 3:
        return None, ()
    third = np.ascontiguousarray(table.values[:, 2])
    by_name = names.third_is_esd
    if by_name is None and source.name.lower().endswith(".xye") and not np.any(third):
        by_name = True
    verdict = judge_third_column(y, third, named_esd=by_name, settings=settings)
    if verdict.invalid is not None:
        row = int(table.rows[verdict.invalid])
        raise source.error("pattern_esd_invalid", verdict.reason, line=row, count=verdict.n_invalid)
    if verdict.is_esd:
        return third, ()
    return None, (Notice(verdict.code, verdict.reason),)


def _unused(width: int) -> tuple[Notice, ...]:
    """Say so where a file has more columns than are read."""
    if width <= 3:
        return ()
    text = f"The file has {width} columns: axis, intensity, perhaps uncertainty; those after the third are unused."
    return (Notice("extra_columns_unused", text),)


COLUMNS = Reader("columns", _understands, _read)
