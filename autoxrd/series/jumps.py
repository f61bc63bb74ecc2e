"""Has something happened between two neighbours, so that the model of the one is no start for the other?"""

from __future__ import annotations

from dataclasses import dataclass

from autoxrd.report.series_model import PatternRow

__all__ = ["JumpLimits", "jumps"]


@dataclass(frozen=True, slots=True)
class JumpLimits:
    """From which change on a pattern is refined from the structures too.

    Args:
        unexplained_rise: of the unexplained-peak ratio: what the gate allows a single step (`limits.unexplained_rise`).
        misfit_rise: of the share of the signal that noise does not explain. Judgement: a fit from the structures is
            cheap beside a wrong trend, so that the limit stands low.
        misfit_factor: the same as a factor, so that a series that fits badly all along is not restarted everywhere.
        cell_change: relative, of a cell length. Thermal expansion of ordinary solids is below 3e-5 per kelvin: this
            is 150 K between neighbours, or a transition.
        worth: by how much the policy's utility has to be better from the structures than from the neighbour, where both
            are accepted: as much as ten parameters cost by the default policy.
    """

    unexplained_rise: float = 0.02
    misfit_rise: float = 0.02
    misfit_factor: float = 1.5
    cell_change: float = 0.005
    worth: float = 0.02


def jumps(before: PatternRow, after: PatternRow, limits: JumpLimits | None = None) -> list[str]:
    """Return the codes of what jumped from an accepted neighbour to a pattern that was started from it."""
    limits = limits or JumpLimits()
    found: list[str] = [] if after.accepted else [after.verdict]
    q_before, q_after = before.unexplained_peak_ratio or 0.0, after.unexplained_peak_ratio or 0.0
    if q_after - q_before > limits.unexplained_rise:
        found.append("unexplained_jump")
    if before.misfit is not None and after.misfit is not None:
        rise = after.misfit - before.misfit
        if rise > limits.misfit_rise and after.misfit > limits.misfit_factor * before.misfit:
            found.append("misfit_jump")
    earlier, later = ({p.name: p for p in row.phases if p.seen} for row in (before, after))
    found += ["phase_vanished"] if set(earlier) - set(later) else []
    found += ["phase_appeared"] if set(later) - set(earlier) else []
    for name in sorted(set(earlier) & set(later)):
        was, now = earlier[name].cell, later[name].cell
        if any(abs(now[k].value / was[k].value - 1.0) > limits.cell_change for k in ("a", "b", "c")):
            found.append("cell_jump")
            break
    return found
