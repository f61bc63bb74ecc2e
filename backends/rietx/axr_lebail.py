"""Profile matching: per-reflection intensities that the data ask for, with the model's positions and shapes.

rietx's own partition (Le Bail, Duroy & Fourquet 1988, doi:10.1016/0025-5408(88)90019-0) takes the
net intensity of every point no lower than zero. In the wide windows of Lorentzian lines that counts the
upper half of the noise as intensity: on a simulated pattern its fit was worse than the true structure's
(GoF 1.35 against 1.02). The intensities enter linearly, so they are solved for here as Pawley (1981,
doi:10.1107/S0021889881009618) does: weighted least squares, none below zero, coincident lines sharing
equally.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from axr_partition import Intensities, best_intensities, solve_nonnegative
from axr_private import compiled, table_of
from axr_private_match import (
    carry_intensities,
    extract_intensities,
    intensities_of,
    reflection_profiles,
    set_intensities,
)
from axr_state import State
from axr_wire import Refused
from rietx.refine import mode_fixed_path
from scipy.sparse import csc_array

__all__ = ["Matched", "match_intensities", "matched_at", "matched_model", "partitioned", "tellable"]

MOST = 4000
"""Most reflections of a profile match; the normal matrix is dense."""
_INTENSITY = re.compile(r"phases\.\d+\.(extinction|preferred_orientation\..*)|.*\.surface_roughness\..*")


def tellable(paths: Iterable[str]) -> list[str]:
    """Return the columns that a profile match can tell; for structure, scale and the like its intensities stand."""
    return [path for path in paths if not mode_fixed_path(path, "lebail") and not _INTENSITY.fullmatch(path)]


@dataclass(frozen=True)
class Matched:
    """A model at some values whose intensities are the data's.

    Args:
        profiles: of all reflections over sigma, shape (n, r).
        strengths: intensity of each, shape (r,).
    """

    profiles: csc_array
    strengths: np.ndarray

    @property
    def active(self) -> np.ndarray:
        """Return which reflections have an intensity, shape (r,), bool."""
        return np.asarray(self.strengths > 0.0)

    @property
    def intensities(self) -> Intensities:
        """Return what the free intensities are in the least squares."""
        return Intensities(csc_array(self.profiles[:, self.active]))


def matched_at(model: Any, values: dict[str, float], near: np.ndarray | None = None) -> Matched:
    """Put the intensities that fit best at some values into a compiled model.

    Args:
        model: for profile matching.
        values: every value by rietx path.
        near: which reflections have an intensity at values nearby, shape (r,), bool.

    Raises:
        Refused: there are too many reflections.
    """
    profiles = _weighted(model, reflection_profiles(model, values))
    strengths = best_intensities(profiles, (model.y_obs - model.background(values)) / model.sigma, near)
    set_intensities(model, strengths)
    return Matched(profiles, strengths)


def matched_model(state: State, model: Any) -> Matched:
    """Put a state's intensities into a model of its lines, which may be one of fewer points."""
    carry_intensities(state.reflections, model)
    table = table_of(state.structure, state.instrument)
    profiles = _weighted(model, reflection_profiles(model, table.decode(table.x0())))
    return Matched(profiles, intensities_of(model))


def _weighted(model: Any, shapes: csc_array) -> csc_array:
    if shapes.shape[1] > MOST:
        text = f"{shapes.shape[1]} reflections are too many for a profile match."
        raise Refused("input", "too_many_reflections", text)
    return csc_array(shapes.multiply((1.0 / model.sigma)[:, None]))


def partitioned(state: State) -> State:
    """Return the state with intensities that fit nearly best: what a side measurement needs, in fewer rounds.

    Raises:
        Refused: there are too many reflections.
    """
    model = compiled(state.structure, state.instrument, state.pattern(), mode="lebail", limits=state.limits)
    table = table_of(state.structure, state.instrument)
    values = table.decode(table.x0())
    profiles = _weighted(model, reflection_profiles(model, values))
    target = (model.y_obs - model.background(values)) / model.sigma
    set_intensities(model, np.maximum(solve_nonnegative(profiles, target, profiles.shape[1]), 0.0))
    return replace(state, reflections=extract_intensities(model))


def match_intensities(state: State) -> State:
    """Return the state with the intensities that fit best.

    Raises:
        Refused: there are too many reflections.
    """
    model = compiled(state.structure, state.instrument, state.pattern(), mode="lebail", limits=state.limits)
    table = table_of(state.structure, state.instrument)
    matched_at(model, table.decode(table.x0()))
    return replace(state, reflections=extract_intensities(model))
