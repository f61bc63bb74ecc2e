"""Phases that come and go: the edits ``add_phase`` and ``remove_phase``."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from axr_build import build_phase, shared_sites
from axr_curves import factor_beside
from axr_prepare import held_origin, with_dispersion
from axr_private import compiled, table_of
from axr_state import State

__all__ = ["add_phase", "phase_index", "remove_phase"]

_LENGTHS = 3


def phase_index(state: State, name: object) -> int:
    """Return the index of a phase.

    Raises:
        ValueError: there is none of that name.
    """
    for index, phase in enumerate(state.structure.phases):
        if phase.name == name:
            return index
    raise ValueError(f"there is no phase {name}")


def remove_phase(state: State, values: dict[str, Any]) -> State:
    """Take a phase out (``phase``: its name).

    Raises:
        ValueError: there is no such phase, or no other.
    """
    gone = phase_index(state, values["phase"])
    if len(state.structure.phases) == 1:
        raise ValueError("the only phase cannot be removed")
    return _without(state, gone)


def _without(state: State, gone: int) -> State:
    keep = [index for index in range(len(state.structure.phases)) if index != gone]
    structure = state.structure.model_copy(deep=True)
    structure.phases = [structure.phases[index] for index in keep]
    return replace(
        state.with_models(structure, state.instrument),
        domain=tuple(state.domain[index] for index in keep),
        shared=tuple(state.shared[index] for index in keep),
        reflections=[
            dict(item, phase_index=keep.index(item["phase_index"]))
            for item in state.reflections
            if item["phase_index"] in keep
        ],
    )


def add_phase(state: State, values: dict[str, Any]) -> State:
    """Put a phase beside the others, or in the place of one.

    Args:
        state: where to.
        values: ``structure`` (our description as JSON text), ``form_factors``, ``strain`` (relative change of its cell
            lengths to start with) and ``replaces`` (name of the phase that it takes the place of, or empty).

    Raises:
        ValueError: a phase of that name is there already, or the one to be replaced is not.
        Refused: the structure cannot be represented.
    """
    data = json.loads(values["structure"])
    if any(phase.name == data["name"] for phase in state.structure.phases):
        raise ValueError(f"there is a phase {data['name']} already")
    stretched = [v * (1.0 + float(values["strain"])) if i < _LENGTHS else v for i, v in enumerate(data["cell"])]
    notices: list[tuple[str, str]] = []
    neutron = state.instrument.source.kind != "xray_cw"
    phase = build_phase(
        data | {"cell": stretched}, form_factors=values["form_factors"], neutron=neutron, notices=notices
    )
    old = values.get("replaces") or ""
    at = phase_index(state, old) if old else None
    widths = [other.lor_size.value for other in state.structure.phases]
    phase.lor_size.value = float(np.median(widths)) if at is None else widths[at]
    structure = state.structure.model_copy(deep=True)
    structure.phases = [*structure.phases, phase]
    grown = replace(
        state.with_models(structure, state.instrument),
        domain=(*state.domain, data),
        shared=(*state.shared, shared_sites(phase)),
    )
    if at is not None:
        grown = _without(grown, at)
    if grown.instrument.source.kind == "xray_cw" and grown.instrument.source.dispersion is not None:
        grown = with_dispersion(grown, "auto", notices)
    grown = held_origin(_scaled(grown))
    return replace(grown, notices=tuple(dict.fromkeys((*state.notices, *notices))))


def _scaled(state: State) -> State:
    """Start the last phase at the scale that what the others leave asks for."""
    model = compiled(state.structure, state.instrument, state.pattern(), mode="rietveld", limits=state.limits)
    table = table_of(state.structure, state.instrument)
    values = table.decode(table.x0())
    parts = [model.phase_component(index, values) for index in range(len(state.structure.phases))]
    own = parts[-1]
    rest = model.y_obs - model.background(values) - sum(parts[:-1], np.zeros_like(own))
    factor = factor_beside(rest, model.sigma, own, float(np.max(np.maximum(model.y_obs, 0.0))))
    structure = state.structure.model_copy(deep=True)
    structure.phases[-1].scale.value *= factor
    return state.with_models(structure, state.instrument)
