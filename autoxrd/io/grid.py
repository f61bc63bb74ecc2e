"""Read text whose intensities stand alone on a regular grid: ``start step end``, then counts, perhaps then esds.

FullProf free format (INSTRM 0), DBWS fixed width (header columns may touch), PSI DMC/HRPT (INSTRM 8) and ILL D1A5
(INSTRM 3), as in the FullProf manual (Rodriguez-Carvajal 1993, doi:10.1016/0921-4526(93)90108-I).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autoxrd.domain.pattern import FloatArray, Notice
from autoxrd.io.columns import data_lines
from autoxrd.io.headers import hints_from_text
from autoxrd.io.raw import RawPattern, Reader, to_float
from autoxrd.io.settings import ReadSettings
from autoxrd.io.source import Source, shown

__all__ = ["GRID"]

_HEADER_LINES = 10
_FILLING = 0.02
"""Share of surplus values at the end that a last record may hold as filling."""


@dataclass(frozen=True, slots=True)
class _Grid:
    """The header: where it stands and what it says."""

    index: int
    line: int
    start: float
    step: float
    n: int
    fixed: bool = False


def _grid_of(line: str) -> tuple[float, float, int, bool] | None:
    """Read ``start step end``, by blanks or in columns of eight; (start, step, n, fixed width) or None."""
    tokens = [token.rstrip(",") for token in line.split()[:3]]
    for parts, fixed in ((tokens, False), ([line[0:8], line[8:16], line[16:24]], True)):
        numbers = [to_float(part.strip()) for part in parts]
        if len(numbers) < 3 or any(number is None for number in numbers):
            continue
        start, step, end = (float(number or 0.0) for number in numbers)
        if not (-180.0 <= start < end <= 180.0 and 1e-4 <= step <= 2.0):
            continue
        n = (end - start) / step + 1.0
        if n >= 20.0 and abs(n - round(n)) < 0.02 + 1e-5 * n:
            return start, step, round(n), fixed
    return None


def _find(entries: list[tuple[int, str]]) -> _Grid | None:
    """Find the header among the first lines; rows of a two-column file must not pass for it."""
    for index, (number, line) in enumerate(entries[:_HEADER_LINES]):
        found = _grid_of(line)
        if found is None:
            continue
        start, step, n, fixed = found
        return _Grid(index, number, start, step, n, fixed)
    return None


def _values(entries: list[tuple[int, str]], limit: int) -> tuple[list[float], list[int], tuple[int, str] | None]:
    """All numbers up to the first line that is not numeric; that line is returned."""
    values: list[float] = []
    rows: list[int] = []
    for number, line in entries:
        record = [to_float(token) for token in line.split()]
        if any(value is None for value in record) or len(values) > limit:
            return values, rows, (number, line)
        values.extend(value for value in record if value is not None)
        rows.extend([number] * len(record))
    return values, rows, None


def _entries(source: Source) -> list[tuple[int, str]]:
    """Lines that are not comments, with their left blanks kept (fixed columns)."""
    numbered = dict(data_lines(source.lines))
    return [(number, source.lines[number - 1].rstrip()) for number in numbered]


def _understands(source: Source) -> bool:
    """Whether a grid header is followed by about as many numbers as it asks for."""
    if source.looks_binary:
        return False
    head = [entry for entry, _ in zip(data_lines(source.lines), range(_HEADER_LINES + 1), strict=False)]
    first = [(number, source.lines[number - 1].rstrip()) for number, _ in head]
    grid = _find(first)
    if grid is None:
        return False
    values, _, _ = _values(_entries(source)[grid.index + 1 :], 4 * grid.n + 100)
    # A two-column file whose first row happens to fit has other counts; a cut grid file is still recognised.
    return 0.5 * grid.n <= len(values) <= (1.0 + _FILLING) * grid.n + 20 or (
        2 * grid.n <= len(values) <= (2.0 + _FILLING) * grid.n + 20
    )


def _read(source: Source, bank: int | None, settings: ReadSettings) -> RawPattern:
    """Read the counts and, where twice as many numbers follow, the uncertainties after them."""
    entries = _entries(source)
    grid = _find(entries)
    if grid is None:
        raise source.error("format_unknown", "has no line 'start step end'.")
    values, rows, stop = _values(entries[grid.index + 1 :], settings.max_points)
    n = grid.n
    if len(values) < n:
        if stop is not None:
            sentence = f"expected intensities, found '{shown(stop[1])}'."
            raise source.error("pattern_line_invalid", sentence, line=stop[0])
        sentence = f"the header asks for {n} points but only {len(values)} follow: the file is cut short."
        raise source.error("pattern_truncated", sentence, line=grid.line)
    notices: list[Notice] = []
    sigma: FloatArray | None = None
    if len(values) >= 2 * n:
        sigma = np.asarray(values[n : 2 * n], dtype=np.float64)
        used = 2 * n
    else:
        used = n
    if len(values) > used:
        text = f"{len(values) - used} numbers after the {n} points that the header asks for are left out."
        notices.append(Notice("padding_dropped", text))
    head = [line.strip() for line in source.lines[: grid.line - 1] if line.strip()]
    return RawPattern(
        x=grid.start + grid.step * np.arange(n, dtype=np.float64),
        y=np.asarray(values[:n], dtype=np.float64),
        sigma=sigma,
        rows=np.asarray(rows[:n], dtype=np.int64),
        format="grid_fixed" if grid.fixed else "grid_free",
        title=head[0].lstrip("#! ") if head else "",
        hints=hints_from_text(head),
        notices=tuple(notices),
    )


GRID = Reader("grid", _understands, _read)
