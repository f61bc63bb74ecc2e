"""The ``execute`` command: edit, release, refine, report."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from axg_axial import AXIAL_FLOOR, axial_start
from axg_edits import apply_edits
from axg_gains import release_gains
from axg_lebail import intensity_esds, match_intensities
from axg_model import Model, build_model
from axg_names import Catalog, Column, build_catalog
from axg_pattern import Computed, Engine
from axg_report import floor_notices, parameter_rows, phase_rows, reflection_arrays, tell_greatest
from axg_solve import Limits, Outcome, limits_of, refine
from axg_state import State
from axg_uncertainty import uncertainty_rows
from axg_version import version
from axr_mode import in_mode
from axr_rows import without_structure
from axr_wanted import require_wanted

__all__ = [
    "AXIAL_SEED",
    "arrays_of",
    "ending",
    "execute",
    "figures",
    "freed_by",
    "note_absent",
    "note_unmatched",
    "record_of",
    "short_notices",
]

MOST_ALIKE = 4
AXIAL_SEED = 0.01
"""Start of S/L = H/L when released from GSAS-II's floor: there the asymmetry has no gradient."""
_FLOORED = ("profile.S/L", "_gauss", "_lorentz")

_Result = tuple[State, dict[str, Any], dict[str, np.ndarray]]


def execute(state: State, command: dict[str, Any]) -> _Result:
    """Carry out a command on a state.

    Returns:
        The new state, the result's description (JSON) and its arrays.

    Raises:
        Refused: the command cannot be carried out.
    """
    state = in_mode(apply_edits(state, command["edits"]), command, execute, {"intensities": ()})
    catalog = build_catalog(build_model(state))
    columns = catalog.freed(command["released"])
    state = _seed_axial(state, columns)
    limits = limits_of(catalog, state.values, command["bounds"])
    outcome = Outcome()
    note_unmatched(catalog, command["released"], outcome)
    if state.mode == "lebail":
        state = _matched(state, columns, limits, command, outcome)
    elif columns and command["cycles"] > 0:
        state = refine(state, columns, limits, command, outcome)
    columns = [column for column in columns if column.name not in outcome.absent]
    note_absent(outcome)
    if columns and command["cycles"] > 0:
        state = replace(state, last=record_of(command, catalog, outcome))
    return _report(state, command, columns, limits, outcome)


def _seed_axial(state: State, columns: list[Column]) -> State:
    """Start the axial divergence where it gains most, when it is released from GSAS-II's floor."""
    if not any(column.axial for column in columns) or state.values["profile.S/L"] > AXIAL_FLOOR:
        return state
    start = AXIAL_SEED if state.mode == "lebail" else max(axial_start(state, columns), AXIAL_SEED)
    return replace(state.with_values({"profile.S/L": start, "profile.H/L": start}), last={})


def record_of(command: dict[str, Any], catalog: Catalog, outcome: Outcome) -> dict[str, Any]:
    """Return what a state keeps of the fit that made it."""
    record = {"released": list(command["released"]), "esds": outcome.esds(catalog.columns)}
    return record | {"cycles": outcome.cycles, "status": outcome.status}


def freed_by(command: dict[str, Any], catalog: Catalog) -> dict[str, list[str]]:
    """Return the columns that each released selector frees."""
    return {name: list(catalog.selectors[name]) for pattern in command["released"] for name in catalog.match(pattern)}


def arrays_of(
    model: Model, seen: Computed, reflections: dict[str, np.ndarray], covariance: np.ndarray
) -> dict[str, np.ndarray]:
    """Return curves, reflections and covariance of one histogram, by the names of the protocol."""
    arrays = {"x": model.x, "y_obs": model.y, "sigma": model.sigma, "y_calc": seen.y, "background": seen.background}
    arrays |= {"phase_patterns": seen.parts, "covariance": covariance}
    return arrays | {f"reflections_{key}": value for key, value in reflections.items()}


def note_unmatched(catalog: Catalog, released: list[str], outcome: Outcome) -> None:
    """Tell which selectors the model does not have, and which free nothing."""
    for pattern in released:
        names = catalog.match(pattern)
        if not names:
            outcome.unmatched.append(pattern)
            outcome.notices.append(("selector_unmatched", f"The model has no parameter {pattern}."))
        elif "*" not in pattern and not any(catalog.selectors[name] for name in names):
            text = f"Nothing of {pattern} can move: symmetry or a constraint fixes it."
            outcome.notices.append(("selector_fixed", text))


