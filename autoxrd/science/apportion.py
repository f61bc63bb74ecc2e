"""How much of the observed intensity belongs to each reflection? Rietveld's apportionment and R_Bragg.

Each channel's observed net intensity is shared among the reflections in the proportion of what they calculate there
(Rietveld 1969, doi:10.1107/S0021889869006558; Hill & Madsen 1987, doi:10.1017/S0885715600011916). The calculated
curve is shared in the same way on the same windows, so that tails cut off cancel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import sum_by
from autoxrd.science.frame import Frame

__all__ = ["Apportioned", "apportion", "r_bragg"]


@dataclass(frozen=True, slots=True)
class Apportioned:
    """Intensities by reflection, unit of area, arrays of shape (r,)."""

    observed: FloatArray
    calculated: FloatArray


def apportion(frame: Frame) -> Apportioned:
    """Share observed and calculated net intensity among the reflections of a frame."""
    windows, value = frame.line_windows, frame.curves.line_value
    point = windows.point
    # what a unit of each line's own curve is worth at each channel
    unit = frame.step / np.maximum(np.maximum(frame.net_calc, frame.totals.value), 1e-300)
    count = int(frame.reflections.position.size)
    filled = np.flatnonzero(windows.length)
    reflection, start = frame.lines.reflection[filled], windows.start[filled]

    def summed(curve: FloatArray) -> FloatArray:
        elements = curve[point]
        elements *= value
        lines = np.add.reduceat(elements, start) if start.size else elements
        return sum_by(reflection, lines, count)

    return Apportioned(observed=summed(unit * frame.net_obs), calculated=summed(unit * frame.net_calc))


def r_bragg(frame: Frame, shared: Apportioned, n_phases: int) -> list[float | None]:
    """Return sum|Iobs - Icalc| / sum Iobs of each phase, a fraction; None where nothing is observed."""
    out: list[float | None] = []
    for index in range(n_phases):
        own = frame.reflections.phase == index
        total = float(np.sum(shared.observed[own]))
        difference = float(np.sum(np.abs(shared.observed[own] - shared.calculated[own])))
        out.append(difference / total if total > 0 else None)
    return out
