"""Settle the instrument of a job: options first, then the instrument file, then what the pattern says."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from autoxrd.domain.instrument import ANODE_LINES, EmissionLine, Geometry, Instrument, Radiation
from autoxrd.domain.pattern import AxisKind, Notice, Pattern, PatternHints
from autoxrd.errors import UserInputError
from autoxrd.io.flight import as_flight_time, wrong_instrument
from autoxrd.io.instrument_gsas import is_gsas_instrument, read_gsas_instrument
from autoxrd.io.instrument_gsas2 import is_gsas2_instrument, read_gsas2_instrument
from autoxrd.io.quality import strongest_line_width
from autoxrd.io.settings import DEFAULT_INSTRUMENT_SETTINGS, InstrumentSettings
from autoxrd.io.source import input_error, load_source, shown
from autoxrd.io.wavelengths import (
    as_geometry,
    as_radiation,
    instrument_of_lines,
    is_laboratory_line,
    lines_of_anode,
    monochromator_polarization,
    parse_wavelengths,
)

__all__ = ["as_refined", "as_two_theta", "axis_of", "read_instrument", "resolve_instrument"]


def read_instrument(
    path: Path, *, bank: int | None = None, settings: InstrumentSettings = DEFAULT_INSTRUMENT_SETTINGS
) -> Instrument:
    """Read a GSAS (.prm, .inst) or GSAS-II (.instprm) instrument file, recognised by its content.

    Args:
        path: the file.
        bank: bank number; the first by default.
        settings: defaults and tolerances.

    Raises:
        UserInputError: ``file_*``, ``instrument_format_unknown``, ``instrument_invalid``,
            ``instrument_unsupported``, ``bank_missing``.
    """
    source = load_source(Path(path), max_bytes=settings.max_bytes)
    if is_gsas_instrument(source):
        return read_gsas_instrument(source, bank, settings)
    if is_gsas2_instrument(source):
        return read_gsas2_instrument(source, bank, settings)
    sentence = "is not an instrument file that is known; expected GSAS (.prm, 'INS' records) or GSAS-II (.instprm)."
    raise source.error("instrument_format_unknown", sentence)


def resolve_instrument(
    pattern: Pattern,
    *,
    file: Path | None = None,
    anode: str | None = None,
    wavelength: str | None = None,
    radiation: Radiation | str | None = None,
    geometry: Geometry | str | None = None,
    monochromator_two_theta_deg: float | None = None,
    settings: InstrumentSettings = DEFAULT_INSTRUMENT_SETTINGS,
) -> Instrument:
    """Settle the instrument of a pattern.

    Args:
        pattern: its hints serve where no option is given.
        file: instrument file.
        anode: name of the anode; overrides the file's lines. Not together with ``wavelength``.
        wavelength: wavelengths as in ``parse_wavelengths``; overrides the file's lines.
        radiation: overrides what the file says; X-rays by default.
        geometry: overrides what is assumed.
        monochromator_two_theta_deg: angle of a diffracted-beam monochromator; sets the polarisation.
        settings: defaults and tolerances.

    Raises:
        UserInputError: ``axis_unsupported`` (time of flight without its calibration, or the calibration without it),
            ``wavelength_missing``, ``wavelength_ambiguous``,
            ``wavelength_invalid``, ``anode_unknown``, ``geometry_unknown``, ``radiation_unknown``,
            ``monochromator_angle_invalid`` and those of ``read_instrument``.
    """
    if pattern.axis is AxisKind.TOF:
        return _flight(pattern, file, settings)
    if anode is not None and wavelength is not None:
        sentence = "both an anode and a wavelength are given; give one of them."
        raise UserInputError("wavelength_ambiguous", sentence)
    asked = lines_of_anode(anode) if anode is not None else None
    if wavelength is not None:
        asked = parse_wavelengths(wavelength)
    if file is not None:
        given = read_instrument(file, settings=settings)
        if given.flight is not None:
            raise wrong_instrument(pattern)
        instrument = _with_lines(given, asked, settings)
        if radiation is not None:
            instrument = replace(instrument, radiation=as_radiation(radiation))
        if geometry is not None:
            instrument = _with_geometry(instrument, geometry)
    else:
        instrument = _without_file(pattern, asked, anode or wavelength, radiation, geometry, settings)
    return _finish(instrument, pattern.hints, monochromator_two_theta_deg, settings)


def _with_lines(
    instrument: Instrument, asked: tuple[EmissionLine, ...] | None, settings: InstrumentSettings
) -> Instrument:
    """Let an option override the lines of the file, and say so where they differ."""
    if asked is None:
        return instrument
    old, new = instrument.lines[0].wavelength_angstrom, asked[0].wavelength_angstrom
    notices = instrument.notices
    if abs(new / old - 1.0) > settings.wavelength_conflict:
        text = f"The wavelength given, {new:g}, replaces that of the instrument file, {old:g} angstrom."
        notices = (*notices, Notice("wavelength_conflict", text))
    return replace(instrument, lines=asked, notices=notices)


def _with_geometry(instrument: Instrument, geometry: Geometry | str) -> Instrument:
    """Let an option settle the geometry; the notice of the assumption goes."""
    kept = tuple(notice for notice in instrument.notices if notice.code != "geometry_assumed")
    return replace(instrument, geometry=as_geometry(geometry), notices=kept)


def _without_file(
    pattern: Pattern,
    asked: tuple[EmissionLine, ...] | None,
    asked_text: str | None,
    radiation: Radiation | str | None,
    geometry: Geometry | str | None,
    settings: InstrumentSettings,
) -> Instrument:
    """Build the instrument from the options or from the pattern's own header."""
    hints = pattern.hints
    stated = radiation if radiation is not None else hints.radiation
    notices: list[Notice] = []
    lines, origin = asked, f"as given: {shown(asked_text or '')}"
    if lines is None:
        lines, origin = _lines_of_hints(hints), f"header of {pattern.source_name}"
        pair = _pair_of(lines, settings) if stated is None or as_radiation(stated) is Radiation.XRAY else None
        if pair is not None:
            lines = pair
            text = (
                "The header names only the K-alpha 1 wavelength of a tube: K-alpha 2 is added with half its intensity; "
                "give --wavelength for a monochromatic beam."
            )
            notices.append(Notice("ka2_assumed", text))
    if lines is None:
        name = pattern.source_name or "the pattern"
        sentence = (
            "does not state its wavelength; give --anode (Cu, Co, Mo, ...), --wavelength "
            "(1.5406 or 1.5406,1.5444:0.5, angstrom) or --instrument FILE."
        )
        raise input_error("wavelength_missing", name, sentence)
    kind = as_radiation(stated) if stated is not None else _likely_radiation(pattern, lines, notices, settings)
    if geometry is None and any(notice.code == "transmission_geometry" for notice in pattern.notices):
        geometry = Geometry.DEBYE_SCHERRER
    built = instrument_of_lines(lines, radiation=kind, geometry=geometry, origin=origin, settings=settings)
    return replace(built, notices=(*notices, *built.notices))


