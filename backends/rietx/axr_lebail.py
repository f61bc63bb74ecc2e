"""Profile matching: per-reflection intensities that the data ask for, with the model's positions and shapes.

rietx's own partition (Le Bail, Duroy & Fourquet 1988, doi:10.1016/0025-5408(88)90019-0) takes the
net intensity of every point no lower than zero. In the wide windows of Lorentzian lines that counts the
upper half of the noise as intensity: on a simulated pattern its fit was worse than the true structure's
(GoF 1.35 against 1.02). The intensities enter linearly, so they are solved for here as Pawley (1981,
doi:10.1107/S0021889881009618) does: weighted least squares, none below zero, coincident lines sharing
equally.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from axr_partition import solve_nonnegative
from axr_private import carry_intensities, compiled, extract_intensities, reflection_profiles, set_intensities, table_of
from axr_seeds import background_model, chebyshev_of
from axr_state import State
from axr_wire import Refused
from scipy.sparse import csc_array, hstack

__all__ = ["match_intensities"]

MOST = 4000
"""Most reflections of a profile match; the normal matrix is dense."""


def match_intensities(state: State, *, background: bool) -> State:
    """Return the state with the best intensities, and the best background beside them where asked.

    Raises:
        Refused: there are too many reflections.
    """
    model = compiled(state.structure, state.instrument, state.pattern(), mode="lebail", limits=state.limits)
    carry_intensities(state.reflections, model)
    table = table_of(state.structure, state.instrument)
    values = table.decode(table.x0())
    shapes = reflection_profiles(model, values)
    count = shapes.shape[1]
    if count > MOST:
        raise Refused("input", "too_many_reflections", f"{count} reflections are too many for a profile match.")
    curve = model.background(values)
    columns, target = shapes, model.y_obs - curve
    if background:
        polynomial = chebyshev_of(state.instrument.background)
        # behind the polynomial's rows stands that of a fixed curve, which is held
        rows = model.bkg_design[: len(polynomial.coefficients)]
        columns = csc_array(hstack([shapes, csc_array(rows.T)]))
        target = target + np.array([item.value for item in polynomial.coefficients]) @ rows
    weighted = csc_array(columns.multiply((1.0 / model.sigma)[:, None]))
    solution = solve_nonnegative(weighted, target / model.sigma, count)
    set_intensities(model, np.maximum(solution[:count], 0.0))
    matched = replace(state, reflections=extract_intensities(model))
    if background:
        instrument = state.instrument.model_copy(deep=True)
        instrument.background = background_model(solution[count:], instrument.background)
        matched = matched.with_models(state.structure, instrument)
    return matched
