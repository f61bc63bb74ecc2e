"""Read a GSAS-II .instprm file as plain text: never evaluated, whatever it holds.

GSAS-II itself executes a ``CorrectionCode`` entry of such a file; here it is only text and is ignored.
Units: U, V, W centidegrees^2 (variance), X, Y, Z centidegrees FWHM, Zero degrees, SH/L = S/L + H/L.
Source: Toby & Von Dreele (2013), doi:10.1107/S0021889813003531.
"""

from __future__ import annotations

import re
from dataclasses import replace

from autoxrd.domain.instrument import EmissionLine, Geometry, Instrument, Radiation
from autoxrd.domain.pattern import Notice
from autoxrd.io.flight import bank_of_gsas2
from autoxrd.io.profiles import gsas_profile, is_dummy
from autoxrd.io.raw import to_float
from autoxrd.io.settings import InstrumentSettings
from autoxrd.io.source import Source, shown
from autoxrd.io.wavelengths import is_laboratory_line

__all__ = ["is_gsas2_instrument", "read_gsas2_instrument"]

_ENTRY = re.compile(r"^\s*([^:#\s][^:]*?)\s*:\s*(.*?)\s*$")
_BANK = re.compile(r"^#\s*Bank\s*(\d+)", re.I)


def is_gsas2_instrument(source: Source) -> bool:
    """Whether the file has GSAS-II's first line or a Type entry of its kind."""
    if source.looks_binary:
        return False
    head = source.lines[:60]
    return any(line.lower().startswith("#gsas-ii instrument") for line in head) or any(
        re.match(r"^Type\s*:\s*P[XN]", line) for line in head
    )


def read_gsas2_instrument(source: Source, bank: int | None, settings: InstrumentSettings) -> Instrument:
    """Read one bank (the first by default).

    Raises:
        UserInputError: ``instrument_invalid``, ``instrument_unsupported``, ``bank_missing``.
    """
    entries = _entries(source, bank)
    kind = entries.get("Type", "").upper()
    if kind[2:3] == "T":
        return bank_of_gsas2(entries, source)
    if kind[:3] not in ("PXC", "PNC"):
        sentence = f"describes type '{shown(kind)}'; expected constant wavelength (PXC, PNC) or time of flight (PNT)."
        raise source.error("instrument_unsupported", sentence)
    radiation = Radiation.NEUTRON if kind[1] == "N" else Radiation.XRAY
    lines = _lines(entries, source)
    laboratory = radiation is Radiation.XRAY and (
        len(lines) > 1 or is_laboratory_line(lines[0].wavelength_angstrom, settings)
    )
    geometry, notices = _geometry(entries, laboratory)
    pola = _number(entries, "Polariz.")
    radius = _number(entries, "Gonio.radius") or _number(entries, "Gonio. radius")
    instrument = Instrument(
        radiation=radiation,
        geometry=geometry,
        lines=lines,
        polarization=pola
        if radiation is Radiation.XRAY and pola is not None and 0.0 < pola <= 1.0
        else settings.unpolarised,
        goniometer_radius_mm=radius if radius and radius > 0.0 else None,
        zero_deg=_number(entries, "Zero") or 0.0,
        origin=f"GSAS-II instrument file {source.name}",
        notices=notices,
    )
    return _with_profile(instrument, entries, settings)


def _entries(source: Source, bank: int | None) -> dict[str, str]:
    """Key and text of one bank's entries; a text in triple quotes is skipped."""
    banks: dict[int, dict[str, str]] = {}
    current: dict[str, str] = {}
    in_quotes = False
    number_in_force: int | None = None
    for line in source.lines:
        quotes = line.count('"""') + line.count("'''")
        if in_quotes or quotes:
            in_quotes = in_quotes != bool(quotes % 2)
            continue
        header = _BANK.match(line)
        if header:
            number_in_force = int(header[1])
            current = banks.setdefault(number_in_force, {})
            continue
        for part in line.split(";"):
            match = _ENTRY.match(part)
            if match:
                current.setdefault(match[1], match[2].split("#", 1)[0].strip())
    if not banks:
        return current
    if bank is not None and bank not in banks:
        known = ", ".join(map(str, sorted(banks)))
        raise source.error("bank_missing", f"has no bank {bank}; it has {known}.", bank=bank)
    return banks[min(banks) if bank is None else bank]


def _number(entries: dict[str, str], key: str) -> float | None:
    """Number of an entry, or None."""
    return to_float(entries[key]) if key in entries else None


def _lines(entries: dict[str, str], source: Source) -> tuple[EmissionLine, ...]:
    """Lam, or Lam1 and Lam2 with their ratio."""
    first = _number(entries, "Lam") or _number(entries, "Lam1")
    if first is None or not 0.05 < first < 10.0:
        raise source.error("instrument_invalid", "has no usable Lam or Lam1; expected a wavelength in angstrom.")
    second = _number(entries, "Lam2")
    if second is None or not 0.05 < second < 10.0 or "Lam" in entries:
        return (EmissionLine(first),)
    ratio = _number(entries, "I(L2)/I(L1)")
    return (EmissionLine(first), EmissionLine(second, ratio if ratio is not None and 0.0 < ratio <= 1.0 else 0.5))


def _geometry(entries: dict[str, str], laboratory: bool) -> tuple[Geometry, tuple[Notice, ...]]:
    """Geometry as named, else by the kind of radiation."""
    named = entries.get("Diff-type", "").lower()
    if "bragg" in named:
        return Geometry.BRAGG_BRENTANO, ()
    if "debye" in named:
        return Geometry.DEBYE_SCHERRER, ()
    geometry = Geometry.BRAGG_BRENTANO if laboratory else Geometry.DEBYE_SCHERRER
    text = f"The instrument file does not name the geometry: {geometry.value} is taken."
    return geometry, (Notice("geometry_assumed", text),)


def _with_profile(instrument: Instrument, entries: dict[str, str], settings: InstrumentSettings) -> Instrument:
    """Add the widths; GSAS-II's default values are no calibration."""
    found = {key: _number(entries, key) for key in ("U", "V", "W", "X", "Y", "Z", "SH/L")}
    if any(found[key] is None for key in ("U", "V", "W")):
        return instrument
    value = {key: number or 0.0 for key, number in found.items()}
    dummy = is_dummy(value["U"], value["V"], value["W"], settings)
    profile, notices = gsas_profile(
        gu=value["U"],
        gv=value["V"],
        gw=value["W"],
        lx=value["X"],
        ly=value["Y"],
        z=value["Z"],
        s_l=value["SH/L"] / 2.0,
        h_l=value["SH/L"] / 2.0,
        settings=settings,
    )
    if dummy:
        text = "The widths in the instrument file are GSAS-II's default values: they are starting values only."
        notices = (Notice("profile_dummy", text), *notices)
    return replace(
        instrument,
        profile=profile,
        profile_calibrated=profile is not None and not dummy,
        notices=(*instrument.notices, *notices),
    )
