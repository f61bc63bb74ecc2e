"""Phases that come and go: the edits ``add_phase`` and ``remove_phase``."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from axg_build import build_phase, start_values
from axg_model import build_model
from axg_pattern import NARROW, Engine
from axg_state import State
from axr_curves import factor_beside

__all__ = ["add_phase", "phase_index", "remove_phase"]

_LENGTHS = 3


def phase_index(state: State, name: object) -> int:
    """Return the index of a phase.

    Raises:
        ValueError: there is none of that name.
    """
    for index, phase in enumerate(state.phases):
        if phase.name == name:
            return index
    raise ValueError(f"there is no phase {name}")


def remove_phase(state: State, values: dict[str, Any]) -> State:
    """Take a phase out (``phase``: its name).

    Raises:
        ValueError: there is no such phase, or no other.
    """
    gone = phase_index(state, values["phase"])
    if len(state.phases) == 1:
        raise ValueError("the only phase cannot be removed")
    return _without(state, gone)


def _without(state: State, gone: int) -> State:
    name = state.phases[gone].name
    return replace(
        state,
        phases=tuple(phase for index, phase in enumerate(state.phases) if index != gone),
        values={key: value for key, value in state.values.items() if not key.startswith(f"phase.{name}.")},
        intensities=tuple(rows for index, rows in enumerate(state.intensities) if index != gone),
        equal_uiso=tuple(item for item in state.equal_uiso if item != name),
        restraints=tuple(row for row in state.restraints if row[0] != name),
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
    if any(phase.name == data["name"] for phase in state.phases):
        raise ValueError(f"there is a phase {data['name']} already")
    stretch = 1.0 + float(values["strain"])
    cell = [v * stretch if i < _LENGTHS else v for i, v in enumerate(data["cell"])]
    notices: list[tuple[str, str]] = []
    neutron = state.radiation == "neutron"
    phase = build_phase(data | {"cell": cell}, form_factors=values["form_factors"], neutron=neutron, notices=notices)
    old = values.get("replaces") or ""
    at = phase_index(state, old) if old else None
    widths = [state.values[f"phase.{other.name}.size"] for other in state.phases]
    first = start_values(phase) | {f"phase.{phase.name}.size": float(np.median(widths)) if at is None else widths[at]}
    grown = replace(state.with_values(first), phases=(*state.phases, phase), intensities=())
    if at is not None:
        grown = _without(grown, at)
    return replace(_scaled(grown), notices=tuple(dict.fromkeys((*state.notices, *notices))))


def _scaled(state: State) -> State:
    """Start the last phase at the scale that what the others leave asks for."""
    model = build_model(state)
    found = Engine(model, NARROW).compute(state.values)
    own = found.parts[-1]
    rest = model.y - found.background - found.parts[:-1].sum(axis=0)
    factor = factor_beside(rest, model.sigma, own, float(np.max(np.maximum(model.y, 0.0))))
    name = f"phase.{state.phases[-1].name}.scale"
    return state.with_values({name: state.values[name] * factor})
