"""Le Bail intensities: the fixed point of the partition, for a state's values as they stand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from axr_private import carry_intensities, compiled, extract_intensities, table_of
from axr_state import State

__all__ = ["converge_intensities"]

ROUNDS = 12
CYCLES = 5
SETTLED = 1e-4
"""Relative change of the weighted sum of squares between rounds at which the partition has settled."""


def converge_intensities(state: State) -> State:
    """Return the state with per-reflection intensities partitioned from the data until they settle.

    Le Bail, Duroy & Fourquet (1988), doi:10.1016/0025-5408(88)90019-0.
    """
    model = compiled(state.structure, state.instrument, state.pattern(), mode="lebail", limits=state.limits)
    carry_intensities(state.reflections, model)
    table = table_of(state.structure, state.instrument)
    values = table.decode(table.x0())
    before = np.inf
    for _ in range(ROUNDS):
        model.lebail_update(values, n_cycles=CYCLES)
        after = float(np.sum(((model.y_obs - model.evaluate(values)) / model.sigma) ** 2))
        if abs(before - after) <= SETTLED * after:
            break
        before = after
    return replace(state, reflections=extract_intensities(model))
