"""How far is a fit from what was expected: its strongest line without a cause, its cells beside those given?"""

from __future__ import annotations

from autoxrd.domain.state import Feature
from autoxrd.science.features import plain, unavailable
from autoxrd.science.frame import Frame
from autoxrd.science.inputs import FitArrays, MeasureContext
from autoxrd.science.unexplained import Unexplained

__all__ = ["cell_changes", "strongest_unexplained"]

_LENGTHS = ("a", "b", "c")


def strongest_unexplained(frame: Frame, unexplained: Unexplained) -> Feature:
    """Return the area of the strongest unexplained line over that of the strongest calculated one."""
    if not unexplained.feature.available:
        return unavailable(unexplained.feature.reason)
    calculated = float(frame.peaks.area.max(initial=0.0))
    if calculated <= 0:
        return unavailable("nothing is calculated")
    area = max((peak.area for peak in unexplained.peaks), default=0.0)
    return plain(area / calculated, n_used=len(unexplained.peaks))


def cell_changes(result: FitArrays, context: MeasureContext) -> dict[str, Feature]:
    """Return ``cell_change.PHASE``: the largest relative change of a cell length since the structure was read."""
    found = {}
    for phase in result.phases:
        given = context.initial.get(phase.name)
        if given is None:
            continue
        lengths = [(getattr(given.cell, key), phase.cell[key].value) for key in _LENGTHS if key in phase.cell]
        found[f"cell_change.{phase.name}"] = plain(max((abs(b / a - 1.0) for a, b in lengths), default=0.0))
    return found
