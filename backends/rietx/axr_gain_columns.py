"""Derivatives that rietx's Jacobian does not hold: of model parts that are not there yet."""

from __future__ import annotations

from typing import Any

import gemmi
import numpy as np
import rietx as rx
from axr_curves import chebyshev_rows
from axr_marginal import AXIAL_TRIALS, ROUGHNESS_TRIALS
from axr_private import COARSE_AREA, compiled, table_of
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
    before = _pattern(state.structure, state.instrument, state)
    after = [_pattern(state.structure, rough_surface(state.instrument, depth), state) for depth in ROUGHNESS_TRIALS]
    return np.stack([pattern - before for pattern in after], axis=1)


def background_columns(model: object, terms: int) -> np.ndarray:
    """Return the next Chebyshev terms of the background, shape (n, terms)."""
    x, have = model.tt, len(model.bkg_paths)  # type: ignore[attr-defined]
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
        for axis in AXES[group.crystal_system()]:
            name = f"phase.{phase.name}.preferred_orientation@{','.join(map(str, axis))}"
            found[name] = np.stack(_march(state, index, axis), axis=1)
    return found


def _march(state: State, index: int, axis: tuple[int, int, int]) -> list[np.ndarray]:
    phase = state.structure.phases[index].model_copy(deep=True)
    phase.preferred_orientation = rx.PreferredOrientation(axis=axis)
    structure = rx.Structure(phases=[phase])
    model = _coarse(structure, state.instrument, state)
    table = table_of(structure, state.instrument)
    values = table.decode(table.x0())
    before = model.phase_component(0, values)
    columns = []
    for trial in MARCH_TRIALS:
        values["phases.0.preferred_orientation.r"] = trial
        columns.append(np.asarray(model.phase_component(0, values) - before))
    return columns


def _pattern(structure: object, instrument: object, state: State) -> np.ndarray:
    model = _coarse(structure, instrument, state)
    table = table_of(structure, instrument)
    return np.asarray(model.evaluate(table.decode(table.x0())))


def _coarse(structure: object, instrument: object, state: State) -> Any:
    return compiled(structure, instrument, state.pattern(), mode="rietveld", limits=state.limits, area=COARSE_AREA)
