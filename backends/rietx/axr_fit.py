"""The ``execute`` command: edit, release, refine, report."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import rietx as rx
from axr_bounds import Limits, column_bounds
from axr_edits import apply_edits
from axr_fixed import curve_notices
from axr_gain_columns import rough_surface
from axr_gains import axial_start, release_gains
from axr_lebail import match_intensities, partitioned, tellable
from axr_mode import in_mode
from axr_model import catalog_of, open_refinement
from axr_names import Catalog, Mapped
from axr_pawley import refine_matched, squared_factors
from axr_private import Answer
from axr_report import evaluate, parameter_rows, phase_rows, reflection_arrays
from axr_rows import without_structure
from axr_solve import Outcome, refine
from axr_state import State
from axr_strain import tell_greatest
from axr_uncertainty import uncertainty_rows
from axr_wanted import require_wanted
from rietx.optimize.statistics import compute_statistics

__all__ = ["execute"]

MOST_ALIKE = 4
AXIAL_SEED = 0.01
"""Start of S/L = H/L when released from zero: at zero the asymmetry has no gradient."""
SAME = 1e-9
"""A value this close to a limit, relative to it, is on it."""


def execute(state: State, command: dict[str, Any]) -> tuple[State, dict[str, Any], dict[str, np.ndarray]]:
    """Carry out a command on a state.

    Returns:
        The new state, the result's description (JSON) and its arrays.

    Raises:
        Refused: the command cannot be carried out.
    """
    state = in_mode(apply_edits(state, command["edits"]), command, execute, {"reflections": []})
    ref = open_refinement(state)
    catalog = catalog_of(state, ref)
    columns = catalog.columns(command["released"])
    if (start := _axial_start(state, columns, command["released"])) > 0.0:
        state = _with_axial(state, start)
        ref = open_refinement(state)
        catalog = catalog_of(state, ref)
        columns = catalog.columns(command["released"])
    if "sample.roughness" in command["released"] and catalog.selectors.get("sample.roughness") == ():
        state = _with_roughness(state)
        ref = open_refinement(state)
        catalog = catalog_of(state, ref)
        columns = catalog.columns(command["released"])
    bounds = column_bounds(ref, catalog, command["bounds"])
    outcome = Outcome()
    _note_unmatched(catalog, command["released"], outcome)
    if state.mode == "lebail":
        columns = tellable(columns)
        aside = not columns and not command["gains"]
        state = partitioned(state) if aside else match_intensities(state)
    if columns and command["cycles"] > 0:
        solve = refine if state.mode == "rietveld" else refine_matched
        state = solve(state, columns, bounds, catalog, command, outcome)
        columns = [path for path in columns if path not in outcome.absent]
        _note_absent(catalog, outcome)
    return _report(state, command, catalog, columns, bounds, outcome)


def _axial_start(state: State, columns: list[str], released: list[str]) -> float:
    """Return where S/L and H/L start when they are released from zero, else 0: at zero they have no gradient."""
    geometry = state.instrument.geometry
    if "profile.SH/L" not in released or geometry.axial_sl.value > 0 or geometry.axial_hl.value > 0:
        return 0.0
    if state.mode != "rietveld":
        return AXIAL_SEED
    others = [path for path in columns if not path.startswith("instrument.geometry.axial_")]
    return max(axial_start(state, others), AXIAL_SEED)


def _with_axial(state: State, value: float) -> State:
    instrument = state.instrument.model_copy(deep=True)
    instrument.geometry.axial_sl.value = instrument.geometry.axial_hl.value = value
    return replace(state.with_models(state.structure, instrument), last={})


def _with_roughness(state: State) -> State:
    return replace(state.with_models(state.structure, rough_surface(state.instrument, 0.0)), last={})


def _note_unmatched(catalog: Catalog, released: list[str], outcome: Outcome) -> None:
    for pattern in released:
        names = catalog.match(pattern)
        if not names:
            outcome.unmatched.append(pattern)
            outcome.notices.append(("selector_unmatched", f"The model has no parameter {pattern}."))
        elif "*" not in pattern and not any(catalog.selectors[name] for name in names):
            text = f"Nothing of {pattern} can move: symmetry or a constraint fixes it."
            outcome.notices.append(("selector_fixed", text))


def _note_absent(catalog: Catalog, outcome: Outcome) -> None:
    for path in outcome.absent:
        name = catalog.representatives[path].name
        text = f"The data show nothing of {name}: it went to zero and is held there."
        outcome.notices.append(("effect_absent", text))


def _report(
    state: State, command: dict[str, Any], catalog: Catalog, columns: list[str], bounds: Limits, outcome: Outcome
) -> tuple[State, dict[str, Any], dict[str, np.ndarray]]:
    seen = evaluate(state)
    answer = outcome.answer
    representatives = [catalog.representatives[path] for path in columns if path in catalog.representatives]
    names, covariance = _covariance(representatives, answer, outcome.dropped)
    esds = answer.esds() if answer is not None else {}
    parameters = parameter_rows(state, {mapped.name for mapped in representatives}, esds, bounds)
    squared, matched = squared_factors(state, seen, answer, outcome.inflation)
    reflections = reflection_arrays(state, seen) | squared
    tell_greatest(parameters, state.structure, seen.values, reflections)
    phases, derived = phase_rows(state, seen, answer)
    require_wanted()
    gained = release_gains(state, catalog, columns) if command["gains"] else None
    if gained is not None:
        derived += uncertainty_rows(seen, gained.problem, answer, catalog, parameters + derived)
    notes = [] if gained is None else gained.notes
    told = [*state.notices, *curve_notices(state.fixed_estimate)]
    meta = {
        "parameters": without_structure(parameters + derived, state.bare),
        "phases": phases,
        "covariance_names": names,
        "convergence": _ending(outcome),
        "engine_r": _figures(seen, len(names) + matched, outcome),
        "notices": [
            list(item) for item in _short([*told, *outcome.notices, *outcome.findings, *_exceeded(parameters), *notes])
        ],
        "gains": {} if gained is None else gained.gains,
        "gain_counts": {} if gained is None else gained.counts,
        "selectors": _freed(catalog, command["released"]),
        "engine_version": rx.__version__,
        "mode": state.mode,
        "matched": matched,
        "esd_kind": "berar_lelann",
    }
    return state, meta, _arrays(seen, reflections) | {"covariance": covariance}


def _ending(outcome: Outcome) -> dict[str, Any]:
    """Return how the least squares ended, in the protocol's form."""
    return {
        "converged": outcome.converged,
        "cycles": outcome.cycles,
        "max_shift_over_esd": outcome.shift,
        "status": outcome.status,
        "dropped": [*outcome.unmatched, *outcome.dropped],
    }


