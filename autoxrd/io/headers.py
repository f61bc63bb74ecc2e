"""What the comment and header lines of a text file say about its columns and its measurement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autoxrd.domain.pattern import AxisKind, PatternHints

__all__ = ["ColumnNames", "column_names", "hints_from_text"]

_LEAD = r"^[\s#!;'\"/*%(\[]*"
_TWO_THETA = re.compile(
    _LEAD + r"(?:(?:2|two)[\s_*.-]*(?:theta|th|θ|ϑ|\?)|t(?:wo)?th\b|ttheta|angle|pos(?:ition)?\b)", re.I
)
_THETA = re.compile(_LEAD + r"(?:theta|θ|th)\b", re.I)
_Q = re.compile(_LEAD + r"q\b", re.I)
_D = re.compile(_LEAD + r"d(?:[\s_-]*spacing)?(?=[\s,;()\[]|$)", re.I)
_TOF = re.compile(_LEAD + r"(?:tof|time[\s_-]*of[\s_-]*flight|t\s*\(?(?:us|µs|microsec))", re.I)
_ESD = re.compile(
    r"^(?:e\.?s\.?d|s\.?u\b|s\.?d\b|sig|err|e$|std|unc|d_?[iy]\b|d(?:int|count)|[iy]_?err|int\w*err|σ)", re.I
)
_NOT_ESD = re.compile(r"^(?:bkg|back|bg|bgr|calc|[iy]_?calc|fit|diff|weight|w$|d$|counts|[iy]\b)", re.I)
_BACKGROUND = re.compile(r"^(?:bkg|background|bgr?\b|back_?ground)", re.I)
_NM = re.compile(r"1/nm|nm\s*\^?\s*[-−]\s*1|nm⁻¹", re.I)

_WAVELENGTH = re.compile(r"(?:wavelength|wave_length|\blambda|λ|\bwl1?\b)[^=:0-9\n]{0,25}[=:]\s*([0-9]*\.[0-9]+)", re.I)
_UXD = re.compile(r"^_(WL1|WL2|WLRATIO)\s*=\s*([0-9]+\.?[0-9]*)\s*$", re.M)
_ANODE = re.compile(r"\b_?(?:anode|target)\w*\s*[=:]\s*[\"']?\s*(Cr|Mn|Fe|Co|Ni|Cu|Mo|Ag|W)\b", re.I)
_TEMPERATURE = re.compile(r"\btemp(?:erature)?\s*\(?\s*K\s*\)?\s*[=:]\s*([0-9]+(?:\.[0-9]*)?)", re.I)
_TIME = re.compile(r"\b_?(?:timeperstep|steptime)\s*[=:]\s*[\"']?([0-9]+(?:\.[0-9]*)?)", re.I)
_RADIUS = re.compile(r"\b_?goniometer_radius\s*[=:]\s*([0-9]+(?:\.[0-9]*)?)", re.I)


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """Reading of a header.

    Args:
        axis: kind of abscissa, None where the header does not say.
        bare_theta: the first column is called theta, without the 2.
        q_per_nm: the abscissa is Q in 1/nm.
        third_is_esd: True or False where the third column has a name, else None.
        second_is_background: the second column is a background, not a pattern.
        index: position of the line of names in the given lines, or None.
    """

    axis: AxisKind | None = None
    bare_theta: bool = False
    q_per_nm: bool = False
    third_is_esd: bool | None = None
    second_is_background: bool = False
    index: int | None = None


def column_names(lines: Sequence[str]) -> ColumnNames:
    """Find the line of column names among the header lines, nearest to the data first."""
    for index in range(len(lines) - 1, max(-1, len(lines) - 7), -1):
        line = lines[index]
        axis, bare_theta = _axis_of(line)
        if axis is None and not bare_theta:
            continue
        return ColumnNames(
            axis=axis,
            bare_theta=bare_theta,
            q_per_nm=axis is AxisKind.Q and any(_NM.search(text) for text in lines[index:]),
            third_is_esd=_third_is_esd(line),
            second_is_background=bool(_BACKGROUND.match([*_names(line), "", ""][1])),
            index=index,
        )
    return ColumnNames()


def _axis_of(line: str) -> tuple[AxisKind | None, bool]:
    """Return the axis that a line's first word names, and whether it says theta without the 2."""
    for pattern, axis in ((_TWO_THETA, AxisKind.TWO_THETA), (_TOF, AxisKind.TOF), (_Q, AxisKind.Q)):
        if pattern.match(line):
            return axis, False
    if _THETA.match(line):
        return None, True
    # "d" opens many sentences; it names a column only beside an intensity.
    if _D.match(line) and re.search(r"int|count|\bI\b|\by\b", line, re.I):
        return AxisKind.D_SPACING, False
    return None, False


def _names(line: str) -> list[str]:
    """Column names of a header line, units in brackets left out."""
    body = re.sub(r"\b(?:2|two)[\s_*-]+(?=theta|th\b|θ)", "2", line.strip().lstrip("#!;'\"/*% "), flags=re.I)
    body = re.sub(r"[(\[][^)\]]*[)\]]", " ", body)
    return [name.strip("\"' ") for name in re.split(r"[,;\t]|\s+", body) if name.strip("\"' ")]


def _third_is_esd(line: str) -> bool | None:
    """Judge the third column by its name; None where it has none that we know."""
    names = _names(line)
    if len(names) < 3:
        return None
    if _ESD.match(names[2]):
        return True
    return False if _NOT_ESD.match(names[2]) else None


def hints_from_text(lines: Sequence[str]) -> PatternHints:
    """Collect wavelength (angstrom), anode, temperature (kelvin), counting time (s) and radius (mm) from comments."""
    text = "\n".join(line[:300] for line in lines[:200])
    hints = PatternHints()
    if (found := _WAVELENGTH.search(text)) and 0.05 < float(found[1]) < 10.0:
        hints = replace(hints, wavelengths_angstrom=(float(found[1]),))
    uxd = {name: float(value) for name, value in _UXD.findall(text)}
    if "WL1" in uxd:
        lines_given = tuple(uxd[name] for name in ("WL1", "WL2") if 0.05 < uxd.get(name, 0.0) < 10.0)
        hints = replace(hints, wavelengths_angstrom=lines_given, ka2_ratio=uxd.get("WLRATIO"))
    if found := _ANODE.search(text):
        hints = replace(hints, anode=found[1].capitalize())
    if found := _TEMPERATURE.search(text):
        hints = replace(hints, temperature_kelvin=float(found[1]))
    if found := _TIME.search(text):
        hints = replace(hints, counting_seconds=float(found[1]))
    if found := _RADIUS.search(text):
        hints = replace(hints, goniometer_radius_mm=float(found[1]))
    return hints