def note_absent(outcome: Outcome) -> None:
    """Tell which effects the fit took out of the model."""
    for name in outcome.absent:
        text = f"The data show nothing of {name}: it went to {'its floor' if name.endswith(_FLOORED) else 'zero'}"
        outcome.notices.append(("effect_absent", f"{text} and is held there."))


def _matched(state: State, columns: list[Column], limits: Limits, command: dict[str, Any], outcome: Outcome) -> State:
    """Refine what is free beside the intensities, which follow it, and leave the best ones in the state."""
    if columns and command["cycles"] > 0:
        state = refine(state, columns, limits, command, outcome)
    return match_intensities(state, aside=not columns and not command["gains"])


def _report(state: State, command: dict[str, Any], columns: list[Column], limits: Limits, outcome: Outcome) -> _Result:
    model = build_model(state)
    seen = Engine(model).compute(state.values)
    catalog = build_catalog(model)
    released = {column.name for column in columns}
    parameters = parameter_rows(state, catalog, limits, released, outcome)
    esds, matched = None, 0
    if state.mode == "lebail":
        esds, matched = intensity_esds(Engine(model), state.values, tuple(columns))
    reflections = reflection_arrays(model, seen, esds)
    tell_greatest(parameters, model, reflections)
    phases, derived = phase_rows(state, model, catalog, outcome)
    gained = None
    require_wanted()
    if command["gains"]:
        gained = release_gains(model, seen, catalog, columns, limits)
        if state.flight is None or state.certified:  # over the time of flight nobody states how well DIFC is known
            derived += uncertainty_rows(state, model, catalog, gained.problem, outcome, parameters + derived)
    notes = [] if gained is None else gained.notes
    meta = {
        "parameters": without_structure(parameters + derived, state.bare),
        "phases": phases,
        "covariance_names": outcome.names,
        "convergence": ending(outcome),
        "engine_r": figures(model.y, model.sigma, seen.y, seen.background, len(outcome.names) + matched),
        "notices": [
            list(item)
            for item in short_notices([*state.notices, *outcome.notices, *floor_notices(state, seen), *notes])
        ],
        "gains": {} if gained is None else gained.gains,
        "gain_counts": {} if gained is None else gained.counts,
        "selectors": freed_by(command, catalog),
        "engine_version": version(),
        "mode": state.mode,
        "matched": matched,
        "esd_kind": "gof_scaled",
    }
    return state, meta, arrays_of(model, seen, reflections, outcome.covariance)


def ending(outcome: Outcome) -> dict[str, Any]:
    """Return how the least squares ended, in the protocol's form."""
    return {
        "converged": outcome.converged,
        "cycles": outcome.cycles,
        "max_shift_over_esd": outcome.shift,
        "status": outcome.status,
        "dropped": [*outcome.unmatched, *outcome.dropped],
    }


def figures(
    y: np.ndarray, sigma: np.ndarray, calculated: np.ndarray, background: np.ndarray, free: int
) -> dict[str, float]:
    """Return the R factors of a curve over its points, and of what lies above the background."""
    weight = sigma**-2.0
    error = y - calculated
    top, bottom = float(np.sum(weight * error**2)), float(np.sum(weight * y**2))
    count = max(y.size - free, 1)
    net = float(np.sum(weight * (y - background) ** 2))
    found = {
        "rwp": math.sqrt(top / bottom),
        "rexp": math.sqrt(count / bottom),
        "gof": math.sqrt(top / count),
        "chi2_reduced": top / count,
        "rwp_no_background": math.sqrt(top / net) if net > 0 else math.nan,
    }
    return {key: value for key, value in found.items() if math.isfinite(value)}


def short_notices(notices: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the notices without repeats, at most MOST_ALIKE of one code."""
    kept: list[tuple[str, str]] = []
    number: dict[str, int] = {}
    for code, text in dict.fromkeys(notices):
        number[code] = number.get(code, 0) + 1
        if number[code] <= MOST_ALIKE:
            kept.append((code, text))
    more = [(code, f"{count - MOST_ALIKE} more of these.") for code, count in number.items() if count > MOST_ALIKE]
    return kept + more
