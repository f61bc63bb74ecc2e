"""Derivatives that rietx's Jacobian does not hold: of model parts that are not there yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gemmi
import numpy as np
import rietx as rx
from axr_curves import chebyshev_rows
from axr_marginal import AXIAL_TRIALS, ROUGHNESS_TRIALS
from axr_names import is_term
from axr_private import COARSE_AREA, compiled, shaped, table_of
from axr_private_match import carry_intensities
from axr_state import State

__all__ = ["AXES", "axial_steps", "background_columns", "rough_surface", "roughness_steps", "texture_steps"]

MARCH_TRIALS = (0.5, 0.65, 0.8, 0.9, 1.12, 1.3, 1.6, 2.2)
"""March-Dollase coefficients that are tried: plates below 1, needles above."""
MOST_AXES = 40

AXES = {
    gemmi.CrystalSystem.Cubic: ((1, 0, 0), (1, 1, 0), (1, 1, 1)),
    gemmi.CrystalSystem.Hexagonal: ((0, 0, 1), (1, 0, 0), (1, 1, 0)),
    gemmi.CrystalSystem.Trigonal: ((0, 0, 1), (1, 0, 0), (1, 0, 4)),
    gemmi.CrystalSystem.Tetragonal: ((0, 0, 1), (1, 0, 0), (1, 1, 0)),
    gemmi.CrystalSystem.Orthorhombic: ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    gemmi.CrystalSystem.Monoclinic: ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    gemmi.CrystalSystem.Triclinic: ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
}
"""Axes that are tried for preferred orientation: the low-index directions of each system, and the
cleavage rhombohedron of the calcite-like ones."""


def axial_steps(state: State) -> np.ndarray:
    """Return the change of the pattern when S/L = H/L rise from zero to AXIAL_TRIALS, shape (n, trials).

    Steps and not a derivative: the pattern is even in S/L, so that its derivative vanishes at zero, and lines move as
    well as lean, so that what a small step does tells little of what the right one would.
    """
    before, columns = _pattern(state.structure, state.instrument, state), []
    for trial in AXIAL_TRIALS:
        instrument = state.instrument.model_copy(deep=True)
        instrument.geometry.axial_sl.value = instrument.geometry.axial_hl.value = trial
        columns.append(_pattern(state.structure, instrument, state) - before)
    return np.stack(columns, axis=1)


def rough_surface(instrument: Any, depth: float) -> Any:
    """Return an instrument whose specimen has a depleted surface layer: intensities go as exp(-depth / sin theta).

    Suortti (1972), doi:10.1107/S0021889872009707, without the part of the beam that meets no layer (a = 0): the two
    of them trade with each other in all but the best patterns.
    """
    instrument = instrument.model_copy(deep=True)
    block = rx.RoughnessSuortti()
    block.a.value, block.b.value = 0.0, depth
    instrument.geometry.surface_roughness = block
    return instrument


def roughness_steps(state: State) -> np.ndarray:
    """Return the change of the pattern from an even surface to ROUGHNESS_TRIALS, shape (n, trials)."""
    instrument = rough_surface(state.instrument, 0.0)
    model, table = _coarse(state.structure, instrument, state), table_of(state.structure, instrument)
    values = table.decode(table.x0())
    depth = "instrument.geometry.surface_roughness.b"
    phases = [shaped(model, index, values) for index in range(len(state.structure.phases))]
    before, *after = (
        np.sum([phase(model, values | {depth: trial}) for phase in phases], axis=0)
        for trial in (0.0, *ROUGHNESS_TRIALS)
    )
    return np.stack([pattern - before for pattern in after], axis=1)


def background_columns(model: object, terms: int) -> np.ndarray:
    """Return the next Chebyshev terms of the background, shape (n, terms)."""
    x = model.tt  # type: ignore[attr-defined]
    have = sum(map(is_term, model.bkg_paths))  # type: ignore[attr-defined]
    return chebyshev_rows(x, have + terms, float(x[0]), float(x[-1]))[have:].T


def texture_steps(state: State) -> dict[str, np.ndarray]:
    """Return the change of the pattern from no texture to MARCH_TRIALS, shape (n, trials), by phase and axis.

    Keys are ``phase.P.preferred_orientation@h,k,l``, for each phase without texture. Steps and not a
    derivative: at r = 1 the derivatives for different axes are multiples of each other, and nothing at
    all in a cubic phase, because to first order the March-Dollase factor is a second Legendre polynomial.
    """
    found: dict[str, np.ndarray] = {}
    for index, phase in enumerate(state.structure.phases):
        if phase.preferred_orientation is not None or len(found) >= MOST_AXES:
            continue
        group = gemmi.SpaceGroup(state.domain[index]["space_group_number"])
        pattern = None
        for axis in AXES[group.crystal_system()]:
            model, values = _oriented(state, index, axis)
            pattern = pattern or shaped(model, 0, values)
            name = f"phase.{phase.name}.preferred_orientation@{','.join(map(str, axis))}"
            found[name] = np.stack(_march(pattern, model, values), axis=1)
    return found


def _oriented(state: State, index: int, axis: tuple[int, int, int]) -> tuple[Any, dict[str, float]]:
    """Return the model of one phase alone with an axis of texture, and its values."""
    phase = state.structure.phases[index].model_copy(deep=True)
    phase.preferred_orientation = rx.PreferredOrientation(axis=axis)
    structure = rx.Structure(phases=[phase])
    table = table_of(structure, state.instrument)
    return _coarse(structure, state.instrument, state), table.decode(table.x0())


def _march(pattern: Callable[..., np.ndarray], model: Any, values: dict[str, float]) -> list[np.ndarray]:
    """Return the change of a phase's pattern for each of MARCH_TRIALS."""
    before = pattern(model, values)
    return [pattern(model, values | {"phases.0.preferred_orientation.r": trial}) - before for trial in MARCH_TRIALS]


def _pattern(structure: object, instrument: object, state: State) -> np.ndarray:
    model = _coarse(structure, instrument, state)
    table = table_of(structure, instrument)
    return np.asarray(model.evaluate(table.decode(table.x0())))


def _coarse(structure: object, instrument: object, state: State) -> Any:
    model = compiled(structure, instrument, state.pattern(), mode=state.mode, limits=state.limits, area=COARSE_AREA)
    if state.mode == "lebail":
        carry_intensities(state.reflections, model)
    return model
