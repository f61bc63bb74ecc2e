"""What is an internal standard: a phase of the specimen whose amount was weighed."""

from __future__ import annotations

from dataclasses import dataclass

from autoxrd.errors import UserInputError

__all__ = ["AMORPHOUS", "AMORPHOUS_LEVERAGE", "AMORPHOUS_WITHOUT_STANDARD", "InternalStandard", "absolute_name"]

AMORPHOUS = "sample.amorphous_weight_fraction"
"""Name of the derived quantity: share of the specimen, by weight, that no phase of the model accounts for."""

AMORPHOUS_WITHOUT_STANDARD = "sample.amorphous_without_standard"
"""The same of the sample as it was before the standard was mixed in."""

AMORPHOUS_LEVERAGE = "sample.amorphous_leverage"
"""By how much `AMORPHOUS` moves for an error of the standard's refined weight fraction, as a factor."""


def absolute_name(phase: str) -> str:
    """Return the name of a phase's weight fraction of the whole specimen, as a derived quantity."""
    return f"phase.{phase}.absolute_weight_fraction"


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
