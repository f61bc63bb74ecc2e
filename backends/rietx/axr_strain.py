"""Microstrain that depends on direction: Stephens (1999), doi:10.1107/S0021889898006001, as rietx has it.

The square of a line's width is d^4 times a quartic form of its indices. Its coefficients S400, S220, ... multiply the
literal products of the indices and are in 1e-12 angstrom^-4; symmetry leaves 2 (cubic) to 15 (triclinic) of them free.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import rietx as rx
from axr_phases import phase_index
from axr_private import COARSE_AREA, compiled, table_of
from axr_private_match import carry_intensities
from axr_state import State
from axr_stephens import stephens_basis
from rietx.crystallography.stephens import S_NAMES, monomial_matrix, strain_width_deg

__all__ = ["SEED_DEG", "set_broadening", "strain_columns", "tell_greatest"]

SEED_DEG = 0.03
"""Strain (FWHM / tan theta) that coefficients start from where there is none: at nothing they have no gradient."""
MOST_COEFFICIENTS = 9
"""A phase with more of them (triclinic) gets no gain."""
_STEP = 0.05
_PPM = 1e6 * math.pi / 180.0
"""From a strain as FWHM / tan theta in degrees to rietx's 1e-6."""


def set_broadening(state: State, values: dict[str, Any]) -> State:
    """Choose how microstrain of a phase depends on direction; it starts where the isotropic one stands.

    Args:
        state: where to.
        values: ``phase``; ``effect``: strain; ``model``: isotropic or generalised (Stephens).

    Raises:
        ValueError: rietx has no such model of that effect.
    """
    effect, model = str(values["effect"]), str(values["model"])
    if effect != "strain" or model not in ("isotropic", "generalised"):
        raise ValueError("rietx lets only strain depend on direction, by the model generalised")
    structure = state.structure.model_copy(deep=True)
    phase = structure.phases[phase_index(state, values["phase"])]
    if model == "isotropic":
        if phase.microstrain is not None:
            phase.microstrain, phase.lor_strain.value = None, SEED_DEG
        return state.with_models(structure, state.instrument)
    if phase.microstrain is None:
        _make_general(phase)
    return replace(state.with_models(structure, state.instrument), last={})


def _make_general(phase: Any) -> None:
    width = max(float(phase.lor_strain.value), SEED_DEG)
    phase.microstrain = rx.StephensStrain.isotropic(width * _PPM, phase.cell, vary=False)
    phase.lor_strain.value = 0.0


def strain_columns(state: State) -> dict[str, np.ndarray]:
    """Return what each coefficient would do to the pattern, shape (n, k), by phase, where strain has no direction yet.

    Derivatives at the isotropic strain, or at a small one where there is none.
    """
    found: dict[str, np.ndarray] = {}
    for index, given in enumerate(state.structure.phases):
        if given.microstrain is not None or len(stephens_basis(given)) > MOST_COEFFICIENTS:
            continue
        phase = given.model_copy(deep=True)
        _make_general(phase)
        structure = rx.Structure(phases=[phase])
        model = compiled(
            structure, state.instrument, state.pattern(), mode=state.mode, limits=state.limits, area=COARSE_AREA
        )
        if state.mode == "lebail":
            own = [item | {"phase_index": 0} for item in state.reflections if item["phase_index"] == index]
            carry_intensities(own, model)
        values = table_of(structure, state.instrument)
        found[state.structure.phases[index].name] = _derivatives(model, values.decode(values.x0()), phase)
    return found


def _derivatives(model: Any, values: dict[str, float], phase: Any) -> np.ndarray:
    start = np.array([values[f"phases.0.microstrain.{name}"] for name in S_NAMES])
    before, columns = model.phase_component(0, values), []
    for row in stephens_basis(phase):
        # a small part of what the coefficient is, or of the largest: some are zero in an isotropic strain
        used = row != 0.0
        size = np.max(np.abs(start[used] / row[used])) or np.max(np.abs(start))
        moved = start + _STEP * size * row
        changed = values | {f"phases.0.microstrain.{n}": float(v) for n, v in zip(S_NAMES, moved, strict=True)}
        columns.append(np.asarray(model.phase_component(0, changed) - before) / (_STEP * size))
    return np.stack(columns, axis=1)


def tell_greatest(
    rows: list[dict[str, Any]], structure: Any, values: dict[str, float], reflections: dict[str, np.ndarray]
) -> None:
    """Put the strain along the broadest direction (FWHM / tan theta, degrees) in the place of one without direction.

    Args:
        rows: of all parameters; changed.
        structure: the model.
        values: every value by rietx path.
        reflections: inside the range: ``phase``, ``hkl``, ``d_angstrom``.
    """
    for index, phase in enumerate(structure.phases):
        mine = reflections["phase"] == index
        if phase.microstrain is None or not np.any(mine):
            continue
        coefficients = np.array([values[f"phases.{index}.microstrain.{name}"] for name in S_NAMES])
        products = monomial_matrix(reflections["hkl"][mine])
        widths = strain_width_deg(products, coefficients, reflections["d_angstrom"][mine])
        row = next(row for row in rows if row["name"] == f"phase.{phase.name}.strain")
        row |= {"value": float(np.max(widths)), "derived": True}
