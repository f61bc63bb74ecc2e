"""Does a step that only widens lines leave the amounts alone? Asked where a phase gets another model of its widths."""

from __future__ import annotations

import math

from autoxrd.domain.action import Action
from autoxrd.domain.decision import GateCheck
from autoxrd.domain.state import FitState, PhaseSummary
from autoxrd.gates.policy_model import Policy
from autoxrd.gates.shapes import shape_of

__all__ = ["check_amounts", "fraction_uncertainty"]


def check_amounts(action: Action, parent: FitState, candidate: FitState, *, policy: Policy) -> GateCheck | None:
    """Return whether weight fractions stayed when widths got another model; None where the rule does not apply.

    How wide a line is says nothing of its area (Stephens 1999, doi:10.1107/S0021889898006001: the tensor describes
    widths alone). Where it moves an amount by more than mixtures of known composition are wrong by, it has taken up
    background, or lines of another phase.

    Code: ``amounts_moved``.
    """
    most, shape = policy.limits.broadening_moves_fraction, shape_of(action)
    if most == 0.0 or shape is None or shape.edit != "broadening":
        return None
    after = {phase.name: phase for phase in candidate.phases}
    moved = [(phase.name, _moved(phase, after[phase.name], policy)) for phase in parent.phases if phase.name in after]
    name, worst = max(moved, key=lambda item: item[1], default=("", 0.0))
    there = "" if not name else f"weight fraction of {name} moved by {worst:.1f} standard uncertainties of mixtures"
    failed = worst > most
    return GateCheck(
        rule="amounts",
        passed=not failed,
        codes=("amounts_moved",) if failed else (),
        measured=worst if math.isfinite(worst) else None,
        limit=most,
        text=f"{there}: widths say nothing of amounts" if failed else there,
    )


def _moved(before: PhaseSummary, after: PhaseSummary, policy: Policy) -> float:
    """Return by how much a fraction changed, in units of what mixtures of known composition are wrong by."""
    if before.weight_fraction is None or after.weight_fraction is None:
        return 0.0
    wrong_by = fraction_uncertainty(before.weight_fraction.value, policy.audit.fraction_error)
    change = abs(after.weight_fraction.value - before.weight_fraction.value)
    return change / wrong_by if wrong_by > 0.0 else 0.0


def fraction_uncertainty(fraction: float, at_one_half: float) -> float:
    """Return what mixtures of known composition are wrong by beside the fit, as a standard uncertainty.

    It goes as sqrt(w (1 - w)): a scale factor that is wrong moves a share near 0 or 1 less.

    Args:
        fraction: of the weight; beyond 0 and 1 nothing is left to be wrong.
        at_one_half: the uncertainty of one half, `audit.fraction_error` of a policy.
    """
    share = min(max(fraction, 0.0), 1.0)
    return 2.0 * at_one_half * math.sqrt(share * (1.0 - share))
