"""Which effect that no model part describes do the refused steps point at?

Where a divergent beam is wider than the specimen at low angles, or its surface is rough, low-angle lines are weaker
than calculated. A fit makes up for it with displacement parameters that fall to zero and below, and scale factors with
them (Hill & Madsen 2002, Structure Determination from Powder Diffraction Data, section 6.4; Suortti 1972,
doi:10.1107/S0021889872009707).
"""

from __future__ import annotations

from autoxrd.domain.instrument import Geometry, Radiation
from autoxrd.domain.state import FitState
from autoxrd.planners.protocol import AttemptView, GraphView, JobContext
from autoxrd.planners.rules.memory import refused

__all__ = ["low_angle_loss"]

_UISO = ".uiso"


def low_angle_loss(tip: str, view: GraphView, context: JobContext) -> tuple[str, str] | None:
    """Return the warning about intensities at low angles, None where nothing points at their loss.

    Args:
        tip: the state that stands for the result.
        view: the graph: was a release of displacement parameters refused on the way to the result because they went to
            zero, and did no later step take it up?
        context: only reflection geometry with X-rays is asked.
    """
    instrument = context.instrument
    if instrument.radiation is not Radiation.XRAY or instrument.geometry is not Geometry.BRAGG_BRENTANO:
        return None
    tried = [a for a in refused(tip, view) if a.candidate in view.states]
    released = view.states[tip].released
    found = {phase for a in tried for phase in _fallen(a, view) if not _taken_up(phase, released)}
    if not found:
        return None
    names = ", ".join(sorted(found))
    text = (
        f"Displacement parameters of {names} fall to zero when they are refined, and were held instead: lines at low"
        " angles are weaker against those at high angles than calculated. A beam wider than the specimen at low angles"
        " or a rough surface does that."
    )
    if len(view.states[tip].phases) > 1:
        text += " Weight fractions may be off by several percent."
    return ("low_angle_intensity_loss", text)


def _fallen(attempt: AttemptView, view: GraphView) -> set[str]:
    """Return the phases whose displacement parameters a refused candidate has at their lower limit."""
    candidate: FitState = view.states[str(attempt.candidate)]
    lower = {
        p.name for p in candidate.parameters if p.name.endswith(_UISO) and p.lower is not None and p.value <= p.lower
    }
    at_bound = {v.subject for v in candidate.violations if v.code == "at_bound"}
    return {name.split(".")[1] for name in lower & at_bound}


def _taken_up(phase: str, released: tuple[str, ...]) -> bool:
    return any(name.startswith(f"phase.{phase}.") and name.endswith(_UISO) for name in released)
