"""Axial divergence seen from GSAS-II's floor: what the pattern would be with some, and where a fit of it should start.

The pattern is even in (S+H)/L: at the floor its derivative is next to nothing, and lines move as well as lean, so
that what a small step does tells little of what the right one would.
"""

from __future__ import annotations

import math

import numpy as np
from axg_model import Model, build_model
from axg_names import Column
from axg_pattern import NARROW, Engine
from axg_state import State
from axr_marginal import AXIAL_TRIALS
from axr_score import basis, best_step, project

__all__ = ["AXIAL_FLOOR", "axial_start", "axial_steps"]

AXIAL_FLOOR = 0.001
"""S/L below this is the same to GSAS-II."""
RANK = 1e-7
_S, _H = "profile.S/L", "profile.H/L"


def axial_steps(model: Model, values: dict[str, float]) -> np.ndarray:
    """Return the change of the pattern when S/L = H/L rise from where they are to AXIAL_TRIALS, shape (n, trials)."""
    engine = Engine(model, NARROW)
    # windows and numbers of nodes that the widest needs serve all
    engine.compute({**values, _S: AXIAL_TRIALS[-1], _H: AXIAL_TRIALS[-1]})
    before = engine.compute(values).y
    return np.stack([engine.compute({**values, _S: t, _H: t}).y - before for t in AXIAL_TRIALS], axis=1)


def axial_start(state: State, columns: list[Column]) -> float:
    """Return the S/L = H/L from which a fit that frees it at the floor should start, 0 where none of the trials gains.

    Args:
        state: S/L and H/L are at the floor.
        columns: what will be free beside them.
    """
    engine = Engine(build_model(state), NARROW)
    model = engine.model
    free = tuple(column for column in columns if not column.axial)
    seen = engine.compute(state.values, free)
    base = basis(list(seen.jacobian / model.sigma), RANK)
    rest = project(base, (seen.y - model.y) / model.sigma)
    steps = project(base, axial_steps(model, state.values) / model.sigma[:, None])
    best = best_step(-steps, rest)
    # the effect grows as the square
    return AXIAL_TRIALS[best.number] * math.sqrt(best.share)