def _likely_radiation(
    pattern: Pattern, lines: tuple[EmissionLine, ...], notices: list[Notice], settings: InstrumentSettings
) -> Radiation:
    """Tell neutrons from synchrotron radiation by the width of the lines, where nobody says which it is."""
    wavelength = lines[0].wavelength_angstrom
    tube = len(lines) > 1 or is_laboratory_line(wavelength, settings)
    if tube or pattern.axis is not AxisKind.TWO_THETA or wavelength < settings.neutron_min_wavelength_angstrom:
        return Radiation.XRAY
    width = strongest_line_width(pattern)
    neutron = width >= settings.neutron_min_fwhm_deg
    text = (
        f"Nothing states the radiation; the wavelength {wavelength:g} is that of no tube and the strongest line is "
        f"{width:.3f} degrees wide: {'neutrons' if neutron else 'synchrotron X-rays'} are assumed. "
        "Say --radiation xray or neutron if that is wrong."
    )
    notices.append(Notice("radiation_assumed", text))
    return Radiation.NEUTRON if neutron else Radiation.XRAY


def _lines_of_hints(hints: PatternHints) -> tuple[EmissionLine, ...] | None:
    """Lines that the pattern's header gives; an anode alone stands for both K-alpha lines."""
    wavelengths = [value for value in hints.wavelengths_angstrom if 0.05 < value < 10.0]
    if wavelengths:
        ratio = hints.ka2_ratio if hints.ka2_ratio is not None and 0.0 < hints.ka2_ratio <= 1.0 else 0.5
        first, *others = wavelengths[:2]
        return (EmissionLine(first), *(EmissionLine(value, ratio) for value in others))
    if hints.anode is not None and hints.radiation != Radiation.NEUTRON.value:
        try:
            return lines_of_anode(hints.anode)
        except UserInputError:
            return None
    return None


