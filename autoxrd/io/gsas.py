"""Read GSAS powder text (.fxye .gsa .gss .gsas .raw .xra): STD, ESD, FXY and FXYE banks.

Source: Larson & Von Dreele, General Structure Analysis System (GSAS), LAUR 86-748 (2004), "Powder data files".
STD fields are I2 detectors and F6 counts, the mean over the detectors: hence sigma = sqrt(y / detectors).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import numpy as np

from autoxrd.domain.pattern import AxisKind, FloatArray, Notice
from autoxrd.io.headers import hints_from_text
from autoxrd.io.raw import RawPattern, Reader, to_float
from autoxrd.io.settings import ReadSettings
from autoxrd.io.source import Source, shown

__all__ = ["GSAS"]

_BANK = re.compile(r"^\s*BANK\s+(\d+)\s+(\d+)\s+(\d+)\s+([A-Z_0-9]+)(.*)$", re.I)
_CONSTANT = ("CONST", "CONS")
_TOF = ("SLOG", "RALF", "LOG6", "LPSD", "TIME_MAP", "EDS", "COND")
_FORMS = ("STD", "ESD", "FXYE", "FXY", "ALT")
_WIDTH = 8


@dataclass
class _Bank:
    """One BANK record and the lines that follow it."""

    number: int
    declared: int
    binning: str
    coefficients: list[float]
    form: str
    line: int
    rows: list[tuple[int, str]] = field(default_factory=list)


def _understands(source: Source) -> bool:
    """Whether a BANK record stands in the first lines."""
    return not source.looks_binary and any(_BANK.match(line) for line in source.lines[:500])


def _banks(source: Source) -> tuple[list[_Bank], list[str]]:
    """Split the file into its banks and the header before them."""
    banks: list[_Bank] = []
    header: list[str] = []
    for number, line in enumerate(source.lines, start=1):
        found = _BANK.match(line)
        if found:
            banks.append(_bank(source, found, number))
        elif not banks:
            header.append(line.strip())
        elif line.strip(" \t\x00\x1a") and not line.lstrip().startswith("#"):
            banks[-1].rows.append((number, line))
    return banks, header


def _bank(source: Source, found: re.Match[str], line: int) -> _Bank:
    """Read one BANK record."""
    words = found[5].split()
    form = next((word.upper() for word in words if word.upper() in _FORMS), "STD")
    coefficients = []
    for word in words[:4]:
        value = to_float(word)
        if value is None:
            break
        coefficients.append(value)
    binning = found[4].upper()
    if len(coefficients) < 2 or not all(np.isfinite(coefficients)):
        raise source.error(
            "gsas_bank_invalid", "expected 'BANK n channels records CONST start step 0 0 STD'.", line=line
        )
    return _Bank(int(found[1]), int(found[2]), binning, coefficients, form, line)


def _read(source: Source, bank: int | None, settings: ReadSettings) -> RawPattern:
    """Read one bank: the asked one, else the first."""
    banks, header = _banks(source)
    chosen = _choose(source, banks, bank)
    if chosen.declared > settings.max_points:
        raise source.error("pattern_too_long", f"declares {chosen.declared} channels.", line=chosen.line)
    reader = {"STD": _std, "ESD": _esd, "FXYE": _fxye, "FXY": _fxye}.get(chosen.form)
    if reader is None:
        raise source.error("format_unsupported", f"GSAS {chosen.form} banks are not read yet.", line=chosen.line)
    raw = reader(source, chosen)
    raw = _declared_length(source, chosen, raw)
    notices = list(raw.notices)
    if bank is None and len(banks) > 1:
        text = f"The file has banks {', '.join(str(b.number) for b in banks[:20])}; bank {chosen.number} is read."
        notices.append(Notice("other_banks_ignored", text))
    hints = hints_from_text(header)
    if raw.axis is AxisKind.TOF:
        hints = replace(hints, wavelengths_angstrom=(), radiation="neutron", bank=chosen.number)
    return replace(raw, title=header[0] if header else "", hints=hints, notices=tuple(notices))


def _choose(source: Source, banks: list[_Bank], bank: int | None) -> _Bank:
    """Pick the bank by its number."""
    if bank is None:
        return banks[0]
    for candidate in banks:
        if candidate.number == bank:
            return candidate
    known = ", ".join(str(b.number) for b in banks[:20])
    raise source.error("bank_missing", f"has no bank {bank}; it has {known}.", bank=bank)


def _declared_length(source: Source, bank: _Bank, raw: RawPattern) -> RawPattern:
    """Compare with the declared number of channels: fewer is an error, more is filling."""
    read = raw.x.size
    if read < bank.declared:
        sentence = f"declares {bank.declared} channels but only {read} follow: the file is cut short."
        raise source.error("pattern_truncated", sentence, line=bank.line)
    if read == bank.declared:
        return raw
    extra = read - bank.declared
    if bank.form in ("FXYE", "FXY"):
        # Each row carries its own axis value, so the rows beyond the count are measured points.
        text = f"The file declares {bank.declared} channels and holds {read}; all are read."
        return replace(raw, notices=(*raw.notices, Notice("channel_count_differs", text)))
    keep = slice(0, bank.declared)
    text = f"{extra} channels beyond the declared {bank.declared} fill the last record and are left out."
    return replace(
        raw,
        x=raw.x[keep],
        y=raw.y[keep],
        sigma=None if raw.sigma is None else raw.sigma[keep],
        count_scale=None if raw.count_scale is None else raw.count_scale[keep],
        rows=None if raw.rows is None else raw.rows[keep],
        notices=(*raw.notices, Notice("padding_dropped", text)),
    )


def _grid(source: Source, bank: _Bank, n: int) -> FloatArray:
    """Axis of a bank whose rows hold no axis: start and step in centidegrees."""
    if bank.binning not in _CONSTANT:
        sentence = f"{bank.binning} binning without axis values is time of flight, which is not read yet; use FXYE."
        raise source.error("format_unsupported", sentence, line=bank.line)
    start, step = bank.coefficients[0] / 100.0, bank.coefficients[1] / 100.0
    if step <= 0.0:
        raise source.error("gsas_bank_invalid", "the step of the BANK record is not > 0.", line=bank.line)
    return start + step * np.arange(n, dtype=np.float64)


def _fields(line: str) -> list[str]:
    """Cut a fixed-width record into its 8-column fields."""
    body = line.rstrip()[:80]
    return [body[i : i + _WIDTH] for i in range(0, len(body), _WIDTH)]


def _std(source: Source, bank: _Bank) -> RawPattern:
    """Ten fields of detectors and mean counts per record."""
    detectors: list[int] = []
    counts: list[float] = []
    rows: list[int] = []
    for number, line in bank.rows:
        for n_detectors, value in _std_record(source, number, line):
            detectors.append(n_detectors)
            counts.append(value)
            rows.append(number)
    y = np.asarray(counts, dtype=np.float64)
    n_counters = np.asarray(detectors, dtype=np.int64)
    y, n_counters = _rejoin_wide_counts(y, n_counters)
    scale = None if np.all(n_counters <= 1) else 1.0 / np.maximum(n_counters, 1)
    x = _grid(source, bank, y.size)
    return RawPattern(
        x=x, y=y, format="gsas_std", count_scale=scale, rows=np.asarray(rows, dtype=np.int64), padded=True
    )


def _std_record(source: Source, number: int, line: str) -> list[tuple[int, float]]:
    """Read one STD record, by columns where it keeps them, else by blanks."""
    out: list[tuple[int, float]] = []
    if "\t" not in line and len(line.rstrip()) <= 80:
        for text in _fields(line):
            lead, body = text[:2].strip(), text[2:].strip()
            value = to_float(body) if body else None
            if value is None or (lead and not lead.isdigit()):
                out = []
                break
            out.append((int(lead) if lead else 0, value))
        if out:
            return out
    for token in line.split():
        value = to_float(token)
        if value is None:
            raise source.error("pattern_line_invalid", f"expected counts, found '{shown(line)}'.", line=number)
        out.append((0, value))
    return out


def _rejoin_wide_counts(y: FloatArray, detectors: np.ndarray) -> tuple[FloatArray, np.ndarray]:
    """Undo counts of seven or eight digits that ran over the detector columns.

    Where most channels name no detector, a number there beside a full six-digit count belongs to the count.
    """
    named = detectors > 0
    if not np.any(named) or np.mean(named) > 0.5 or np.any(y[named] < 0.0):
        return y, detectors
    return np.where(named, detectors * 1.0e6 + y, y), np.zeros_like(detectors)


def _numbers(source: Source, number: int, line: str, width: int) -> list[float]:
    """Read a record by blanks, else by columns where numbers touch."""
    values = [to_float(token) for token in line.split()]
    if any(value is None for value in values):
        values = [to_float(text.strip()) for text in _fields(line) if text.strip()]
    good = [value for value in values if value is not None]
    if not good or len(good) != len(values) or len(good) % width:
        raise source.error(
            "pattern_line_invalid", f"expected groups of {width} numbers, found '{shown(line)}'.", line=number
        )
    return good


def _esd(source: Source, bank: _Bank) -> RawPattern:
    """Pairs of intensity and standard uncertainty, five per record."""
    values: list[float] = []
    rows: list[int] = []
    for number, line in bank.rows:
        record = _numbers(source, number, line, 2)
        values.extend(record)
        rows.extend([number] * (len(record) // 2))
    table = np.asarray(values, dtype=np.float64).reshape(-1, 2)
    x = _grid(source, bank, table.shape[0])
    return RawPattern(
        x=x,
        y=table[:, 0],
        sigma=table[:, 1],
        format="gsas_esd",
        rows=np.asarray(rows, dtype=np.int64),
        padded=True,
    )


def _fxye(source: Source, bank: _Bank) -> RawPattern:
    """Rows of axis, intensity and (FXYE) standard uncertainty."""
    width = 3 if bank.form == "FXYE" else 2
    values: list[float] = []
    for number, line in bank.rows:
        record = _numbers(source, number, line, width)
        if len(record) != width:
            raise source.error("pattern_line_invalid", f"expected {width} numbers, found {len(record)}.", line=number)
        values.extend(record)
    table = np.asarray(values, dtype=np.float64).reshape(-1, width)
    if bank.binning in _CONSTANT:
        axis, x = AxisKind.TWO_THETA, table[:, 0] / 100.0
    elif bank.binning in _TOF:
        axis, x = AxisKind.TOF, table[:, 0]
    else:
        raise source.error("format_unsupported", f"GSAS binning {shown(bank.binning)} is not known.", line=bank.line)
    return RawPattern(
        x=x,
        y=table[:, 1],
        sigma=table[:, 2] if width == 3 else None,
        axis=axis,
        format=f"gsas_{bank.form.lower()}",
        rows=np.asarray([number for number, _ in bank.rows], dtype=np.int64),
    )


GSAS = Reader("gsas", _understands, _read)
