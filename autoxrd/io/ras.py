"""Read Rigaku RAS text: one or more scans, each with a header and rows of position, intensity, attenuation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from autoxrd.domain.pattern import FloatArray, Notice, PatternHints
from autoxrd.io.raw import RawPattern, Reader, to_float
from autoxrd.io.settings import ReadSettings
from autoxrd.io.source import Source, shown

__all__ = ["RAS"]

_LINE_END = re.compile("\r\n|\r|\n")
_ENTRY = re.compile(r'^\*([A-Z0-9_]+(?:-[0-9]+)?)\s+"?(.*?)"?\s*$')
_AXES = frozenset({"twotheta", "twothetatheta", "twothetaomega"})
"""Scans that move the detector through 2theta in the plane of a powder measurement."""
_NO_CRYSTAL = frozenset({"", "none", "-", "no_unit"})
_SECONDS_PER_UNIT = {"deg/min": 60.0, "deg./min": 60.0, "deg/sec": 1.0, "deg/s": 1.0}
_SECONDS = ("sec", "s", "second", "seconds")


@dataclass
class _Scan:
    """One scan as it stands in the file: header entries, rows of three numbers and their lines (from 1)."""

    header: dict[str, str]
    values: list[tuple[float, float, float]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def text(self, key: str) -> str:
        """Value of a header entry; of "Japanese|English" the English part."""
        return self.header.get(key, "").split("|")[-1].strip()

    def number(self, key: str) -> float | None:
        """Value of a header entry as a number > 0, or None."""
        value = to_float(self.text(key))
        return value if value is not None and np.isfinite(value) and value > 0.0 else None


def _understands(source: Source) -> bool:
    """Whether the file opens with a mark of the format."""
    return source.data[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"*RAS_")


def _lines(source: Source) -> list[str]:
    """Decode the text: these programs write the Japanese code page, newer ones UTF-8."""
    try:
        text = source.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = source.data.decode("cp932", errors="replace")
    return _LINE_END.split(text)


def _read(source: Source, bank: int | None, settings: ReadSettings) -> RawPattern:
    """Read one scan: the asked one (counted from 1), else the first."""
    scans = _scans(source, settings)
    index = 0 if bank is None else bank - 1
    if not scans:
        raise source.error("ras_no_scan", "holds no *RAS_INT_START section; expected rows of a scan.")
    if not 0 <= index < len(scans):
        raise source.error("bank_missing", f"has no scan {bank}; it has {len(scans)}.", bank=bank)
    scan = scans[index]
    _check(source, scan)
    table = np.asarray(scan.values, dtype=np.float64)
    y, scale, extra = _intensities(source, scan, table)
    notices: list[Notice] = []
    if bank is None and len(scans) > 1:
        notices.append(Notice("other_banks_ignored", f"The file has {len(scans)} scans; the first is read."))
    hints, told = _hints(scan)
    return RawPattern(
        x=np.ascontiguousarray(table[:, 0]),
        y=y,
        count_scale=scale,
        rows=np.asarray(scan.rows, dtype=np.int64),
        format="rigaku_ras",
        title=scan.text("FILE_SAMPLE") or scan.text("FILE_COMMENT"),
        hints=hints,
        notices=(*notices, *extra, *told),
    )


def _scans(source: Source, settings: ReadSettings) -> list[_Scan]:
    """Walk through the sections; each header belongs to the rows that follow it."""
    scans: list[_Scan] = []
    header: dict[str, str] = {}
    inside = False
    total = 0
    lines = [line.strip(" \t\x00\x1a") for line in _lines(source)]
    marks = [line for line in lines if line in ("*RAS_INT_START", "*RAS_INT_END")]
    if marks and marks[-1] == "*RAS_INT_START":
        raise source.error("pattern_truncated", "ends within a scan, before *RAS_INT_END: the file is cut short.")
    for number, stripped in enumerate(lines, start=1):
        if stripped.startswith("*"):
            if stripped == "*RAS_HEADER_START":
                header = {}
            elif stripped == "*RAS_INT_START":
                inside = True
                scans.append(_Scan(header))
                header = {}
            elif stripped == "*RAS_INT_END":
                inside = False
            elif not inside and (entry := _ENTRY.match(stripped)):
                header[entry[1]] = entry[2]
        elif inside and stripped:
            total += 1
            if total > settings.max_points:
                raise source.error("pattern_too_long", f"has more than {settings.max_points} points.")
            scans[-1].values.append(_row(source, stripped, number))
            scans[-1].rows.append(number)
    return scans


def _row(source: Source, line: str, number: int) -> tuple[float, float, float]:
    """Position, intensity and attenuation factor (1 where the row has none)."""
    tokens = line.split()
    values = [value for value in map(to_float, tokens) if value is not None]
    if len(values) != len(tokens) or len(values) not in (2, 3):
        sentence = f"expected position, intensity and attenuation, found '{shown(line)}'."
        raise source.error("pattern_line_invalid", sentence, line=number)
    x, y, attenuation = [*values, 1.0][:3]
    return x, y, attenuation


def _check(source: Source, scan: _Scan) -> None:
    """Refuse what is no powder scan, or not whole."""
    axis = scan.text("MEAS_SCAN_AXIS_X_INTERNAL") or scan.text("MEAS_SCAN_AXIS_X")
    if axis and _plain(axis) not in _AXES:
        raise source.error("ras_not_powder", f"scans the axis '{shown(axis)}'; expected a scan of 2theta.")
    unit = scan.text("MEAS_SCAN_UNIT_X").lower()
    if unit and not unit.startswith("deg"):
        raise source.error("ras_not_powder", f"scans in the unit '{shown(unit)}'; expected degrees.")
    if not scan.values:
        raise source.error("ras_no_data", "the scan holds no rows; expected position, intensity and attenuation.")
    declared = scan.number("MEAS_DATA_COUNT")
    if declared is not None and round(declared) != len(scan.values):
        sentence = f"the header tells of {declared:.0f} points, {len(scan.values)} follow: the file is cut short."
        raise source.error("pattern_truncated", sentence)


def _plain(axis: str) -> str:
    """Name of an axis without the marks between its parts, Greek letters spelled out."""
    spelled = axis.lower().replace("\u03b8", "theta").replace("\u03c9", "omega").replace("2", "two")
    return re.sub(r"[\W_]", "", spelled)


def _intensities(
    source: Source, scan: _Scan, table: FloatArray
) -> tuple[FloatArray, FloatArray | None, tuple[Notice, ...]]:
    """Intensities before the attenuator, the factor from counts to them (None means 1), and what to tell.

    The rows hold what the counter saw: the intensity is that times the attenuation factor, and its
    uncertainty sqrt(counts) times the same factor. A rate holds counts per second.
    """
    y, attenuation = np.ascontiguousarray(table[:, 1]), table[:, 2]
    if np.any(~(attenuation > 0.0)) or not np.all(np.isfinite(attenuation)):
        at = scan.rows[int(np.argmax(~(attenuation > 0.0) | ~np.isfinite(attenuation)))]
        raise source.error("ras_attenuation_invalid", "the attenuation factor is not > 0.", line=at)
    scale: FloatArray | None = None
    if np.any(attenuation != 1.0):
        scale = np.ascontiguousarray(attenuation)
        y = y * attenuation
    if not _is_rate(scan):
        return y, scale, ()
    seconds = _seconds(scan)
    if seconds is not None:
        return y, (np.ones_like(y) if scale is None else scale) / seconds, ()
    text = (
        "The intensities are counts per second and the header gives no counting time: sqrt(y) is a guess, so GoF "
        "and esds have an unknown scale."
    )
    return y, scale, (Notice("counting_sigma_uncertain", text),)


def _is_rate(scan: _Scan) -> bool:
    """Whether the rows hold counts per second."""
    return scan.text("MEAS_SCAN_UNIT_Y").lower() in ("cps", "counts/sec", "counts/s")


def _seconds(scan: _Scan) -> float | None:
    """Counting time of a point: stated for a step scan, step over speed for a continuous one."""
    speed = scan.number("MEAS_SCAN_SPEED")
    unit = scan.text("MEAS_SCAN_SPEED_UNIT").lower()
    if speed is None:
        return None
    if unit.rstrip(".") in _SECONDS:
        return speed
    step = scan.number("MEAS_SCAN_STEP")
    return None if step is None or unit not in _SECONDS_PER_UNIT else step / speed * _SECONDS_PER_UNIT[unit]


def _hints(scan: _Scan) -> tuple[PatternHints, tuple[Notice, ...]]:
    """Wavelengths, anode, radius and counting time; the crystals that take part of the beam away."""
    alpha1, alpha2, beta = (scan.number(f"HW_XG_WAVE_LENGTH_{name}") for name in ("ALPHA1", "ALPHA2", "BETA"))
    kind = scan.text("MEAS_COND_XG_WAVE_TYPE").lower()
    notices: list[Notice] = []
    lines = {"ka1": (alpha1,), "ka2": (alpha2,), "kb": (beta,)}.get(kind, (alpha1, alpha2))
    if kind in ("ka1", "ka2", "kb"):
        text = f"The header names one line of the tube ({kind}): it alone is assumed, as a crystal before the specimen."
        notices.append(Notice("incident_monochromator", text))
    if _after_specimen(scan):
        text = "A diffracted-beam monochromator is listed: give its 2theta so that the polarisation is right."
        notices.append(Notice("diffracted_monochromator", text))
    anode = scan.text("HW_XG_TARGET_NAME")
    # Distance to the second receiving slit of a SmartLab; a MiniFlex has nothing there and its radius before it.
    radius = scan.number("HW_GONIOMETER_RADIUS-3") or scan.number("HW_GONIOMETER_RADIUS-2")
    return (
        PatternHints(
            wavelengths_angstrom=tuple(value for value in lines if value is not None),
            anode=shown(anode).capitalize() or None,
            radiation="xray",
            goniometer_radius_mm=radius,
            counting_seconds=_seconds(scan),
            intensity_seconds=1.0 if _is_rate(scan) else _seconds(scan),
        ),
        tuple(notices),
    )


def _after_specimen(scan: _Scan) -> bool:
    """Whether a crystal stands between specimen and counter."""
    for key, name in scan.header.items():
        if key.startswith("MEAS_COND_AXIS_NAME_INTERNAL-") and name.startswith("CounterMonochromator"):
            position = scan.text(key.replace("NAME_INTERNAL", "POSITION"))
            if position.lower() not in _NO_CRYSTAL and to_float(position) is None:
                return True
    return False


RAS = Reader("ras", _understands, _read)
