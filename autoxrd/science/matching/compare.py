"""What would tell two candidates apart? Lines that one has and the other has not, or has with another intensity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autoxrd.science.matching.bank import Bank

__all__ = ["Contrast", "contrasts"]

_REACH_FWHM = 1.0
_RESOLVED = 0.05


@dataclass(frozen=True, slots=True)
class Contrast:
    """A place where two candidates differ, both scaled to their strongest lines.

    Args:
        two_theta_deg: where, shifts left out.
        first, second: height relative to the highest of each pattern.
    """

    two_theta_deg: float
    first: float
    second: float


def contrasts(bank: Bank, first: str, second: str, *, most: int = 3) -> tuple[Contrast, ...]:
    """Return the places where two candidates differ most, the second one's cell moved to look like the first.

    Args:
        bank: the candidates.
        first: name of the one that is the measure.
        second: name of the other.
        most: number of places.

    Returns:
        Largest difference first; empty where no line differs by a twentieth of the strongest.
    """
    one = bank.shapes[first]
    match = bank.match(second, bank.spectra_of(one))
    two = match.scale * bank.moved(second, match.lag)
    top = max(float(one.max(initial=0.0)), 1e-300)
    difference = np.abs(one - two) / top
    axis, found = bank.axis, []
    for _ in range(most):
        at = int(np.argmax(difference))
        if difference[at] < _RESOLVED:
            break
        theta = np.arcsin(min(float(np.exp(np.deg2rad(axis.u[at]) / 2.0)), 1.0))
        found.append(Contrast(float(np.rad2deg(2.0 * theta)), float(one[at] / top), float(two[at] / top)))
        difference[np.abs(axis.u - axis.u[at]) < _REACH_FWHM * 2.0 * axis.fwhm[at]] = 0.0
    return tuple(found)
