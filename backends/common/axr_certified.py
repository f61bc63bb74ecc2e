"""Whose cell is certified? A phase that fixes the scale of lengths, and what that makes of what else is uncertain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from axr_marginal import wavelength_spread
from axr_rows import derived_row
from axr_wire import Refused

__all__ = ["ASKED", "FAR", "asked_rows", "known_cells", "of_certified", "scale_spread"]

ASKED = ".asked"
"""End of the name of a derived quantity: the cell parameter that the lines of a phase of certified cell ask for, were
it let go beside zero offset, displacement and all else that is not known exactly."""
FAR = 0.01
"""Relative prior deviation of a certified cell that is let go: no prior at all."""
_TELLING = 1e-3
"""Relative standard deviation beyond which the lines do not say which cell they ask for: a wavelength or DIFC that is
free takes up whatever only scales."""

_Row = dict[str, Any]
_DIFC = 3e-4
"""Relative standard deviation of a DIFC that a calibration file states: measured 2.7e-4 (POWGEN, NAC against 11-BM)."""


def known_cells(settings: dict[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return the phases whose cell is certified, as the settings of ``prepare`` name them.

    Raises:
        Refused: there is no such phase.
    """
    given = tuple(str(name) for name in settings.get("known_cells") or ())
    for name in given:
        if name not in names:
            raise Refused("input", "setting_invalid", f"known_cells names {name!r}, which is no phase.")
    return given


def of_certified(name: str, phases: Sequence[str]) -> bool:
    """Return whether a parameter of ours is of a certified cell."""
    found = re.fullmatch(r"phase\.([^.]+)\.cell\..*", name)
    return found is not None and found[1] in phases


def asked_rows(names: Sequence[str], values: Mapping[str, float], asked: Sequence[tuple[float, float]]) -> list[_Row]:
    """Return what the lines ask for as derived quantities, where they ask for something.

    Args:
        names: of the certified cell parameters.
        values: every number by name, in our unit.
        asked: shift and standard deviation of each, in our unit.
    """
    return [
        derived_row(name + ASKED, values[name] + shift, sure, "angstrom" if name[-2:] in (".a", ".b", ".c") else "deg")
        for name, (shift, sure) in zip(names, asked, strict=False)
        if sure < _TELLING * abs(values[name])
    ]


def scale_spread(name: str, value: float) -> float | None:
    """Return the standard deviation of what lengths go with, in its unit: a wavelength, DIFC; None of anything else.

    Where a certified cell is there they are like all else that moves lines: held, and let go.
    """
    if name == "instrument.wavelength":
        return wavelength_spread(value) * value
    return _DIFC * value if name == "instrument.difC" else None
