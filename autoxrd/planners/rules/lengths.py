"""What sets the scale of lengths? A tube's wavelength is known; a beam's, or DIFC, only as somebody measured it."""

from __future__ import annotations

from autoxrd.domain.instrument import ANODE_LINES, Instrument, Radiation

__all__ = ["of_tube"]

_SAME_WAVELENGTH = 5e-4
"""Relative: tables of a tube's lines differ by less, and no beam is set to one of them by chance."""


def of_tube(instrument: Instrument) -> bool:
    """Return whether the wavelength is a tube's, which is known better than any fit could tell."""
    tubes = [line.wavelength_angstrom for lines in ANODE_LINES.values() for line in lines]
    given = instrument.wavelengths_angstrom[:1]
    return instrument.radiation is Radiation.XRAY and any(
        abs(wavelength / tube - 1.0) < _SAME_WAVELENGTH for wavelength in given for tube in tubes
    )
