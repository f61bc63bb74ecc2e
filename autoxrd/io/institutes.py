"""Read three text formats of institutes: ILL D1A/D2B detector records, Maud's plot file and ItalStructures RAW."""

from __future__ import annotations

import re

import numpy as np

from autoxrd.domain.pattern import PatternHints
from autoxrd.io.raw import RawPattern, Reader, to_float
from autoxrd.io.settings import ReadSettings
from autoxrd.io.source import Source, shown

__all__ = ["D1A", "ITAL", "MAUD"]


def _numbers(line: str) -> list[float] | None:
    """All numbers of a line, or None where a word is not one."""
    values = [to_float(token) for token in line.split()]
    good = [value for value in values if value is not None]
    return good if good and len(good) == len(values) else None


# --- ILL D1A/D2B: title; counters and step; start; monitors; records of ten (I2 detectors, F6 counts); -1000 ---


def _is_d1a(source: Source) -> bool:
    """Whether lines 2 to 4 are those of D1A and the fifth a record of ten fields of eight columns."""
    if source.looks_binary or len(source.lines) < 6:
        return False
    second, third, fourth = (_numbers(line) for line in source.lines[1:4])
    if second is None or third is None or fourth is None or len(second) < 3 or len(third) != 1 or len(fourth) < 2:
        return False
    return 0.001 <= second[2] <= 2.0 and re.match(r"^( [1-9]|[1-9]\d)[ \d]{6}", source.lines[4]) is not None


def _read_d1a(source: Source, bank: int | None, settings: ReadSettings) -> RawPattern:
    """Mean counts over the detectors that saw each point."""
    step = (_numbers(source.lines[1]) or [0.0, 0.0, 0.0])[2]
    start = (_numbers(source.lines[2]) or [0.0])[0]
    detectors: list[int] = []
    counts: list[float] = []
    rows: list[int] = []
    for number, line in enumerate(source.lines[4:], start=5):
        if line.strip() in ("", "-1000", "-10000", "\x1a"):
            continue
        body = line.rstrip()
        for position in range(0, len(body), 8):
            lead, text = body[position : position + 2].strip(), body[position + 2 : position + 8].strip()
            value = to_float(text)
            if not lead.isdigit() or value is None:
                sentence = f"expected fields of detectors (I2) and counts (F6), found '{shown(line)}'."
                raise source.error("pattern_line_invalid", sentence, line=number)
            detectors.append(max(1, int(lead)))
            counts.append(value)
            rows.append(number)
    y = np.asarray(counts, dtype=np.float64)
    return RawPattern(
        x=start + step * np.arange(y.size, dtype=np.float64),
        y=y,
        count_scale=1.0 / np.asarray(detectors, dtype=np.float64),
        rows=np.asarray(rows, dtype=np.int64),
        padded=True,
        format="d1a_d2b",
        title=source.lines[0],
        hints=PatternHints(radiation="neutron"),
    )


# --- Maud plot file: title; "n step start wavelength weight"; one count per line ---


def _maud_header(source: Source) -> tuple[int, float, float, float] | None:
    """(n, step, start, wavelength) of the second line, or None."""
    lines = [line for line in source.lines[:4] if line.strip()]
    values = _numbers(lines[1]) if len(lines) > 1 else None
    if values is None or not 4 <= len(values) <= 6 or not np.all(np.isfinite(values)):
        return None
    n, step, start, wavelength = values[:4]
    fits = n == round(n) and 20 <= n < 1e7 and 1e-4 <= step <= 2.0 and 0.0 <= start < 180.0
    if not (fits and 0.05 < wavelength < 10.0 and start + n * step <= 181.0):
        return None
    return round(n), step, start, wavelength


def _is_maud(source: Source) -> bool:
    """Whether the second line is Maud's and single numbers follow."""
    if source.looks_binary or _maud_header(source) is None:
        return False
    body = [line for line in source.lines[:40] if line.strip()][2:8]
    return bool(body) and all(len(_numbers(line) or ()) == 1 for line in body)


