"""Reading patterns, instruments and structures; artifacts by SHA-256.

The public names load on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autoxrd.io.cif import read_structures
    from autoxrd.io.instruments import as_refined, as_two_theta, axis_of, read_instrument, resolve_instrument
    from autoxrd.io.naming import name_structures
    from autoxrd.io.patterns import read_pattern
    from autoxrd.io.quality import assess_pattern
    from autoxrd.io.wavelengths import instrument_from_anode, instrument_from_wavelengths

__all__ = [
    "as_refined",
    "as_two_theta",
    "assess_pattern",
    "axis_of",
    "instrument_from_anode",
    "instrument_from_wavelengths",
    "name_structures",
    "read_instrument",
    "read_pattern",
    "read_structures",
    "resolve_instrument",
]

_HOME = {
    "as_refined": "instruments",
    "as_two_theta": "instruments",
    "axis_of": "instruments",
    "assess_pattern": "quality",
    "instrument_from_anode": "wavelengths",
    "instrument_from_wavelengths": "wavelengths",
    "name_structures": "naming",
    "read_instrument": "instruments",
    "read_pattern": "patterns",
    "read_structures": "cif",
    "resolve_instrument": "instruments",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
