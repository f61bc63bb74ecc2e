"""Time of flight: read the calibration of a bank, and bring a pattern to the form that is refined.

Sources: LAUR 86-748 (2004), "TOF profile functions" 1 and 3; Toby & Von Dreele (2013),
doi:10.1107/S0021889813003531. GSAS-II's convention for channels is followed, because calibrations are made with it:
the abscissa of a file is the beginning of a channel, and intensities of GSAS files are counts per channel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from autoxrd.domain.instrument import FlightBank, Geometry, Instrument, Radiation
from autoxrd.domain.pattern import AxisKind, Notice, Pattern
from autoxrd.errors import UserInputError
from autoxrd.io.raw import to_float
from autoxrd.io.source import Source, input_error

__all__ = ["as_flight_time", "bank_of_gsas", "bank_of_gsas2", "wrong_instrument"]

_NEEDED = ("fltPath", "2-theta", "difC", "alpha")
_OPTIONAL = {
    "difA": "dif_a",
    "difB": "dif_b",
    "Zero": "zero",
    "beta-0": "beta_0",
    "beta-1": "beta_1",
    "beta-q": "beta_q",
    "sig-0": "sig_0",
    "sig-1": "sig_1",
    "sig-2": "sig_2",
    "sig-q": "sig_q",
    "X": "x",
    "Y": "y",
    "Z": "z",
}


def bank_of_gsas2(entries: Mapping[str, str], source: Source) -> Instrument:
    """Return the instrument of one bank of a GSAS-II file of Type PNT.

    Raises:
        UserInputError: ``instrument_invalid``, ``instrument_unsupported`` (time-of-flight X-rays, tables of widths).
    """
    if entries.get("Type", "").upper()[1:2] != "N":
        raise source.error("instrument_unsupported", "describes time of flight that is not of neutrons (Type PNT).")
    numbers = {key: to_float(entries[key]) for key in (*_NEEDED, *_OPTIONAL) if key in entries}
    missing = [key for key in _NEEDED if numbers.get(key) is None]
    if missing:
        raise source.error("instrument_invalid", f"has no {', '.join(missing)}; a time-of-flight bank needs them.")
    if any(key in entries for key in ("pdabc", "Itype")):
        raise source.error("instrument_unsupported", "has tables of widths or an incident spectrum, not read here.")
    more = {name: numbers.get(key) or 0.0 for key, name in _OPTIONAL.items()}
    flight = FlightBank(
        two_theta_deg=abs(numbers["2-theta"] or 0.0),
        path_m=numbers["fltPath"] or 0.0,
        dif_c=numbers["difC"] or 0.0,
        alpha=numbers["alpha"] or 0.0,
        **more,
    )
    return _instrument(flight, f"GSAS-II instrument file {source.name}", source)


def bank_of_gsas(records: Mapping[str, str], prefix: str, source: Source) -> Instrument:
    """Return the instrument of one bank of a GSAS file with HTYPE PNTR.

    Args:
        records: text after column 12 by the first 12 columns.
        prefix: first six columns of the bank's records.
        source: the file, for its errors.

    Raises:
        UserInputError: ``instrument_invalid``; ``instrument_unsupported`` for a profile function other than 1 and 3,
            for tables of widths and for an incident spectrum that the data are not yet divided by.
    """
    icons, bank = _row(records, f"{prefix} ICONS"), _row(records, f"{prefix}BNKPAR")
    if len(icons) < 1 or len(bank) < 2:
        raise source.error("instrument_invalid", "has no ICONS and BNKPAR records; expected DIFC and the angle there.")
    spectrum = _row(records, f"{prefix}I ITYP")
    if spectrum and int(spectrum[0]) % 10 != 0:
        sentence = "has an incident spectrum (ITYP); expected data that were divided by it (ITYP 0 or 10)."
        raise source.error("instrument_unsupported", sentence)
    widths = _gsas_widths(records, prefix, source)
    flight = FlightBank(
        two_theta_deg=abs(bank[1]),
        path_m=(_row(records, "INS   FPATH1") or [0.0])[0] + bank[0],
        dif_c=icons[0],
        dif_a=icons[1] if len(icons) > 1 else 0.0,
        zero=icons[2] if len(icons) > 2 else 0.0,
        **widths,
    )
    return _instrument(flight, f"GSAS instrument file {source.name}", source)


def _row(records: Mapping[str, str], key: str) -> list[float]:
    values = [to_float(word) for word in records.get(key.ljust(12), "").split()]
    return [value for value in values if value is not None]


def _gsas_widths(records: Mapping[str, str], prefix: str, source: Source) -> dict[str, float]:
    for name in ("PRCF1", "PRCF ", "PRCF2", "PRCF3"):
        header = _row(records, f"{prefix}{name} ")
        if not header:
            continue
        values = [value for line in range(1, 10) for value in _row(records, f"{prefix}{name}{line}")]
        values += [0.0] * 12
        if header[0] == 1.0:
            alpha, beta, widths = values[1], values[2:4], {"sig_0": values[4], "sig_1": values[5], "sig_2": values[6]}
        elif header[0] == 3.0:
            alpha, beta = values[0], values[1:3]
            widths = {"sig_0": values[3], "sig_1": values[4], "sig_2": values[5]}
            widths |= {"z": values[6], "x": values[7], "y": values[8]}
        else:
            continue
        return {"alpha": alpha, "beta_0": beta[0], "beta_1": beta[1], **widths}
    sentence = "has no time-of-flight profile function that is read here; expected function 1 or 3 without tables."
    raise source.error("instrument_unsupported", sentence)


def _instrument(flight: FlightBank, origin: str, source: Source) -> Instrument:
    numbers = (flight.two_theta_deg, flight.path_m, flight.dif_c, flight.alpha)
    if not all(math.isfinite(number) and number > 0.0 for number in numbers) or flight.two_theta_deg > 180.0:
        sentence = "needs an angle up to 180 degrees, a flight path, DIFC and alpha above zero."
        raise source.error("instrument_invalid", sentence)
    return Instrument(
        radiation=Radiation.NEUTRON,
        geometry=Geometry.DEBYE_SCHERRER,
        lines=(),
        profile_calibrated=True,
        origin=origin,
        flight=flight,
    )


def as_flight_time(pattern: Pattern, instrument: Instrument) -> Pattern:
    """Return a time-of-flight pattern as it is refined: centres of channels, intensity per microsecond.

    The last channel, whose end no file states, is left out, and so are channels in which the calibrated lines would
    have no width.

    Raises:
        UserInputError: ``axis_unsupported`` where pattern and instrument do not belong together,
            ``pattern_too_short``.
    """
    if pattern.axis is not AxisKind.TOF or instrument.flight is None:
        raise wrong_instrument(pattern)
    width = np.diff(pattern.x)
    x = pattern.x[:-1] + 0.5 * width
    y, sigma = pattern.y[:-1], pattern.sigma[:-1]
    counts = pattern.format.startswith("gsas_")
    text = "Times are those at the beginning of each channel, as GSAS-II takes them: their centres are used"
    if counts:
        y, sigma = y / width, sigma / width
        text += ", and counts per channel are divided by its width"
    keep = _sharp(instrument.flight, x)
    if int(keep.sum()) < 50:
        name = pattern.source_name or "the pattern"
        raise input_error("pattern_too_short", name, "has fewer than 50 channels in which lines would have a width.")
    notices = [Notice("flight_channels", f"{text}.")]
    if not np.all(keep):
        text = f"{int(np.sum(~keep))} channels are left out: the calibration gives lines no width there."
        notices.append(Notice("flight_calibration_range", text))
    arrays = [np.ascontiguousarray(values[keep]) for values in (x, y, sigma)]
    for values in arrays:
        values.flags.writeable = False
    return replace(pattern, x=arrays[0], y=arrays[1], sigma=arrays[2], notices=(*pattern.notices, *notices))


def _sharp(flight: FlightBank, x: np.ndarray) -> np.ndarray:
    """Return the mask of times at which the calibrated shape is one, shape (n,)."""
    d = np.maximum(x - flight.zero, 1e-6) / flight.dif_c
    variance = flight.sig_0 + flight.sig_1 * d**2 + flight.sig_2 * d**4 + flight.sig_q * d
    lorentz = flight.x * d + flight.y * d**2 + flight.z
    decay = flight.beta_0 + flight.beta_1 / d**4 + flight.beta_q / d**2
    return np.asarray((x > flight.zero) & (decay > 0.0) & ((variance > 0.0) | ((variance == 0.0) & (lorentz > 0.0))))


def wrong_instrument(pattern: Pattern) -> UserInputError:
    """Build the refusal of a time-of-flight pattern without the calibration of its bank, or the other way round."""
    name = pattern.source_name or "the pattern"
    if pattern.axis is AxisKind.TOF:
        sentence = "is a time-of-flight pattern; give the instrument file of its bank with --instrument (Type PNT)."
    else:
        sentence = "is no time-of-flight pattern, but the instrument file describes time of flight."
    return input_error("axis_unsupported", name, sentence)
