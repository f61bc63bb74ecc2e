"""What is a standard: a phase that was weighed or has a certified cell, or a specimen apart that was measured alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from autoxrd.errors import UserInputError

__all__ = [
    "AMORPHOUS",
    "AMORPHOUS_LEVERAGE",
    "AMORPHOUS_WITHOUT_STANDARD",
    "MASS_ABSORPTION",
    "ExternalStandard",
    "InternalStandard",
    "KnownCell",
    "Standard",
    "absolute_name",
    "read_known_cell",
]

AMORPHOUS = "sample.amorphous_weight_fraction"
"""Name of the derived quantity: share of the specimen, by weight, that no phase of the model accounts for."""

AMORPHOUS_WITHOUT_STANDARD = "sample.amorphous_without_standard"
"""The same of the sample as it was before the standard was mixed in."""

AMORPHOUS_LEVERAGE = "sample.amorphous_leverage"
"""By how much `AMORPHOUS` moves for an error of the standard's refined weight fraction, as a factor.

With an external standard: for a relative error of its constant or of the mass absorption.
"""

MASS_ABSORPTION = "sample.mass_absorption"
"""The specimen's mass absorption coefficient that an external standard was evaluated with, cm2/g; else not there."""


def absolute_name(phase: str) -> str:
    """Return the name of a phase's weight fraction of the whole specimen, as a derived quantity."""
    return f"phase.{phase}.absolute_weight_fraction"


@dataclass(frozen=True, slots=True)
class KnownCell:
    """A phase whose cell is certified: it is held, and what moves lines in the instrument is fitted to it.

    Args:
        phase: its name in the job.
        values: the cell parameters that its symmetry leaves free, in the order a b c alpha beta gamma, angstrom and
            degrees; none takes the cell of its structure file.
    """

    phase: str
    values: tuple[float, ...] = ()


def read_known_cell(text: str, *, called: str) -> KnownCell:
    """Read ``PHASE`` or ``PHASE=VALUE,...``: the free cell parameters, angstrom and degrees.

    Args:
        text: as typed.
        called: what the place is called where it was typed, to begin a sentence with.

    Raises:
        UserInputError: ``known_cell_invalid``.
    """
    name, equals, numbers = text.strip().partition("=")
    try:
        values = tuple(float(part) for part in numbers.split(",")) if equals else ()
    except ValueError:
        name, values = "", ()
    if not name.strip() or not all(math.isfinite(value) and value > 0.0 for value in values):
        raise UserInputError(
            "known_cell_invalid",
            f"{called} needs a phase, and numbers where its file's cell is not the certified one, as in Si or "
            f"Si=5.43109 or corundum=4.7591,12.9917; got {text.strip()[:80]!r}.",
        )
    return KnownCell(name.strip(), values)


@dataclass(frozen=True, slots=True)
class InternalStandard:
    """A phase of known amount.

    Args:
        phase: its name in the job.
        weight_fraction: of the whole specimen, as weighed, above 0 and below 1.
        crystallinity: share of the standard that diffracts, above 0 and at most 1.

    Raises:
        UserInputError: ``standard_invalid``, a number is out of its range.
    """

    phase: str
    weight_fraction: float
    crystallinity: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.weight_fraction < 1.0:
            raise UserInputError(
                "standard_invalid",
                f"The standard's share must be above 0 and below 100 % by weight, not {100 * self.weight_fraction:g}.",
            )
        if not 0.0 < self.crystallinity <= 1.0:
            raise UserInputError(
                "standard_invalid",
                f"The standard's crystallinity must be above 0 and at most 100 %, not {100 * self.crystallinity:g}.",
            )

    @property
    def crystalline_fraction(self) -> float:
        """Share of the specimen that is crystalline standard."""
        return self.weight_fraction * self.crystallinity


@dataclass(frozen=True, slots=True)
class ExternalStandard:
    """A specimen of known crystallinity that was measured and refined apart, under the same conditions.

    It fixes the constant G by which a phase's scale factor stands for weight: W = S rho V^2 mu / G, with the specimen's
    mass absorption coefficient mu (O'Connor & Raven 1988, doi:10.1017/S0885715600013026).

    Args:
        phases: what the standard's job refined.
        constant: G, in the unit of the engine's scale factors, cm2/g and angstrom.
        constant_esd: of the standard's fit; None where it gives none.
        volume_power: power of the cell volume by which the engine's S m V^p counts mass.
        crystallinity: share of the standard that diffracts.
        mass_absorption_cm2_g: of the standard.
        intensity_ratio: counting time times incident intensity of the specimen over those of the standard.
        intensity_origin: who says so: ``given``, the ``files``, or nobody (``assumed`` to be 1).
        phase_absorption_cm2_g: of each phase of the specimen by name; empty where ``sample_absorption_cm2_g`` is known.
        sample_absorption_cm2_g: of the specimen; None: what the refined crystalline phases have.
        absorption_origin: ``given``, from a ``composition``, or that of the ``phases``.
        composition: the specimen's, as given.
        wavelengths_angstrom: of both measurements.
        source: of the standard's job: ``graph_root``, ``state``, ``pattern``, ``pattern_sha256``, ``engine``,
            ``engine_version``, ``verdict``.
    """

    phases: tuple[str, ...]
    constant: float
    constant_esd: float | None
    volume_power: int
    crystallinity: float
    mass_absorption_cm2_g: float
    intensity_ratio: float = 1.0
    intensity_origin: Literal["given", "files", "assumed"] = "assumed"
    phase_absorption_cm2_g: Mapping[str, float] = field(default_factory=dict)
    sample_absorption_cm2_g: float | None = None
    absorption_origin: Literal["given", "composition", "phases"] = "phases"
    composition: str = ""
    wavelengths_angstrom: tuple[float, ...] = ()
    source: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What the standard is, for a sentence."""
        return " + ".join(self.phases)


Standard = InternalStandard | ExternalStandard
"""What gives the fractions of the whole specimen."""
