"""Edits that make a quantity of a phase depend on direction: widths, texture in harmonics, displacement parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from axg_adp import COMPONENTS, equivalent_weights, isotropic_tensor
from axg_broadening import harmonic_names, start_stephens, stephens_names, strain_unit
from axg_lines import lines_of, structure_of
from axg_model import build_model, cell_of
from axg_phases import phase_index
from axg_state import PhaseModel, State

__all__ = ["set_anisotropic", "set_broadening", "set_harmonics"]

MODELS = ("isotropic", "uniaxial", "generalised")
LEAST_WIDTH_DEG = 0.01
"""Start of a width along an axis where there is none: at zero it has no gradient."""
MOST_ORDER = 20


def set_broadening(state: State, values: dict[str, Any]) -> State:
    """Choose how size or microstrain of a phase depend on direction; they start where the isotropic one stands.

    Args:
        state: where to.
        values: ``phase``; ``effect``: size or strain; ``model``: isotropic, uniaxial (with ``axis``, a direction of the
            lattice) or generalised (strain only: Stephens).

    Raises:
        ValueError: there is no such model of that effect.
    """
    index, effect, model = phase_index(state, values["phase"]), str(values["effect"]), str(values["model"])
    if effect not in ("size", "strain") or model not in MODELS or (effect == "size" and model == "generalised"):
        raise ValueError("a size is isotropic or uniaxial, a strain isotropic, uniaxial or generalised")
    phase = state.phases[index]
    base = f"phase.{phase.name}.{effect}"
    kept = {name: value for name, value in state.values.items() if not name.startswith(f"{base}.")}
    width = _mean_width(state, index, effect)
    kept[base] = 0.0 if model == "generalised" else width
    axis = _axis(values["axis"]) if model == "uniaxial" else None
    if axis is not None:
        kept |= {base: max(width, LEAST_WIDTH_DEG), f"{base}.axial": max(width, LEAST_WIDTH_DEG)}
    stephens: tuple[str, ...] = ()
    if model == "generalised":
        built = build_model(state)
        group = built.phases[phase.name]["General"]["SGData"]
        fixed = structure_of(built, index)
        d = lines_of(built, fixed, state.values, np.ones(len(fixed.hkl))).d
        stephens = stephens_names(group)
        start = start_stephens(width / strain_unit(state.values), fixed.hkl, d, group)
        kept |= {f"{base}.{name}": value for name, value in zip(stephens, start, strict=True)}
    changed = {"size_axis": axis} if effect == "size" else {"strain_axis": axis, "stephens": stephens}
    return _with_phase(replace(state, values=kept), index, replace(phase, **changed))


def _mean_width(state: State, index: int, effect: str) -> float:
    """Return the width that stands for an anisotropic one: the mean over what there is."""
    phase = state.phases[index]
    base = f"phase.{phase.name}.{effect}"
    if f"{base}.axial" in state.values:
        return (2.0 * state.values[base] + state.values[f"{base}.axial"]) / 3.0
    if effect == "strain" and phase.stephens:
        return LEAST_WIDTH_DEG
    return state.values[base]


def _axis(given: Any) -> tuple[int, int, int]:
    a, b, c = (round(float(value)) for value in given)
    if (a, b, c) == (0, 0, 0):
        raise ValueError("an axis has at least one index that is not zero")
    return (a, b, c)


def set_harmonics(state: State, values: dict[str, Any]) -> State:
    """Describe the texture of a phase by spherical harmonics up to an order, in place of March and Dollase's law.

    Args:
        state: where to.
        values: ``phase``; ``order``: even, 0 for no texture.

    Raises:
        ValueError: the order is odd or too large, or the Laue group has no harmonic up to it.
    """
    index, order = phase_index(state, values["phase"]), int(values["order"])
    if order % 2 or not 0 <= order <= MOST_ORDER:
        raise ValueError(f"the order of spherical harmonics is even and at most {MOST_ORDER}")
    phase = state.phases[index]
    base = f"phase.{phase.name}.preferred_orientation"
    group = build_model(state).phases[phase.name]["General"]["SGData"]
    names = harmonic_names(group, order)
    if order and not names:
        raise ValueError(f"the Laue group {group['SGLaue']} has no harmonic up to order {order}")
    kept = {name: value for name, value in state.values.items() if name != base and not name.startswith(f"{base}.")}
    kept |= {f"{base}.{name}": state.values.get(f"{base}.{name}", 0.0) for name in names}
    return _with_phase(replace(state, values=kept), index, replace(phase, axis=None, harmonics=names))


def set_anisotropic(state: State, values: dict[str, Any]) -> State:
    """Give atoms six displacement parameters, or one again; atoms of one site go together.

    Args:
        state: where to.
        values: ``phase``; ``atoms``: labels, or none for all; ``model``: anisotropic or isotropic.

    Raises:
        ValueError: there is no such atom.
    """
    index, model = phase_index(state, values["phase"]), str(values.get("model", "anisotropic"))
    if model not in ("anisotropic", "isotropic"):
        raise ValueError("displacement parameters are anisotropic or isotropic")
    phase = state.phases[index]
    labels = [atom["label"] for atom in phase.domain["atoms"]]
    wanted = [str(label) for label in values.get("atoms") or labels]
    missing = [label for label in wanted if label not in labels]
    if missing:
        raise ValueError(f"phase {phase.name} has no atom {', '.join(missing)}")
    numbers = {labels.index(label) for label in wanted}
    numbers |= {k for site in phase.shared if numbers & set(site) for k in site}
    cell, changes = cell_of(phase, state.values), dict(state.values)
    for number in sorted(numbers):
        base = f"phase.{phase.name}.atom.{labels[number]}"
        for key in COMPONENTS:
            changes.pop(f"{base}.{key}", None)
        if model == "anisotropic":
            tensor = _start(phase.domain["atoms"][number], state.values[f"{base}.uiso"], cell)
            changes |= {f"{base}.{key}": value for key, value in tensor.items()}
    old = set(phase.anisotropic)
    now = tuple(sorted(old | numbers if model == "anisotropic" else old - numbers))
    return _with_phase(replace(state, values=changes), index, replace(phase, anisotropic=now))


def _start(atom: dict[str, Any], uiso: float, cell: list[float]) -> dict[str, float]:
    """Return the tensor of the structure's file, brought to the present mean; an isotropic one without."""
    given = atom.get("u_aniso")
    if given is None:
        return isotropic_tensor(uiso, cell)
    tensor = dict(zip(COMPONENTS, (float(value) for value in given), strict=True))
    mean = sum(weight * tensor[key] for key, weight in equivalent_weights(cell).items())
    if not mean > 0.0:
        return isotropic_tensor(uiso, cell)
    return {key: value * uiso / mean for key, value in tensor.items()}


def _with_phase(state: State, index: int, phase: PhaseModel) -> State:
    return replace(state, phases=tuple(phase if k == index else other for k, other in enumerate(state.phases)))
