"""Make an instrument from what a person types: an anode's name, or wavelengths."""

from __future__ import annotations

import math
import re

from autoxrd.domain.instrument import ANODE_LINES, EmissionLine, Geometry, Instrument, Radiation
from autoxrd.domain.pattern import Notice
from autoxrd.errors import UserInputError
from autoxrd.io.settings import DEFAULT_INSTRUMENT_SETTINGS, InstrumentSettings
from autoxrd.io.source import shown

__all__ = [
    "instrument_from_anode",
    "instrument_from_wavelengths",
    "is_laboratory_line",
    "lines_of_anode",
    "monochromator_polarization",
    "parse_wavelengths",
]

_ANODE = re.compile(r"^([A-Za-z]{1,2})[\s_-]*(?:k[\s_-]*(?:a|alpha|α))?[\s_-]*([12]?)$", re.I)


def monochromator_polarization(two_theta_deg: float) -> float:
    """Fraction K for a crystal monochromator at ``two_theta_deg`` in an unpolarised beam's path.

    K = 1 / (1 + cos^2(2 theta_m)), the mosaic-crystal form; 0.556 for graphite and Cu K-alpha
    (Azaroff 1955, doi:10.1107/S0365110X55002156).
    """
    if not 0.0 < two_theta_deg < 180.0:
        sentence = f"the monochromator angle {two_theta_deg:g} is not between 0 and 180 degrees 2theta."
        raise UserInputError("monochromator_angle_invalid", sentence)
    return 1.0 / (1.0 + math.cos(math.radians(two_theta_deg)) ** 2)


def lines_of_anode(name: str) -> tuple[EmissionLine, ...]:
    """K-alpha lines of an anode: ``Cu``, ``CuKa`` (both lines), ``CuKa1`` (one).

    Raises:
        UserInputError: ``anode_unknown``.
    """
    match = _ANODE.match(name.strip())
    symbol = match[1].capitalize() if match else ""
    if match is None or symbol not in ANODE_LINES:
        known = ", ".join(ANODE_LINES)
        sentence = f"the anode '{shown(name)}' is not known; expected one of {known}, or give the wavelength."
        raise UserInputError("anode_unknown", sentence, context={"anode": shown(name)})
    alpha1, alpha2 = ANODE_LINES[symbol]
    if match[2] == "1":
        return (alpha1,)
    if match[2] == "2":
        return (EmissionLine(alpha2.wavelength_angstrom),)
    return (alpha1, alpha2)


def is_laboratory_line(wavelength_angstrom: float, settings: InstrumentSettings = DEFAULT_INSTRUMENT_SETTINGS) -> bool:
    """Whether a wavelength is that of a laboratory tube (K-alpha 1, K-alpha 2 or their mean)."""
    for alpha1, alpha2 in ANODE_LINES.values():
        low, high = alpha1.wavelength_angstrom, alpha2.wavelength_angstrom
        margin = settings.laboratory_line_tolerance * low
        if low - margin <= wavelength_angstrom <= high + margin:
            return True
    return False


def parse_wavelengths(spec: str) -> tuple[EmissionLine, ...]:
    """Parse ``1.5406`` or ``1.5406,1.5444:0.5``; the first line has intensity 1.

    Raises:
        UserInputError: ``wavelength_invalid``.
    """
    lines: list[EmissionLine] = []
    for index, part in enumerate(spec.split(",")):
        wavelength_text, _, ratio_text = part.partition(":")
        wavelength = _number(wavelength_text)
        ratio = 1.0 if index == 0 else 0.5
        if ratio_text:
            ratio = _number(ratio_text)
        if not (0.05 < wavelength < 10.0 and 0.0 < ratio <= 1.0):
            sentence = (
                f"the wavelength '{shown(spec)}' is not understood; write angstrom, for example 1.5406 or "
                "1.5406,1.5444:0.5 (second line with its intensity relative to the first)."
            )
            raise UserInputError("wavelength_invalid", sentence, context={"wavelength": shown(spec)})
        lines.append(EmissionLine(wavelength, ratio))
    top = lines[0].relative_intensity
    lines = [EmissionLine(line.wavelength_angstrom, line.relative_intensity / top) for line in lines]
    return tuple(sorted(lines, key=lambda line: -line.relative_intensity))


def _number(text: str) -> float:
    """Parse a number; NaN where it is none."""
    try:
        return float(text.strip())
    except ValueError:
        return math.nan


