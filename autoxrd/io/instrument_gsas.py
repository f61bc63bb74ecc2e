"""Read a GSAS instrument parameter file (.prm, .inst): X-rays or neutrons; time of flight is read in `flight`.

Source: LAUR 86-748 (2004), "Instrument parameter file": ICONS holds two wavelengths and the zero in
columns of ten (zero in centidegrees), POLA in columns 41-50, IPOLA in 51-55, the K-alpha 2 ratio in 56-65.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from autoxrd.domain.instrument import EmissionLine, Geometry, Instrument, Profile, Radiation
from autoxrd.domain.pattern import Notice
from autoxrd.io.flight import bank_of_gsas
from autoxrd.io.profiles import gsas_profile, is_dummy
from autoxrd.io.raw import to_float
from autoxrd.io.settings import InstrumentSettings
from autoxrd.io.source import Source, shown
from autoxrd.io.wavelengths import is_laboratory_line

__all__ = ["is_gsas_instrument", "read_gsas_instrument"]

_CALIBRATION = re.compile(r"calib|standard|\bSRM\b|LaB6|\bfit\b|NIST", re.I)
_PREFERRED = (3, 4, 2, 1)


@dataclass(frozen=True, slots=True)
class _Coefficients:
    """One profile function of the file."""

    function: int
    values: tuple[float, ...]

    def get(self, number: int) -> float:
        """Coefficient by its number from 1; 0 where the file has fewer."""
        return self.values[number - 1] if number <= len(self.values) else 0.0


def is_gsas_instrument(source: Source) -> bool:
    """Whether the file has INS records."""
    return not source.looks_binary and any(re.match(r"^INS\s+\S", line) for line in source.lines[:200])


def read_gsas_instrument(source: Source, bank: int | None, settings: InstrumentSettings) -> Instrument:
    """Read one bank (the first by default).

    Raises:
        UserInputError: ``instrument_invalid``, ``instrument_unsupported``, ``bank_missing``.
    """
    records = {line[:12].ljust(12): line[12:] for line in source.lines if line.startswith("INS")}
    histogram_type = records.get("INS   HTYPE ", records.get("INS   HTYPE", "")).strip().upper()
    if histogram_type[:3] not in ("PXC", "PNC", "PNT"):
        kind = shown(histogram_type) or "no HTYPE record"
        sentence = f"describes {kind}; expected constant wavelength (HTYPE PXCR, PNCR) or time of flight (PNTR)."
        raise source.error("instrument_unsupported", sentence)
    radiation = Radiation.NEUTRON if histogram_type[1] == "N" else Radiation.XRAY
    prefix, notices = _bank_prefix(records, bank, source)
    if histogram_type[2] == "T":
        return replace(bank_of_gsas(records, prefix, source), notices=notices)
    icons = records.get(f"{prefix} ICONS")
    if icons is None:
        raise source.error("instrument_invalid", "has no ICONS record; expected the wavelengths there.")
    instrument = _from_icons(icons, records.get(f"{prefix} IRAD "), radiation, source, settings)
    head = records.get(f"{prefix}I HEAD", "").strip()
    profile, calibrated, extra = _profile(records, prefix, head, source, settings)
    return replace(
        instrument,
        profile=profile,
        profile_calibrated=calibrated,
        origin=f"GSAS instrument file {source.name}" + (f": {shown(head)}" if head else ""),
        notices=(*notices, *instrument.notices, *extra),
    )


def _bank_prefix(records: dict[str, str], bank: int | None, source: Source) -> tuple[str, tuple[Notice, ...]]:
    """First six characters of the records of a bank."""
    numbers = sorted({int(key[3:6]) for key in records if key[3:6].strip().isdigit()})
    if not numbers:
        raise source.error("instrument_invalid", "has no bank (no 'INS  1 ICONS' record).")
    if bank is not None and bank not in numbers:
        known = ", ".join(map(str, numbers))
        raise source.error("bank_missing", f"has no bank {bank}; it has {known}.", bank=bank)
    chosen = numbers[0] if bank is None else bank
    notices: tuple[Notice, ...] = ()
    if bank is None and len(numbers) > 1:
        text = f"The instrument file has {len(numbers)} banks; bank {chosen} is used."
        notices = (Notice("other_banks_ignored", text),)
    return f"INS{chosen:3d}", notices


def _field(text: str, start: int, end: int) -> float:
    """Number in some columns; 0 where they are blank."""
    return to_float(text[start:end].strip()) or 0.0


def _from_icons(
    icons: str, irad: str | None, radiation: Radiation, source: Source, settings: InstrumentSettings
) -> Instrument:
    """Lines, zero, polarisation and geometry of one bank."""
    first, second = _field(icons, 0, 10), _field(icons, 10, 20)
    if not 0.05 < first < 10.0:
        raise source.error("instrument_invalid", f"the wavelength in ICONS is {first:g}; expected angstrom.")
    ratio = _field(icons, 55, 65)
    lines = [EmissionLine(first)]
    if 0.05 < second < 10.0:
        lines.append(EmissionLine(second, ratio if 0.0 < ratio <= 1.0 else 0.5))
    pola, ipola = _field(icons, 40, 50), _field(icons, 50, 55)
    polarization = settings.unpolarised
    if radiation is Radiation.XRAY and 0.0 < pola <= 1.0:
        # IPOLA 1 is the Azaroff form, 1 + POLA cos^2(2theta), with POLA = cos^2 of the monochromator's angle.
        polarization = 1.0 / (1.0 + pola) if ipola == 1.0 else pola
    anode = _field(irad or "", 0, len(irad or ""))
    laboratory = radiation is Radiation.XRAY and (len(lines) > 1 or anode > 0.0 or is_laboratory_line(first, settings))
    geometry = Geometry.BRAGG_BRENTANO if laboratory else Geometry.DEBYE_SCHERRER
    text = f"The instrument file does not name the geometry: {geometry.value} is taken."
    return Instrument(
        radiation=radiation,
        geometry=geometry,
        lines=tuple(lines),
        polarization=polarization,
        zero_deg=_field(icons, 20, 30) / 100.0,
        notices=(Notice("geometry_assumed", text),),
    )


def _profile(
    records: dict[str, str], prefix: str, head: str, source: Source, settings: InstrumentSettings
) -> tuple[Profile | None, bool, tuple[Notice, ...]]:
    """Widths of the most useful profile function in the file, whether calibrated, and notices."""
    functions = {found.function: found for found in _functions(records, prefix)}
    chosen = next((functions[number] for number in _PREFERRED if number in functions), None)
    if chosen is None:
        return None, False, ()
    get = chosen.get
    gu, gv, gw = get(1), get(2), get(3)
    gp = lx = ly = s_l = h_l = 0.0
    if chosen.function == 2:
        lx, ly, gp = get(4), get(5), get(9)
    elif chosen.function == 3:
        gp, lx, ly, s_l, h_l = get(4), get(5), get(6), get(7), get(8)
    elif chosen.function == 4:
        gp, lx, s_l, h_l = get(4), get(5), get(10), get(11)
    dummy = is_dummy(gu, gv, gw, settings)
    notice: tuple[Notice, ...] = ()
    if dummy:
        # The template's GP and S/L are placeholders like its GU, GV, GW.
        text = "The widths in the instrument file are those of the GSAS template: they are starting values only."
        notice = (Notice("profile_dummy", text),)
    profile, notices = gsas_profile(gu=gu, gv=gv, gw=gw, gp=gp, lx=lx, ly=ly, s_l=s_l, h_l=h_l, settings=settings)
    calibrated = profile is not None and not dummy and bool(_CALIBRATION.search(head)) and "DUMMY" not in head.upper()
    return profile, calibrated, (*notice, *notices)


def _functions(records: dict[str, str], prefix: str) -> list[_Coefficients]:
    """All profile functions of one bank; sets are PRCF (old) or PRCF1, PRCF2, ..."""
    out: list[_Coefficients] = []
    for name in ("PRCF ", "PRCF1", "PRCF2", "PRCF3", "PRCF4", "PRCF5"):
        header = records.get(f"{prefix}{name} ")
        if header is None or not header.split():
            continue
        function = to_float(header.split()[0])
        values: list[float] = []
        for row in range(1, 10):
            record = records.get(f"{prefix}{name}{row}")
            if record is None:
                break
            values.extend(value for value in map(to_float, record.split()) if value is not None)
        if function is not None and len(values) >= 3:
            out.append(_Coefficients(abs(int(function)), tuple(values)))
    return out