def _arrays(seen: Any, reflections: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the curves on the points that were used, and the reflections."""
    curves = {
        "x": seen.model.tt,
        "y_obs": seen.model.y_obs,
        "sigma": seen.model.sigma,
        "y_calc": seen.y_calc,
        "background": seen.background,
        "phase_patterns": seen.parts,
    }
    return curves | {f"reflections_{key}": value for key, value in reflections.items()}


def _short(notices: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the notices without repeats, at most MOST_ALIKE of one code."""
    kept: list[tuple[str, str]] = []
    number: dict[str, int] = {}
    for code, text in dict.fromkeys(notices):
        number[code] = number.get(code, 0) + 1
        if number[code] <= MOST_ALIKE:
            kept.append((code, text))
    more = [(code, f"{count - MOST_ALIKE} more of these.") for code, count in number.items() if count > MOST_ALIKE]
    return kept + more


def _exceeded(parameters: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return a notice for each released parameter that ended outside its limits, which must not happen."""
    found = []
    for row in parameters:
        low, high, value = row["lower"], row["upper"], row["value"]
        below = low is not None and value < low - SAME * max(abs(low), 1.0)
        above = high is not None and value > high + SAME * max(abs(high), 1.0)
        if row["released"] and (below or above):
            found.append(("bound_exceeded", f"{row['name']} = {value:.6g} is outside its limits ({low}, {high})."))
    return found


def _covariance(
    representatives: list[Mapped], answer: Answer | None, dropped: list[str]
) -> tuple[list[str], np.ndarray]:
    """Return names and covariance of what was really determined, in our units."""
    if answer is None or answer.stderr is None:
        return [], np.zeros((0, 0))
    kept = [mapped for mapped in representatives if mapped.name not in dropped]
    factors = np.array([mapped.factor for mapped in kept])
    covariance = answer.covariance([mapped.path for mapped in kept]) * np.outer(factors, factors)
    return [mapped.name for mapped in kept], 0.5 * (covariance + covariance.T)


def _figures(seen: Any, free: int, outcome: Outcome) -> dict[str, float]:
    model = seen.model
    statistics = compute_statistics(model.y_obs, seen.y_calc, model.sigma, n_free=free, y_background=seen.background)
    figures = {
        "rwp": statistics.rwp,
        "rp": statistics.rp,
        "rexp": statistics.rexp,
        "gof": statistics.gof,
        "chi2_reduced": statistics.chi2,
        "rwp_no_background": statistics.rwp_background_subtracted,
        "durbin_watson": statistics.durbin_watson,
        "esd_inflation": outcome.inflation,
        "usable": None if outcome.usable is None else float(outcome.usable),
    }
    return {key: float(value) for key, value in figures.items() if value is not None and math.isfinite(value)}


def _freed(catalog: Catalog, released: list[str]) -> dict[str, list[str]]:
    known = catalog.representatives
    return {
        name: [known[path].name for path in catalog.selectors[name] if path in known]
        for pattern in released
        for name in catalog.match(pattern)
    }
