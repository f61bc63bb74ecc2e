"""The ``execute`` command: edit, release, refine, report."""

from __future__ import annotations

import contextlib
import json
import math
import re
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import rietx as rx
from axr_bounds import Limits, column_bounds, follow
from axr_edits import apply_edits
from axr_gains import release_gains
from axr_lebail import converge_intensities
from axr_model import catalog_of, open_refinement
from axr_names import Catalog, Mapped, map_path
from axr_private import WINDOW_AREA, Answer, answer_covariance, extract_intensities
from axr_report import evaluate, parameter_rows, phase_rows, reflection_arrays
from axr_state import State
from axr_wire import Refused
from rietx.optimize.statistics import compute_statistics

__all__ = ["execute"]

FTOL = 1e-7
"""Relative fall of the sum of squares at which a pass ends: 0.03 esd of a single parameter at 10 000 points."""
SHIFT_CONVERGED = 0.1
"""Largest shift over esd of a converged fit (McCusker et al. 1999, doi:10.1107/S0021889898009856, section 7)."""
PASSES = 3
"""A pass freezes peak windows where it starts; a fit that still moves is taken up again this often at most."""
COARSE_AREA, COARSE_FTOL = 0.02, 1e-6
"""The way towards the minimum is made with narrow windows, at a tenth of the cost; the answer never is."""
_LINEAR = re.compile(r"phases\.\d+\.scale|instrument\.background\.c\d+")
"""Columns that the pattern depends on linearly: they need no way towards the minimum."""
LEBAIL_CYCLES = 10
AXIAL_SEED = 0.01
"""Start of S/L = H/L when released from zero: at zero the asymmetry has no gradient."""
_KEPT_LEVELS = ("warning", "error")
_KEPT_CODES = ("SPECIES_FALLBACK_NEUTRAL", "ORIGIN_FIXED_ON_POLAR_AXIS", "FROZEN_COMPILE_STALE", "OCCUPANCY_ABOVE_ONE")


@dataclass
class Outcome:
    """How the least squares of one command ended."""

    converged: bool = True
    cycles: int = 0
    status: str = "evaluated"
    shift: float | None = None
    inflation: float | None = None
    usable: bool | None = None
    dropped: list[str] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)
    answer: Answer | None = None


def execute(state: State, command: dict[str, Any]) -> tuple[State, dict[str, Any], dict[str, np.ndarray]]:
    """Carry out a command on a state.

    Returns:
        The new state, the result's description (JSON) and its arrays.

    Raises:
        Refused: the command cannot be carried out.
    """
    state = apply_edits(state, command["edits"])
    if command["mode"] not in ("rietveld", "lebail"):
        raise Refused("input", "mode_unknown", f"Unknown mode {command['mode']!r}.")
    if command["mode"] != state.mode:
        state = replace(state, mode=command["mode"], reflections=[], last={})
    state = _seed_axial(state, command["released"])
    ref = open_refinement(state)
    catalog = catalog_of(state, ref)
    columns = catalog.columns(command["released"])
    bounds = column_bounds(ref, catalog, command["bounds"])
    outcome = Outcome()
    _note_unmatched(catalog, command["released"], outcome)
    if state.mode == "lebail":
        state = converge_intensities(state)
    if columns and command["cycles"] > 0:
        state, outcome = _refine(state, columns, bounds, catalog, command, outcome)
    return _report(state, command, catalog, columns, bounds, outcome)


def _seed_axial(state: State, released: list[str]) -> State:
    geometry = state.instrument.geometry
    if "profile.SH/L" not in released or geometry.axial_sl.value > 0 or geometry.axial_hl.value > 0:
        return state
    instrument = state.instrument.model_copy(deep=True)
    instrument.geometry.axial_sl.value = instrument.geometry.axial_hl.value = AXIAL_SEED
    return replace(state.with_models(state.structure, instrument), last={})


