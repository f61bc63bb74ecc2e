"""Did the least squares end well? Convergence, dropped parameters, bounds, esds."""

from __future__ import annotations

from autoxrd.domain.state import ParameterValue, Violation
from autoxrd.science.checks.common import finite, violation
from autoxrd.science.inputs import FitArrays
from autoxrd.science.settings import Limits

__all__ = ["check_fit"]


def check_fit(result: FitArrays, limits: Limits) -> list[Violation]:
    """Return ``not_converged``, ``parameter_dropped``, ``at_bound`` and ``esd_missing``; all hard."""
    found = []
    ended = result.convergence
    if not ended.converged:
        found.append(
            violation(
                "not_converged",
                "fit",
                f"The least squares did not converge in {ended.cycles} cycles ({ended.status or 'no reason given'}).",
                value=ended.max_shift_over_esd,
            )
        )
    found += [violation("parameter_dropped", n, f"{n} was held as singular or unsupported.") for n in ended.dropped]
    for parameter in result.parameters:
        if not parameter.released or parameter.derived:
            continue
        found += _bound(parameter, limits)
        if parameter.name not in ended.dropped and (not finite(parameter.esd) or (parameter.esd or 0.0) <= 0):
            found.append(
                violation("esd_missing", parameter.name, f"{parameter.name} is refined without a finite uncertainty.")
            )
    return found


def _bound(parameter: ParameterValue, limits: Limits) -> list[Violation]:
    """A wide box says nothing of how near its edge a value is: the edge's own size and the esd are the measure."""
    for edge, label in ((parameter.lower, "lower"), (parameter.upper, "upper")):
        if edge is None or not finite(edge):
            continue
        esd = (parameter.esd or 0.0) if finite(parameter.esd) else 0.0
        # an esd as wide as the box is a fault of its own, not nearness to an edge
        near = min(limits.bound_esds * esd, limits.bound_esds * _width(parameter))
        if abs(parameter.value - edge) <= max(limits.bound_relative * abs(edge), near):
            text = f"{parameter.name} = {parameter.value:.6g} lies at its {label} bound {edge:.6g}."
            return [violation("at_bound", parameter.name, text, value=parameter.value, limit=edge)]
    return []


def _width(parameter: ParameterValue) -> float:
    if finite(parameter.lower) and finite(parameter.upper):
        return (parameter.upper or 0.0) - (parameter.lower or 0.0)
    return float("inf")
