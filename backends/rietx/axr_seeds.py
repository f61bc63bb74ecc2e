"""Starting values of rietx's models: background, and scale factors that the data ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import rietx as rx
from axr_curves import match_factors
from axr_private import compiled, table_of
from axr_state import State

__all__ = ["background_model", "chebyshev_of", "seed_scales"]


def chebyshev_of(background: Any) -> Any:
    """Return the Chebyshev polynomial of rietx's background, which may stand beside a fixed curve."""
    return background.chebyshev if isinstance(background, rx.BackgroundFixedPlusChebyshev) else background


def background_model(coefficients: np.ndarray, like: Any = None) -> Any:
    """Return rietx's Chebyshev background with these coefficients.

    Args:
        coefficients: shape (terms,).
        like: a background whose fixed curve is kept, if it has one.
    """
    terms = rx.BackgroundChebyshev(coefficients=[rx.Parameter(value=float(value)) for value in coefficients])
    if not isinstance(like, rx.BackgroundFixedPlusChebyshev):
        return terms
    return like.model_copy(update={"chebyshev": terms}, deep=True)


def seed_scales(state: State, width: float) -> Any:
    """Return the structure with scale factors that match the data's net intensity.

    A phase that comes out at nothing starts at one thousandth of its largest possible scale. Without atoms there is
    none: the intensities of a profile match stand for it.
    """
    if state.bare:
        return state.structure
    model = compiled(state.structure, state.instrument, state.pattern(), mode="rietveld", limits=state.limits)
    table = table_of(state.structure, state.instrument)
    values = table.decode(table.x0())
    net = model.y_obs - model.background(values)
    parts = [model.phase_component(index, values) for index in range(len(state.structure.phases))]
    top = float(np.max(np.maximum(model.y_obs, 0.0)))
    structure = state.structure.model_copy(deep=True)
    factors = match_factors(model.tt, net, model.sigma, parts, width, top)
    for phase, factor in zip(structure.phases, factors, strict=True):
        phase.scale.value = factor
    return structure
