"""How does an action get a background that is estimated from the pattern? From the points that its parent state used.

The estimate is made here and not by an engine, so that both are given the same curve. It depends on nothing but the
points and the action's settings: a replay and another engine draw it again to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from autoxrd.agent.codec import arrays_of, load_arrays
from autoxrd.domain.pattern import AxisKind, FloatArray, Pattern
from autoxrd.domain.state import FitState
from autoxrd.engines.protocol import Edit, EngineResult
from autoxrd.errors import UserInputError
from autoxrd.gates.shapes import ESTIMATE
from autoxrd.science.baseline import Baseline, estimate_baseline
from autoxrd.store.artifacts import ArtifactStore

__all__ = [
    "Observed",
    "Seen",
    "estimated_again",
    "estimated_values",
    "observed_of_result",
    "observed_of_start",
    "seen_in",
]

TERMS = 3
"""Chebyshev terms that stay free beside an estimated curve where nothing else is asked for: level, slope and bend."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The points of a histogram that a state uses.

    Args:
        x: abscissa, shape (n,).
        y: observed intensity, shape (n,).
    """

    x: FloatArray
    y: FloatArray


Seen = Callable[[str], Observed]
"""Gives the points that a histogram has in the state that an action starts from; the name is empty for the only one."""


def seen_in(artifacts: ArtifactStore, state: FitState) -> Seen:
    """Return the points of a recorded state, by histogram; read when they are asked for."""

    def seen(histogram: str) -> Observed:
        arrays = arrays_of(load_arrays(artifacts.get(state.arrays)), histogram)
        return Observed(arrays["x"], arrays["y_obs"])

    return seen


def observed_of_result(result: EngineResult) -> Seen:
    """Return the points of a result, by histogram."""

    def seen(histogram: str) -> Observed:
        part = result.histograms[histogram] if result.histograms else result
        return Observed(part.x, part.y_obs)

    return seen


def observed_of_start(pattern: Pattern, settings: Mapping[str, Any]) -> Seen:
    """Return the points that a job's settings leave of its only pattern."""
    x = pattern.x
    lower, upper = settings.get("two_theta_limits") or (x[0], x[-1])
    used = (x >= lower) & (x <= upper)
    for first, last in settings.get("excluded_regions") or ():
        used &= ~((x >= first) & (x <= last))
    return lambda _histogram: Observed(x[used], pattern.y[used])


def estimated_values(settings: Mapping[str, Any], axis: AxisKind, seen: Seen) -> dict[str, Any]:
    """Return what an engine is told of an estimated background: its curve, its cost, the terms that stay free.

    Args:
        settings: of an action, with ``estimate``.
        axis: of its histogram.
        seen: the points that the parent state used.

    Raises:
        UserInputError: ``estimate_impossible``.
    """
    if axis is not AxisKind.TWO_THETA:
        text = "A background is estimated of patterns over 2theta only: take more terms, or another function."
        raise UserInputError("estimate_impossible", text)
    points = seen(str(settings.get("histogram", "")))
    asked = {"asked_deg": settings["wave_deg"]} if "wave_deg" in settings else {}
    told = _told(estimate_baseline(points.x, points.y, wave=asked.get("asked_deg")))
    return told | asked | {ESTIMATE: settings[ESTIMATE], "terms": settings.get("terms", TERMS)}


def estimated_again(edit: Edit, axis: AxisKind, seen: Seen) -> Edit:
    """Return an edit for another pattern: a background that was estimated is estimated from that one.

    Raises:
        UserInputError: ``estimate_impossible``.
    """
    if ESTIMATE not in edit.values:
        return edit
    settings = {key: edit.values[key] for key in (ESTIMATE, "terms")}
    if "asked_deg" in edit.values:
        settings["wave_deg"] = edit.values["asked_deg"]
    return Edit(edit.kind, estimated_values(settings, axis, seen))


def _told(found: Baseline) -> dict[str, Any]:
    x, y = np.asarray(found.x).tolist(), np.asarray(found.y).tolist()
    told = {"x_deg": tuple(x), "y": tuple(y), "wave_deg": found.wave, "parameters": found.parameters}
    return told | ({} if found.fwhm is None else {"fwhm_deg": found.fwhm})