def _note_unmatched(catalog: Catalog, released: list[str], outcome: Outcome) -> None:
    for pattern in released:
        names = catalog.match(pattern)
        if not names:
            outcome.dropped.append(pattern)
            outcome.notices.append(("selector_unmatched", f"The model has no parameter {pattern}."))
        elif "*" not in pattern and not any(catalog.selectors[name] for name in names):
            text = f"Nothing of {pattern} can move: symmetry or a constraint fixes it."
            outcome.notices.append(("selector_fixed", text))


def _refine(
    state: State, columns: list[str], bounds: Limits, catalog: Catalog, command: dict[str, Any], outcome: Outcome
) -> tuple[State, Outcome]:
    """Run passes until the shifts are small, the cycles are used up or PASSES is reached."""
    budget = command["cycles"]
    if not all(_LINEAR.fullmatch(path) for path in columns):
        state, bounds, _, result = _pass(state, columns, bounds, command, budget, coarse=True)
        budget -= result.stages[-1].n_iterations
        outcome.cycles += result.stages[-1].n_iterations
    for _ in range(PASSES):
        state, bounds, ref, result = _pass(state, columns, bounds, command, budget, coarse=False)
        budget -= result.stages[-1].n_iterations
        outcome.cycles += result.stages[-1].n_iterations
        _take(result, ref, columns, catalog, outcome)
        if outcome.converged or budget <= 0 or result.status == "diverged":
            break
    return replace(state, last=_record(result, ref, command)), outcome


def _pass(
    state: State, columns: list[str], bounds: Limits, command: dict[str, Any], budget: int, *, coarse: bool
) -> tuple[State, Limits, Any, Any]:
    """Run one least-squares pass; return where it ended, the limits as seen from there, and rietx's objects."""
    ref = open_refinement(state)
    ref.extra_bounds = bounds
    stage = rx.Stage(
        "step", [], max_iter=max(budget, 1), ftol=COARSE_FTOL if coarse else FTOL, lebail_cycles=LEBAIL_CYCLES
    )
    with _guarded(command["soft_seconds"]) as token:
        ref.set_vary(columns, True)
        result = ref.run_stage(
            state.pattern(),
            stage,
            mode=state.mode,
            two_theta_limits=state.limits,
            cancel=token,
            telemetry=False,
            window_area_tol=COARSE_AREA if coarse else WINDOW_AREA,
        )
    moved = state.with_models(ref.structure, ref.instrument)
    if state.mode == "lebail":
        moved = replace(moved, reflections=extract_intensities(ref._model))
    return moved, follow(bounds, state, moved), ref, result


@contextlib.contextmanager
def _guarded(soft_seconds: float) -> Iterator[Any]:
    """Give a token that stops the fit after a while, and turn what rietx raises into refusals."""
    token = rx.CancelToken()
    timer = threading.Timer(soft_seconds, token.cancel)
    timer.daemon = True
    timer.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield token
    except rx.RefinementCancelled as error:
        raise Refused("timeout", "soft_limit", f"The fit did not end within {soft_seconds:g} s.") from error
    except (ValueError, ArithmeticError, np.linalg.LinAlgError, KeyError) as error:
        raise Refused("diverged", "fit_failed", f"The least squares cannot go on: {str(error)[:400]}") from error
    finally:
        timer.cancel()


def _take(result: Any, ref: Any, columns: list[str], catalog: Catalog, outcome: Outcome) -> None:
    """Read a pass's outcome, and close what rietx accepts in silence."""
    answer = answer_covariance(ref)
    stage = result.stages[-1]
    free = list(answer.table.free_paths)
    lost = [path for path in columns if path not in free]
    if answer.stderr is not None:
        lost += [path for path, esd in zip(free, answer.stderr, strict=True) if not math.isfinite(esd)]
    lost += [path for path in (*stage.held, *(stage.cell_reset or []), *(stage.collapsed or [])) if path in columns]
    names = [catalog.representatives[path].name for path in dict.fromkeys(lost) if path in catalog.representatives]
    outcome.dropped = list(dict.fromkeys([*(name for name in outcome.dropped), *names]))
    outcome.answer, outcome.status, outcome.usable = answer, result.status, result.usable
    outcome.shift, outcome.inflation = result.statistics.max_shift_over_esd, result.statistics.esd_inflation
    outcome.converged = result.status == "converged" and (outcome.shift is None or outcome.shift <= SHIFT_CONVERGED)
    found = [
        (item.code.lower(), _translated(item, ref))
        for item in result.diagnostics
        if item.level in _KEPT_LEVELS or item.code in _KEPT_CODES
    ]
    outcome.notices = list(dict.fromkeys([*outcome.notices, *found]))


