"""What must a reader know of the phases that were tried: absent ones, rivals, and why the others lost?"""

from __future__ import annotations

import math
from collections.abc import Iterator

from autoxrd.domain.action import ActionKind
from autoxrd.domain.state import FitState
from autoxrd.gates.metrics import read_metric
from autoxrd.planners.protocol import AttemptView, GraphView, JobContext
from autoxrd.planners.rules.phases import PhaseRules
from autoxrd.planners.rules.thresholds import Thresholds

__all__ = ["criterion_difference", "detection_limit", "phase_notes"]

Note = tuple[str, str]


def phase_notes(
    tip: str, view: GraphView, context: JobContext, thresholds: Thresholds, rules: PhaseRules
) -> tuple[Note, ...]:
    """Return (code, text) of what the search for phases found, codes ending in ``_ambiguous`` being warnings.

    Args:
        tip: the state that stands for the result.
        view: the graph.
        context: which phases are candidates.
        thresholds: of the information criterion.
        rules: of the phase search.
    """
    return (
        *_absent(tip, view, rules),
        *_tried(view, thresholds),
        *_never_tried(view.states[tip], view, context),
    )


def detection_limit(state: FitState, name: str, *, esds: float) -> float | None:
    """Return the weight fraction below which a phase would not be seen, None where it cannot be told.

    With the fraction proportional to scale times cell mass (Hill & Howard 1987, doi:10.1107/S0021889887086199), the
    scale at its limit of ``esds`` esd, the other phases as they are.
    """
    phase = next((p for p in state.phases if p.name == name), None)
    scale = next((p for p in state.parameters if p.name == f"phase.{name}.scale"), None)
    if phase is None or scale is None or phase.weight_fraction is None or not scale.esd or not scale.value > 0:
        return None
    fraction = phase.weight_fraction.value
    at_limit = fraction * esds * scale.esd / scale.value
    rest = 1.0 - fraction
    return at_limit / (rest + at_limit) if rest + at_limit > 0 else None


def _absent(tip: str, view: GraphView, rules: PhaseRules) -> Iterator[Note]:
    for attempt in view.path(tip):
        if attempt.action.kind is not ActionKind.REMOVE_PHASE:
            continue
        name = str(attempt.action.settings["phase"])
        parent = view.states[attempt.parent]
        presence = read_metric(parent, f"presence.{name}").value
        absent = read_metric(parent, f"absent_lines.{name}").value
        signs = []
        scale = next((p for p in parent.parameters if p.name == f"phase.{name}.scale"), None)
        if presence is not None:
            kind = "its scale was" if scale is None or scale.released else "a linear fit gives it a scale of"
            signs.append(f"{kind} {presence:.1f} times its standard uncertainty")
        if absent is not None:
            signs.append(f"{absent:.0%} of the intensity expected in lines of its own was not there")
        limit = detection_limit(parent, name, esds=rules.presence_esd)
        told = (
            f"less than {100 * limit:.2g} wt% of the crystalline part (three standard uncertainties)"
            if limit is not None
            else "no detection limit could be computed"
        )
        yield "phase_not_present", f"{name} is not present: {'; '.join(signs)}. It was removed; {told}."


def _tried(view: GraphView, thresholds: Thresholds) -> Iterator[Note]:
    """Tell what became of each rival and each addition that was refined."""
    for attempt in view.attempts:
        action = attempt.action
        if action.kind is not ActionKind.ADD_PHASE or attempt.candidate is None:
            continue
        name, old = str(action.settings["phase"]), str(action.settings.get("replaces", ""))
        parent, candidate = view.states[attempt.parent], view.states[attempt.candidate]
        difference = criterion_difference(candidate, parent, thresholds)
        figures = (
            f"Rwp {100 * candidate.quality.rwp:.2f} % against {100 * parent.quality.rwp:.2f} %, information criterion "
            f"{difference:+.1f}"
        )
        if old and abs(difference) < thresholds.rival_evidence:
            text = f"The data cannot tell {name} from {old} ({figures})"
            yield "phase_set_ambiguous", f"{text}; {_kept(attempt, name, old)} was kept."
        elif old:
            yield "phase_rival", f"{name} was refined in the place of {old} ({figures}): {_kept(attempt, name, old)}."
        elif attempt.accepted:
            yield "phase_added", f"{name} was added ({figures})."
        else:
            reasons = ", ".join(attempt.decision.reasons[:3])
            yield "phase_refused", f"{name} was tried beside the others and refused ({figures}; {reasons})."


def _kept(attempt: AttemptView, name: str, old: str) -> str:
    return name if attempt.accepted else old


def criterion_difference(first: FitState, second: FitState, thresholds: Thresholds) -> float:
    """Return the Bayesian information criterion of one state less that of another on the same points.

    Serial correlation of the residuals as in the choice of position models: chi^2 and the number of points are divided
    by the square of the esd inflation.
    """
    dilution = thresholds.serial_inflation**2
    scale = max(min(first.quality.gof, second.quality.gof) ** 2, 1e-12)
    points = math.log(max(first.quality.n_points / dilution, 2.0))
    return (first.quality.chi2 - second.quality.chi2) / scale / dilution + points * (
        first.quality.n_parameters - second.quality.n_parameters
    )


def _never_tried(state: FitState, view: GraphView, context: JobContext) -> Iterator[Note]:
    """Name the candidates of which the residual holds nothing."""
    met = {p.name for s in view.states.values() for p in s.phases}
    left = [name for name in context.candidates if name not in met]
    if left:
        shown = []
        for name in left:
            gain = read_metric(state, f"candidate.{name}").value
            shown.append(name if gain is None else f"{name} ({gain:.1%})")
        text = "Candidates that nothing in the residual asks for, with the share of chi^2 that each would take: "
        yield "candidates_left_out", f"{text}{', '.join(shown)}."
