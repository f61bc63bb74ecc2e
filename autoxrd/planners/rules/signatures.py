"""Do intensities at low angles get lost, and does a rough surface explain it?

Where a divergent beam is wider than the specimen at low angles, or its surface is rough, low-angle lines are weaker
than calculated. A fit makes up for it with displacement parameters that fall to zero and below, and scale factors with
them (Hill & Madsen 2002, Structure Determination from Powder Diffraction Data, section 6.4; Suortti 1972,
doi:10.1107/S0021889872009707).
"""

from __future__ import annotations

import math

from autoxrd.domain.instrument import Geometry, Radiation
from autoxrd.domain.state import FitState
from autoxrd.gates.metrics import GAIN_PREFIX
from autoxrd.planners.protocol import AttemptView, GraphView, JobContext
from autoxrd.planners.rules.memory import refused
from autoxrd.planners.rules.options import EQUAL_UISO

__all__ = ["ROUGHNESS", "low_angle_loss", "surface_argued"]

ROUGHNESS = "sample.roughness"
_CODE = "low_angle_intensity_loss"
_UISO = ".uiso"
_EQUAL = f"{_UISO}{EQUAL_UISO}"
_LOW_DEG, _HIGH_DEG = 25.0, 90.0
_TOLD = 0.1
"""Loss from which a mixture is warned: what it does to fractions is then as much as texture does."""


def surface_argued(state: str, view: GraphView) -> bool:
    """Return whether a rough surface explains intensities better than displacement parameters do.

    It has one parameter for the whole pattern. So it must gain more than one displacement parameter of any phase would,
    or these have gone to zero already.
    """
    features = view.states[state].features
    own = features.get(GAIN_PREFIX + ROUGHNESS)
    if own is None or not own.available or not own.value:
        return False
    rivals = [f.value or 0.0 for n, f in features.items() if n.startswith(GAIN_PREFIX) and n.endswith(_EQUAL)]
    return own.value > max(rivals, default=0.0) or bool(_fallen_phases(state, view))


def low_angle_loss(tip: str, view: GraphView, context: JobContext) -> tuple[str, str] | None:
    """Return the warning about intensities at low angles, None where nothing points at their loss.

    Args:
        tip: the state that stands for the result.
        view: the graph: is there a rough surface in the model? Or was a release of displacement parameters refused on
            the way to the result because they went to zero, and did no later step take it up?
        context: only reflection geometry with X-rays is asked.
    """
    instrument = context.instrument
    if instrument.radiation is not Radiation.XRAY or instrument.geometry is not Geometry.BRAGG_BRENTANO:
        return None
    several = len(view.states[tip].phases) > 1
    depth = next((p.value for p in view.states[tip].parameters if p.name == ROUGHNESS and p.released), 0.0)
    if depth > 0.0:
        lost = 1.0 - _kept(depth, _LOW_DEG) / _kept(depth, _HIGH_DEG)
        return (_CODE, _modelled(lost)) if several and lost > _TOLD else None
    found = _fallen_phases(tip, view)
    if not found:
        return None
    text = (
        f"Displacement parameters of {', '.join(sorted(found))} fall to zero when they are refined, and were held"
        " instead: lines at low angles are weaker against those at high angles than calculated. A beam wider than the"
        " specimen at low angles or a rough surface does that."
    )
    if several:
        text += " Weight fractions may be off by several percent."
    return (_CODE, text)


def _kept(depth: float, two_theta_deg: float) -> float:
    """Return the share of its intensity that a line keeps: Suortti's law with nothing that meets no layer."""
    return math.exp(-depth / math.sin(math.radians(0.5 * two_theta_deg)))


def _modelled(lost: float) -> str:
    return (
        f"Lines at {_LOW_DEG:g} degrees are weaker by {100 * lost:.0f} % against those at {_HIGH_DEG:g} than"
        " calculated, which was modelled as a rough surface. A beam wider than the specimen at low angles or a cover"
        " does much the same. Weight fractions of phases whose strong lines lie at different angles may"
        " be off by several percent."
    )


def _fallen_phases(tip: str, view: GraphView) -> set[str]:
    """Return the phases whose displacement parameters went to zero and were refused, and not freed since."""
    tried = [a for a in refused(tip, view) if a.candidate in view.states]
    released = view.states[tip].released
    return {phase for a in tried for phase in _fallen(a, view) if not _taken_up(phase, released)}


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