def _translated(item: Any, ref: Any) -> str:
    """Return a finding's text with the paths it names in our words."""
    where = []
    for path in item.where[:6]:
        mapped = map_path(path, ref.structure)
        where.append(path if mapped is None else mapped.name)
    return str(item.message)[:500] + (f" ({', '.join(where)})" if where else "")


def _record(result: Any, ref: Any, command: dict[str, Any]) -> dict[str, Any]:
    """Return what an export needs of the fit: the result without its curves, and the esds."""
    curves = {"two_theta", "y_obs", "y_calc", "y_background", "sigma", "ticks", "tick_hkl", "provenance"}
    esds = answer_covariance(ref).esds()
    return {
        "result": json.loads(result.model_dump_json(exclude=curves)),
        "released": list(command["released"]),
        "provenance": {"version": rx.__version__},
        "esds": {path: esds[path] for path in sorted(esds)},
    }


def _report(
    state: State, command: dict[str, Any], catalog: Catalog, columns: list[str], bounds: Limits, outcome: Outcome
) -> tuple[State, dict[str, Any], dict[str, np.ndarray]]:
    seen = evaluate(state)
    model = seen.model
    answer = outcome.answer
    representatives = [catalog.representatives[path] for path in columns if path in catalog.representatives]
    names, covariance = _covariance(representatives, columns, answer, outcome.dropped)
    esds = answer.esds() if answer is not None else {}
    parameters = parameter_rows(state, {mapped.name for mapped in representatives}, esds, bounds)
    phases, derived = phase_rows(state, seen, answer)
    statistics = compute_statistics(
        model.y_obs, seen.y_calc, model.sigma, n_free=len(names), y_background=seen.background
    )
    gains: dict[str, float] = {}
    counts: dict[str, int] = {}
    notes: list[tuple[str, str]] = []
    if command["gains"] and state.mode == "rietveld":
        gains, counts, notes = release_gains(state, catalog, columns)
    meta = {
        "parameters": parameters + derived,
        "phases": phases,
        "covariance_names": names,
        "convergence": {
            "converged": outcome.converged,
            "cycles": outcome.cycles,
            "max_shift_over_esd": outcome.shift,
            "status": outcome.status,
            "dropped": outcome.dropped,
        },
        "engine_r": _figures(statistics, outcome),
        "notices": [list(item) for item in (*state.notices, *outcome.notices, *notes)],
        "gains": gains,
        "gain_counts": counts,
        "selectors": _freed(catalog, command["released"]),
        "engine_version": rx.__version__,
        "mode": state.mode,
        "esd_kind": "berar_lelann",
    }
    arrays = {
        "x": model.tt,
        "y_obs": model.y_obs,
        "sigma": model.sigma,
        "y_calc": seen.y_calc,
        "background": seen.background,
        "phase_patterns": seen.parts,
        "covariance": covariance,
    }
    arrays.update({f"reflections_{key}": value for key, value in reflection_arrays(state, seen).items()})
    return state, meta, arrays


def _covariance(
    representatives: list[Mapped], columns: list[str], answer: Answer | None, dropped: list[str]
) -> tuple[list[str], np.ndarray]:
    """Return names and covariance of what was really determined, in our units."""
    if answer is None or answer.stderr is None:
        return [], np.zeros((0, 0))
    kept = [mapped for mapped in representatives if mapped.name not in dropped]
    factors = np.array([mapped.factor for mapped in kept])
    covariance = answer.covariance([mapped.path for mapped in kept]) * np.outer(factors, factors)
    return [mapped.name for mapped in kept], 0.5 * (covariance + covariance.T)


def _figures(statistics: Any, outcome: Outcome) -> dict[str, float]:
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