def _read_maud(source: Source, bank: int | None, settings: ReadSettings) -> RawPattern:
    """One count per line on the grid of the second line."""
    header = _maud_header(source)
    if header is None:
        raise source.error("format_unknown", "has no line 'n step start wavelength'.")
    n, step, start, wavelength = header
    entries = [(number, line) for number, line in enumerate(source.lines, start=1) if line.strip(" \t\x00\x1a")]
    values: list[float] = []
    rows: list[int] = []
    for number, line in entries[2:]:
        if len(values) == n:
            break
        record = _numbers(line)
        if record is None or len(record) != 1:
            raise source.error("pattern_line_invalid", f"expected one count, found '{shown(line)}'.", line=number)
        values.append(record[0])
        rows.append(number)
    if len(values) < n:
        sentence = f"the header asks for {n} points but only {len(values)} follow: the file is cut short."
        raise source.error("pattern_truncated", sentence, line=2)
    return RawPattern(
        x=start + step * np.arange(n, dtype=np.float64),
        y=np.asarray(values, dtype=np.float64),
        rows=np.asarray(rows, dtype=np.int64),
        format="maud_plot",
        title=entries[0][1],
        hints=PatternHints(wavelengths_angstrom=(wavelength,)),
    )


# --- ItalStructures RAW (text): ".RAW", date, time, title, ..., anode, ..., "**", wavelengths, start, step, n ---


def _is_ital(source: Source) -> bool:
    """Whether the first line is .RAW and a line of two stars follows."""
    head = [line.strip() for line in source.lines[:40]]
    return bool(head) and head[0] == ".RAW" and "**" in head


def _read_ital(source: Source, bank: int | None, settings: ReadSettings) -> RawPattern:
    """The last n numbers of the file, on the grid that stands after the stars."""
    lines = [line.strip(" \t\x00\x1a") for line in source.lines]
    stars = lines.index("**")
    head = [(_numbers(line) or [float("nan")])[0] for line in lines[stars + 1 : stars + 9]]
    if len(head) < 8 or not np.all(np.isfinite(head[1:7])) or not 20 <= head[6] <= settings.max_points:
        sentence = "expected four wavelengths, start, step and number of points after '**'."
        raise source.error("pattern_line_invalid", sentence, line=stars + 2)
    alpha1, alpha2, start, step, n = head[1], head[2], head[4], head[5], int(head[6])
    singles = [(i, value) for i, line in enumerate(lines) if i > stars + 8 and (value := to_float(line)) is not None]
    if len(singles) < n:
        sentence = f"asks for {n} points but only {len(singles)} follow: the file is cut short."
        raise source.error("pattern_truncated", sentence, line=stars + 8)
    kept = singles[-n:]
    anode = next((line.capitalize() for line in lines[4:stars] if re.fullmatch(r"[A-Za-z]{1,2}", line)), None)
    if step <= 0.0 or start < 0.0:
        raise source.error("pattern_line_invalid", "the step is not > 0.", line=stars + 7)
    return RawPattern(
        x=start + step * np.arange(n, dtype=np.float64),
        y=np.asarray([value for _, value in kept], dtype=np.float64),
        rows=np.asarray([i + 1 for i, _ in kept], dtype=np.int64),
        format="ital_raw",
        title=lines[3] if len(lines) > 3 else "",
        hints=PatternHints(
            wavelengths_angstrom=(alpha1, alpha2) if alpha2 > 0.0 else (alpha1,),
            ka2_ratio=0.5 if alpha2 > 0.0 else None,
            anode=anode,
            radiation="xray",
            counting_seconds=head[7] if np.isfinite(head[7]) and head[7] > 0.0 else None,
        ),
    )


D1A = Reader("d1a_d2b", _is_d1a, _read_d1a)
MAUD = Reader("maud_plot", _is_maud, _read_maud)
ITAL = Reader("ital_raw", _is_ital, _read_ital)
