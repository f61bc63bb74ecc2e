"""Which metrics can an action's mechanism move, and what may it free? Look-ups in a policy's tables."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from autoxrd.domain.action import Action, ActionKind
from autoxrd.gates.histograms import bare_metric
from autoxrd.gates.metrics import GAIN_PREFIX
from autoxrd.gates.policy_model import Policy
from autoxrd.gates.selectors import Selector, covers, parse_parameter, parse_selector

__all__ = ["MORE_BACKGROUND", "family_allowed", "of_mechanism", "parsed_parameters", "phase_of_metric"]

MORE_BACKGROUND = "background.more"
"""What the next terms of a background would gain; an action of kind ``background_model`` that adds terms frees them."""

_PHASE_METRICS = (
    "position.cell.",
    "position.scatter.",
    "intensity.angle_trend.",
    "intensity.texture.",
    "intensity.scale.",
    "intensity.scatter.",
    "intensity.share.",
    "r_bragg.",
)


def parsed_parameters(action: Action) -> tuple[Selector, ...]:
    """Return the action's selectors that parse (preflight reports the others)."""
    return tuple(selector for text in action.parameters if (selector := parse_parameter(text)) is not None)


def phase_of_metric(metric: str) -> str | None:
    """Return the phase that a metric is about, None for one of the whole pattern."""
    for prefix in _PHASE_METRICS:
        if metric.startswith(prefix):
            return metric.removeprefix(prefix)
    return None


def family_allowed(family: str, kind: ActionKind, policy: Policy) -> bool:
    """Return whether an action of ``kind`` may free parameters of ``family`` (``atom.uiso``, ``phase.cell``, ...)."""
    for allowed in policy.releases.get(kind, ()):
        if allowed in ("*", family):
            return True
        if allowed.endswith(".*") and family.startswith(allowed[:-1]):
            return True
    return False


def of_mechanism(action: Action, metric: str, policy: Policy) -> bool:
    """Return whether the metric is one that this very action can move.

    The table gives the kind's metrics. Beyond it, a metric of one phase belongs only to an action on that phase,
    and a release gain only to the action that releases that selector.
    """
    histogram, bared = bare_metric(metric)
    # what a strain does to lines is what a cell does, and anisotropic displacements do what isotropic ones do
    meant = bared.replace(".strain_hydrostatic", ".cell").removesuffix("@anisotropic")
    if not any(fnmatchcase(meant, pattern) for pattern in policy.mechanisms.get(action.kind, ())):
        return False
    selectors = parsed_parameters(action)
    if histogram and not _touches(action, selectors, histogram):
        return False
    if bared == GAIN_PREFIX + MORE_BACKGROUND:
        return action.kind is ActionKind.BACKGROUND_MODEL and "terms" in action.settings
    if metric.startswith(GAIN_PREFIX) and action.kind is not ActionKind.JOINT:
        return _gain_is_released(metric.removeprefix(GAIN_PREFIX), selectors)
    phase = phase_of_metric(bared)
    phases = [selector.phase for selector in selectors if selector.phase]
    if phase is None or not phases:
        return True
    probe = Selector(kind="phase", quantity="scale", phase=phase)
    return any(covers(Selector(kind="phase", quantity="scale", phase=name), probe) for name in phases)


def _touches(action: Action, selectors: Sequence[Selector], histogram: str) -> bool:
    """Return whether an action changes something of a histogram: its own, or what all share."""
    if str(action.settings.get("histogram", "")) == histogram or (not selectors and not action.settings):
        return True
    return any(selector.of_sample or fnmatchcase(histogram, selector.histogram) for selector in selectors)


def _gain_is_released(text: str, selectors: Sequence[Selector]) -> bool:
    """Compare by meaning: either covers the other (``phase.P.uiso`` and ``phase.P.atom.O1.uiso``).

    What follows an ``@`` says how a selector would be freed: along an axis, by atoms of their own.
    """
    gained = parse_parameter(text.partition("@")[0])
    if gained is None:
        return False
    probe = parse_selector(gained.text)
    return any(covers(selector, probe) or covers(probe, selector) for selector in selectors)