def instrument_from_anode(
    name: str,
    *,
    geometry: Geometry | str | None = None,
    settings: InstrumentSettings = DEFAULT_INSTRUMENT_SETTINGS,
) -> Instrument:
    """Make a laboratory instrument from its anode.

    Args:
        name: ``Cu``, ``Co``, ``CuKa1`` ...
        geometry: Bragg-Brentano by default.
        settings: defaults and tolerances.

    Raises:
        UserInputError: ``anode_unknown``, ``geometry_unknown``.
    """
    return instrument_of_lines(
        lines_of_anode(name),
        radiation=Radiation.XRAY,
        geometry=geometry,
        origin=f"anode {shown(name)}",
        settings=settings,
    )


def instrument_from_wavelengths(
    spec: str,
    *,
    radiation: Radiation | str = Radiation.XRAY,
    geometry: Geometry | str | None = None,
    settings: InstrumentSettings = DEFAULT_INSTRUMENT_SETTINGS,
) -> Instrument:
    """Make an instrument from its wavelengths (see ``parse_wavelengths``).

    Args:
        spec: the wavelengths in angstrom.
        radiation: ``xray`` or ``neutron``.
        geometry: by default Bragg-Brentano for the lines of a laboratory tube, else Debye-Scherrer.
        settings: defaults and tolerances.

    Raises:
        UserInputError: ``wavelength_invalid``, ``radiation_unknown``, ``geometry_unknown``.
    """
    lines = parse_wavelengths(spec)
    return instrument_of_lines(
        lines,
        radiation=as_radiation(radiation),
        geometry=geometry,
        origin=f"wavelength {shown(spec)}",
        settings=settings,
    )


def instrument_of_lines(
    lines: tuple[EmissionLine, ...],
    *,
    radiation: Radiation,
    geometry: Geometry | str | None,
    origin: str,
    settings: InstrumentSettings = DEFAULT_INSTRUMENT_SETTINGS,
) -> Instrument:
    """Fill in geometry and polarisation where only the lines are known, and say what was assumed."""
    notices: list[Notice] = []
    laboratory = radiation is Radiation.XRAY and any(
        is_laboratory_line(line.wavelength_angstrom, settings) for line in lines
    )
    if geometry is None:
        chosen = Geometry.BRAGG_BRENTANO if laboratory else Geometry.DEBYE_SCHERRER
        why = "the wavelength is that of a laboratory tube" if laboratory else "the wavelength is not that of a tube"
        if radiation is Radiation.NEUTRON:
            why = "the radiation is neutrons"
        notices.append(Notice("geometry_assumed", f"The geometry is taken as {chosen.value} because {why}."))
    else:
        chosen = as_geometry(geometry)
    polarization = settings.unpolarised
    if radiation is Radiation.XRAY and not laboratory:
        polarization = settings.synchrotron_polarization
        text = (
            "A wavelength of no laboratory tube is taken as synchrotron radiation, "
            f"{100 * polarization:.0f} % polarised perpendicular to the diffraction plane."
        )
        notices.append(Notice("polarization_assumed", text))
    return Instrument(
        radiation=radiation,
        geometry=chosen,
        lines=lines,
        polarization=polarization,
        origin=origin,
        notices=tuple(notices),
    )


def as_geometry(value: Geometry | str) -> Geometry:
    """Read a geometry by name.

    Raises:
        UserInputError: ``geometry_unknown``.
    """
    text = str(value).strip().lower().replace("-", "_").replace(" ", "_")
    short = {
        "bb": "bragg_brentano",
        "ds": "debye_scherrer",
        "reflection": "bragg_brentano",
        "capillary": "debye_scherrer",
    }
    try:
        return Geometry(short.get(text, text))
    except ValueError as error:
        sentence = f"the geometry '{shown(str(value))}' is not known; expected bragg_brentano or debye_scherrer."
        raise UserInputError("geometry_unknown", sentence) from error


def as_radiation(value: Radiation | str) -> Radiation:
    """Read a radiation by name.

    Raises:
        UserInputError: ``radiation_unknown``.
    """
    text = str(value).strip().lower().replace("-", "").replace(" ", "").rstrip("s")
    short = {"x": "xray", "n": "neutron"}
    try:
        return Radiation(short.get(text, text))
    except ValueError as error:
        sentence = f"the radiation '{shown(str(value))}' is not known; expected xray or neutron."
        raise UserInputError("radiation_unknown", sentence) from error
