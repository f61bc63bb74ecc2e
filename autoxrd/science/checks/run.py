"""All checks, in one order."""

from __future__ import annotations

from autoxrd.domain.state import Violation
from autoxrd.science.checks.amounts import check_amounts
from autoxrd.science.checks.atoms import check_atoms
from autoxrd.science.checks.cell import check_cell
from autoxrd.science.checks.common import Parameters
from autoxrd.science.checks.fit import check_fit
from autoxrd.science.checks.profile import check_background, check_profile
from autoxrd.science.inputs import FitArrays, MeasureContext

__all__ = ["check_all"]


def check_all(result: FitArrays, context: MeasureContext) -> tuple[Violation, ...]:
    """Return every violation of the refined state, hard ones first."""
    parameters = Parameters(result.parameters)
    found = check_fit(result, context.limits)
    for phase in result.phases:
        found += check_cell(phase, context.initial.get(phase.name), context.limits)
        found += check_atoms(phase, parameters, context.limits)
    found += check_profile(result, parameters, context)
    found += check_background(result, context.limits)
    found += check_amounts(result, parameters, context)
    return tuple(sorted(found, key=lambda v: v.severity == "soft"))
