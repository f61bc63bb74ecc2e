"""Which lines of a pattern does a set of candidates leave unexplained?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.matching.bank import Bank
from autoxrd.science.matching.search import MatchedSet
from autoxrd.science.matching.target import Axis, Target

_FREE = 0.3
"""Share of a line's height that the model, or its surroundings, may have where it stands."""

__all__ = ["LeftLine", "left_lines"]

_BESIDE_FWHM = 2.5
_Z = 4.0
"""Height over uncertainty (model error included) from which a bump counts as a line."""


@dataclass(frozen=True, slots=True)
class LeftLine:
    """A line that no member explains: its place, and its height over that of the pattern's highest line."""

    two_theta_deg: float
    relative_height: float


def _beside(rest: FloatArray, axis: Axis) -> FloatArray:
    """Return the higher of the values a few widths to both sides of each point, shape (g,)."""
    reach = np.maximum((_BESIDE_FWHM * axis.fwhm / axis.step).astype(int), 1)
    index = np.arange(rest.size)
    return np.asarray(np.maximum(rest[np.maximum(index - reach, 0)], rest[np.minimum(index + reach, rest.size - 1)]))


def left_lines(bank: Bank, target: Target, found: MatchedSet | None, *, most: int = 10) -> tuple[LeftLine, ...]:
    """Return the highest lines that a set leaves, highest first.

    Args:
        bank: the candidates.
        target: the pattern, at the set's shift.
        found: the set, None for no phase at all.
        most: number of lines.
    """
    members = found.members if found is not None else ()
    model = sum((m.scale * bank.moved(m.name, m.lag) for m in members), np.zeros_like(target.y))
    axis = bank.axis
    noise = 1.0 / np.sqrt(np.maximum(target.weight, 1e-300))
    # beside a calculated line a profile that is not quite right is no line, and neither is what is broad as a hump
    free = (target.weight > 0) & (model < _FREE * target.y) & (_beside(target.y - model, axis) < _FREE * target.y)
    rest = np.where(free, target.y - model, 0.0)
    points = np.maximum(axis.fwhm / axis.step, 1.0)
    z = rest / noise * np.sqrt(points)
    highest = max(float(target.y.max(initial=0.0)), 1e-300)
    lines = []
    for _ in range(most):
        at = int(np.argmax(np.where(z > _Z, rest, 0.0)))
        if not (z[at] > _Z and rest[at] > 0):
            break
        theta = np.arcsin(min(float(np.exp(np.deg2rad(axis.u[at]) / 2.0)), 1.0))
        lines.append(LeftLine(float(np.rad2deg(2.0 * theta)), float(rest[at] / highest)))
        rest = np.where(np.abs(axis.u - axis.u[at]) < 1.5 * axis.fwhm[at], 0.0, rest)
    return tuple(lines)
