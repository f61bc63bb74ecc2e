"""When is a broad peak asked for in the background, and how is that written down?

In the place of further terms of its function: where what stands between the lines is one broad maximum, and it gains
clearly more per parameter.
"""

from __future__ import annotations

import math

from autoxrd.domain.action import Action, Bound, Evidence, Prediction
from autoxrd.domain.state import FitState
from autoxrd.gates.metrics import GAIN_PREFIX
from autoxrd.gates.tables import MORE_BACKGROUND
from autoxrd.planners.protocol import JobContext
from autoxrd.planners.rules.catalogue import HALO, Rule
from autoxrd.planners.rules.options import Option, pays
from autoxrd.planners.rules.thresholds import Thresholds

__all__ = ["halo_action", "halo_options"]

POSITION, WIDTH = "background.halo_position", "background.halo_width"
_NUMBERS = 3
_ROOM = 3.0
"""Factor by which a width may grow or shrink from where it was seen; a place may move by one width."""


def halo_options(rule: Rule, state: FitState, context: JobContext, thresholds: Thresholds) -> list[Option]:
    """Return the broad peak that the residual between the lines shows, where it clearly beats further terms.

    Of several histograms none: what one shows is a share of its own chi^2, what its terms gain is one of the whole.
    """
    if context.histograms:
        return []
    seen, more = state.features.get(HALO), state.features.get(GAIN_PREFIX + MORE_BACKGROUND)
    unknown = state.features.get("unexplained_peak_ratio")
    if seen is None or more is None or seen.value is None or more.value is None or "background" not in state.released:
        return []
    if unknown is None or unknown.value is None or unknown.value > thresholds.halo_unexplained:
        return []
    if seen.value < thresholds.halo_share:
        return []
    per_term = more.value / max(more.n_used or 1, 1)
    if seen.value / _NUMBERS < thresholds.halo_over_terms * per_term or _humps(state) >= thresholds.most_humps:
        return []
    slow = state.features.get("background.slow")
    if slow is None or not slow.value or slow.value < 0.0:
        return []
    if not pays(seen.value, _NUMBERS, state, context, thresholds):
        return []
    return [Option(rule, (HALO,), (seen.value,), _NUMBERS)]


def _humps(state: FitState) -> int:
    """Return how many broad peaks the background has."""
    return sum(p.name.startswith("background.peak") and p.name.endswith("_position") for p in state.parameters)


def halo_action(option: Option, state: FitState, state_id: str, thresholds: Thresholds) -> Action:
    """Write the action: place and width as seen, limits around them, and what has to fall.

    Args:
        option: of :func:`halo_options`.
        state: the state that it starts from.
        state_id: its id.
        thresholds: numbers of judgement.
    """
    share = option.gains[0]
    place, width = (float(state.features[name].value or 0.0) for name in (POSITION, WIDTH))
    slow = float(state.features["background.slow"].value or 0.0)
    more = state.features[GAIN_PREFIX + MORE_BACKGROUND]
    beaten = _NUMBERS * thresholds.halo_over_terms * float(more.value or 0.0) / max(more.n_used or 1, 1)
    peak = f"background.peak{_humps(state) + 1}"
    fall = state.quality.rwp * (1.0 - math.sqrt(1.0 - min(share, 0.999)))
    why = option.rule.why
    text = (
        f"{why[0].upper()}{why[1:]}, at {place:.1f} deg and {width:.1f} deg wide. It promises to lower chi^2 by "
        f"{100 * share:.2g} % with {_NUMBERS} parameters, the next {more.n_used} terms of the background by "
        f"{100 * (more.value or 0.0):.2g} %. Rule: {option.rule.name}; {option.rule.source}."
    )
    claims = ((HALO, share, beaten), ("background.slow", slow, 0.5 * slow))
    return Action(
        kind=option.rule.kind,
        stage=option.rule.stage,
        parameters=(),
        bounds=(
            Bound(selector=f"{peak}_position", lower=place - width, upper=place + width),
            Bound(selector=f"{peak}_gauss", lower=width / _ROOM, upper=width * _ROOM),
        ),
        settings={"position_deg": place, "width_deg": width, "shape": "gauss"},
        rationale=text,
        evidence=tuple(
            Evidence(feature=name, value=value, comparison=">", threshold=least, source=state_id)
            for name, value, least in claims
        ),
        predictions=(
            Prediction(
                metric="background.slow",
                direction="decrease",
                minimum_effect=thresholds.fraction_promised * min(share, slow),
            ),
            Prediction(metric="rwp", direction="decrease", minimum_effect=thresholds.fraction_rwp * fall),
        ),
        parent=state_id,
    )