def _pair_of(lines: tuple[EmissionLine, ...] | None, settings: InstrumentSettings) -> tuple[EmissionLine, ...] | None:
    """Add K-alpha 2 where a header names K-alpha 1 alone: most laboratory beams hold both."""
    if lines is None or len(lines) != 1:
        return None
    for alpha1, alpha2 in ANODE_LINES.values():
        stated = lines[0].wavelength_angstrom
        if abs(stated / alpha1.wavelength_angstrom - 1.0) < settings.laboratory_line_tolerance:
            scale = stated / alpha1.wavelength_angstrom
            second = EmissionLine(alpha2.wavelength_angstrom * scale, alpha2.relative_intensity)
            return (lines[0], second)
    return None


def _finish(
    instrument: Instrument, hints: PatternHints, monochromator_two_theta_deg: float | None, settings: InstrumentSettings
) -> Instrument:
    """Add the monochromator, the radius, and a notice where the pattern's own header disagrees."""
    notices = list(instrument.notices)
    polarization = instrument.polarization
    if monochromator_two_theta_deg is not None:
        polarization = monochromator_polarization(monochromator_two_theta_deg)
        notices = [notice for notice in notices if notice.code != "polarization_assumed"]
    stated = hints.wavelengths_angstrom[:1]
    used = instrument.lines[0].wavelength_angstrom
    if stated and abs(stated[0] / used - 1.0) > settings.wavelength_conflict:
        text = f"The pattern's header states {stated[0]:g} angstrom, {used:g} is used."
        notices.append(Notice("wavelength_conflict", text))
    radius = instrument.goniometer_radius_mm
    return replace(
        instrument,
        polarization=polarization,
        goniometer_radius_mm=radius if radius is not None else hints.goniometer_radius_mm,
        notices=tuple(dict.fromkeys(notices)),
    )


def _flight(pattern: Pattern, file: Path | None, settings: InstrumentSettings) -> Instrument:
    """Return the bank of a time-of-flight pattern: that of the same number, where the file has it."""
    if file is None:
        raise wrong_instrument(pattern)
    try:
        instrument = read_instrument(file, bank=pattern.hints.bank, settings=settings)
    except UserInputError as error:
        if error.code != "bank_missing":
            raise
        instrument = read_instrument(file, settings=settings)
    if instrument.flight is None:
        raise wrong_instrument(pattern)
    return instrument


def axis_of(file: Path | None, settings: InstrumentSettings = DEFAULT_INSTRUMENT_SETTINGS) -> AxisKind | None:
    """Return the axis that an instrument file speaks of where a pattern's file may leave it open: flight time, or None.

    Raises:
        UserInputError: those of ``read_instrument``.
    """
    if file is None or read_instrument(file, settings=settings).flight is None:
        return None
    return AxisKind.TOF


def as_refined(pattern: Pattern, instrument: Instrument) -> Pattern:
    """Return the pattern in the form that is refined: over 2theta, or per microsecond over the time of flight.

    Raises:
        UserInputError: ``axis_unsupported``, ``pattern_too_short``.
    """
    if pattern.axis is AxisKind.TOF:
        return as_flight_time(pattern, instrument)
    return as_two_theta(pattern, instrument)


def as_two_theta(pattern: Pattern, instrument: Instrument) -> Pattern:
    """Return the pattern on a 2theta axis; Q and d are converted with the first wavelength.

    2theta = 2 asin(Q lambda / 4 pi) = 2 asin(lambda / 2 d). Points beyond 180 degrees are left out.

    Raises:
        UserInputError: ``axis_unsupported`` for time of flight, ``pattern_too_short`` where too little is left.
    """
    if pattern.axis is AxisKind.TWO_THETA:
        return pattern
    if pattern.axis is AxisKind.TOF:
        raise wrong_instrument(pattern)
    wavelength = instrument.lines[0].wavelength_angstrom
    is_q = pattern.axis is AxisKind.Q
    sine = pattern.x * wavelength / (4.0 * math.pi) if is_q else wavelength / (2.0 * pattern.x)
    order = np.flatnonzero(sine < 1.0)
    if order.size < 50:
        sentence = f"has only {order.size} points below 180 degrees 2theta at {wavelength:g} angstrom."
        raise input_error("pattern_too_short", pattern.source_name or "the pattern", sentence)
    if not is_q:
        order = order[::-1]
    text = f"The axis was converted from {pattern.axis.value} to 2theta with {wavelength:g} angstrom."
    arrays = [np.ascontiguousarray(values[order]) for values in (sine, pattern.y, pattern.sigma)]
    arrays[0] = np.degrees(2.0 * np.arcsin(arrays[0]))
    for values in arrays:
        values.flags.writeable = False
    return replace(
        pattern,
        x=arrays[0],
        y=arrays[1],
        sigma=arrays[2],
        axis=AxisKind.TWO_THETA,
        notices=(*pattern.notices, Notice("axis_converted", text)),
    )
