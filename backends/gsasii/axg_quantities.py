"""What each of our numbers is: its unit, its limits, and the step of a difference.

With time of flight some letters mean what they mean in GSAS's functions over d (`FlightBank`), in other units.
"""

from __future__ import annotations

import math
import re

from axg_adp import COMPONENTS

__all__ = ["FLIGHT_POSITION", "FLIGHT_SHAPE", "quantity_of", "row_of", "unit_of"]

FLIGHT_POSITION = ("difC", "difA", "difB")
"""Numbers of the instrument that place lines over the time of flight, beside its zero."""
FLIGHT_SHAPE = ("alpha", "beta-0", "beta-1", "beta-q", "sig-0", "sig-1", "sig-2", "sig-q", "X", "Y", "Z")
"""Numbers of the profile over the time of flight."""

_INF = math.inf
# quantity: unit, lower limit, upper limit, step of a difference (in its unit; negative: relative to the value)
QUANTITIES: dict[str, tuple[str, float, float, float]] = {
    "scale": ("", 0.0, _INF, -1e-3),
    "background": ("intensity", -_INF, _INF, 1.0),
    "background_fixed": ("", -_INF, _INF, 1e-3),
    # below these GSAS-II clips in silence
    "peak_position": ("deg", 0.0, 180.0, 1e-3),
    "peak_intensity": ("counts*deg", 0.001, _INF, -1e-3),
    "peak_gauss": ("deg", 0.0025, 90.0, 1e-4),
    "peak_lorentz": ("deg", 0.001, 90.0, 1e-4),
    "debye_amplitude": ("intensity", -_INF, _INF, 1.0),
    "debye_distance": ("angstrom", 0.5, 50.0, 1e-4),
    "debye_uiso": ("angstrom^2", 0.0, _INF, 1e-5),
    "zero": ("deg", -_INF, _INF, 1e-4),
    "wavelength": ("angstrom", 0.0, _INF, 1e-6),
    "ka2_ratio": ("", 0.0, _INF, 1e-3),
    "displacement": ("mm", -_INF, _INF, 1e-3),
    "transparency": ("", 0.0, _INF, 1e-5),
    "roughness": ("", 0.0, _INF, 1e-4),
    "offset_along": ("mm", -_INF, _INF, 1e-3),
    "offset_across": ("mm", -_INF, _INF, 1e-3),
    "absorption": ("", 0.0, 10.0, 1e-3),
    "U": ("deg^2", -_INF, _INF, 1e-5),
    "V": ("deg^2", -_INF, _INF, 1e-5),
    "W": ("deg^2", 0.0, _INF, 1e-5),
    "X": ("deg", 0.0, _INF, 1e-4),
    "Y": ("deg", 0.0, _INF, 1e-4),
    "Z": ("deg", -_INF, _INF, 1e-4),
    "S/L": ("", 0.001, 0.5, 1e-4),
    "H/L": ("", 0.001, 0.5, 1e-4),
    "a": ("angstrom", 0.5, _INF, 1e-5),
    "b": ("angstrom", 0.5, _INF, 1e-5),
    "c": ("angstrom", 0.5, _INF, 1e-5),
    "alpha": ("deg", 10.0, 170.0, 1e-4),
    "beta": ("deg", 10.0, 170.0, 1e-4),
    "gamma": ("deg", 10.0, 170.0, 1e-4),
    "size": ("deg", 0.0, _INF, 1e-4),
    "strain": ("deg", 0.0, _INF, 1e-4),
    "preferred_orientation": ("", 0.05, 20.0, 1e-3),
    "extinction": ("um^2", 0.0, _INF, 1e-4),
    "x": ("", -_INF, _INF, 1e-4),
    "y": ("", -_INF, _INF, 1e-4),
    "z": ("", -_INF, _INF, 1e-4),
    "occupancy": ("", 0.0, _INF, 1e-3),
    "uiso": ("angstrom^2", -_INF, _INF, 1e-4),
    "axial": ("deg", 0.0, _INF, 1e-4),
    # of the literal products of indices: see axg_broadening
    "stephens": ("1e-12/angstrom^4", -_INF, _INF, 1.0),
    "harmonic": ("", -10.0, 10.0, 1e-3),
    **dict.fromkeys(COMPONENTS, ("angstrom^2", -_INF, _INF, 1e-4)),
}
_STEPHENS = re.compile(r"S\d{3}")
_FLIGHT: dict[str, tuple[str, float, float, float]] = {
    "zero": ("us", -_INF, _INF, 1e-2),
    "difC": ("us/angstrom", 1.0, _INF, 1e-2),
    "difA": ("us/angstrom^2", -_INF, _INF, 1e-3),
    "difB": ("us*angstrom", -_INF, _INF, 1e-3),
    "alpha": ("angstrom/us", 1e-3, _INF, 1e-4),
    "beta-0": ("1/us", -_INF, _INF, 1e-5),
    "beta-1": ("angstrom^4/us", -_INF, _INF, 1e-5),
    "beta-q": ("angstrom^2/us", -_INF, _INF, 1e-5),
    "sig-0": ("us^2", -_INF, _INF, 1.0),
    "sig-1": ("us^2/angstrom^2", -_INF, _INF, 1.0),
    "sig-2": ("us^2/angstrom^4", -_INF, _INF, 1.0),
    "sig-q": ("us^2/angstrom", -_INF, _INF, 1.0),
    "X": ("us/angstrom", 0.0, _INF, 2e-2),
    "Y": ("us/angstrom^2", 0.0, _INF, 2e-2),
    "Z": ("us", -_INF, _INF, 2e-2),
    "size": ("us/angstrom^2", 0.0, _INF, 2e-2),
    "strain": ("us/angstrom", 0.0, _INF, 2e-2),
}
"""Widths of size go as d^2, of strain as d."""


def quantity_of(name: str) -> str:
    """Return the quantity that one of our parameters is, of one histogram or under its full name."""
    if name.startswith("histogram."):
        name = name.split(".", 2)[2]
    last = name.rsplit(".", 1)[-1]
    if not name.startswith("background."):
        return "stephens" if _STEPHENS.fullmatch(last) else "harmonic" if last.startswith("C_") else last
    part, _, key = last.partition("_")
    return f"{part.rstrip('0123456789')}_{key}" if key else "background_fixed" if last == "fixed" else "background"


def row_of(name: str, *, flight: bool) -> tuple[str, float, float, float]:
    """Return unit, lower limit, upper limit and step of a difference (negative: relative) of one of our parameters.

    Args:
        name: the parameter.
        flight: True for a state over the time of flight.
    """
    quantity = quantity_of(name)
    if flight and quantity == "axial":
        quantity = name.rsplit(".", 2)[-2]
    # angles of a cell share letters with nothing: alpha of a profile does with one of them
    own = flight and quantity in _FLIGHT and ".cell." not in name
    return _FLIGHT[quantity] if own else QUANTITIES[quantity]


def unit_of(name: str, *, flight: bool) -> str:
    """Return the unit of one of our parameters."""
    return row_of(name, flight=flight)[0]
