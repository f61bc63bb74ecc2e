"""Axial divergence seen from GSAS-II's floor: what the pattern would be with some, and where a fit of it should start.

The pattern is even in (S+H)/L: at the floor its derivative is next to nothing, and lines move as well as lean, so
that what a small step does tells little of what the right one would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from axg_model import Model, build_model
from axg_names import Column
from axg_pattern import NARROW, Computed, Engine
from axg_shape import axial_foot
from axg_state import State
from axr_marginal import AXIAL_TRIALS, plausible_axial
from axr_score import basis, best_step, project

__all__ = ["AXIAL_FLOOR", "AxialSteps", "axial_start", "axial_steps"]

AXIAL_FLOOR = 0.001
"""S/L below this is the same to GSAS-II."""
RANK = 1e-7
MOST_WIDTHS = 30.0
"""Longest foot of a line that is tried, in widths of the line."""
_S, _H = "profile.S/L", "profile.H/L"


@dataclass(frozen=True)
class AxialSteps:
    """What some axial divergence would do to a pattern.

    Args:
        trials: S/L = H/L that were tried, a beginning of AXIAL_TRIALS.
        changes: of the pattern, shape (n, trials).
    """

    trials: tuple[float, ...]
    changes: np.ndarray

    @property
    def plausible(self) -> np.ndarray:
        """Return the change by what a fit without axial divergence may lack, shape (n,)."""
        return np.asarray(self.changes[:, min(plausible_axial(), len(self.trials) - 1)])


def axial_steps(model: Model, seen: Computed) -> AxialSteps:
    """Return what the pattern would be with more axial divergence than it has.

    A divergence whose foot is many widths of the lowest line is none that this instrument can have, and costs most.
    """
    engine, values, trials = Engine(model, NARROW), seen.values, _trials(seen)
    # windows and numbers of nodes that the widest needs serve all
    engine.compute({**values, _S: trials[-1], _H: trials[-1]})
    before = engine.compute(values).y
    changes = [engine.compute({**values, _S: t, _H: t}).y - before for t in trials]
    return AxialSteps(trials, np.stack(changes, axis=1))


def _trials(seen: Computed) -> tuple[float, ...]:
    lowest = min(seen.lines, key=lambda lines: float(np.nanmin(lines.position[0], initial=180.0)))
    number = int(np.nanargmin(lowest.position[0]))
    width = (2.355 * math.sqrt(lowest.variance[number]) + float(lowest.lorentz[number])) / 100.0
    feet = [float(axial_foot(lowest.position[0, number : number + 1], 2.0 * trial)[0]) for trial in AXIAL_TRIALS]
    return AXIAL_TRIALS[: max(sum(foot <= MOST_WIDTHS * width for foot in feet), 1)]


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
    tried = axial_steps(model, seen)
    best = best_step(-project(base, tried.changes / model.sigma[:, None]), rest)
    # the effect grows as the square
    return tried.trials[best.number] * math.sqrt(best.share)
