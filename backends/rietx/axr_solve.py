"""The least squares of one command: passes of rietx's solver, and an honest account of how they ended."""

from __future__ import annotations

import contextlib
import json
import math
import re
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import rietx as rx
from axr_bounds import Limits, follow
from axr_model import open_refinement
from axr_names import Catalog, map_path
from axr_private import COARSE_AREA, WINDOW_AREA, Answer, answer_covariance, table_of
from axr_state import State
from axr_stop import StopToken
from axr_wanted import require_wanted
from axr_wire import Refused

__all__ = ["PASSES", "SHIFT_CONVERGED", "Outcome", "gone_from", "guarded", "refine"]

FTOL = 1e-7
"""Relative fall of the sum of squares at which a pass ends: 0.03 esd of a single parameter at 10 000 points."""
SHIFT_CONVERGED = 0.1
"""Largest shift over esd of a converged fit (McCusker et al. 1999, doi:10.1107/S0021889898009856, section 7)."""
PASSES = 3
"""A pass freezes peak windows where it starts; a fit that still moves is taken up again this often at most."""
COARSE_FTOL = 1e-6
"""The way towards the minimum is made with narrow windows, at a tenth of the cost; the answer never is."""
_LINEAR = re.compile(r"phases\.\d+\.scale|instrument\.background\.(c\d+|scale)")
"""Columns that the pattern depends on linearly: they need no way towards the minimum."""
_ABSENT = re.compile(
    r"phases\.\d+\.(lor|gauss)_(size|strain)|instrument\.geometry\.axial_[sh]l|instrument\.profile\.[wxy]"
    r"|instrument\.geometry\.(surface_roughness\.b|sample_transparency)"
)
"""Effects that are not there at zero; none can be negative."""
_NOTHING = 1e-7
"""A width in degrees (or its square) or a ratio below this does nothing to a pattern of any step."""
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
    unmatched: list[str] = field(default_factory=list)
    """Selectors that the model does not have."""
    dropped: list[str] = field(default_factory=list)
    """Parameters of ours that the engine held, put back or could not determine."""
    absent: list[str] = field(default_factory=list)
    """rietx paths of effects that the fit drove to nothing: they are held there."""
    notices: list[tuple[str, str]] = field(default_factory=list)
    findings: list[tuple[str, str]] = field(default_factory=list)
    """What rietx found worth saying of the last pass."""
    answer: Answer | None = None


def refine(
    state: State, columns: list[str], bounds: Limits, catalog: Catalog, command: dict[str, Any], outcome: Outcome
) -> State:
    """Run passes until the shifts are small, the cycles are used up or PASSES is reached.

    Args:
        state: where to start.
        columns: rietx paths that are free.
        bounds: limits by rietx path, as seen from the start.
        catalog: what can be released, for the names.
        command: ``cycles``, ``soft_seconds`` and ``released``.
        outcome: filled with how it ended.

    Raises:
        Refused: the fit cannot go on, or passed its soft limit.
    """
    end = time.monotonic() + command["soft_seconds"]
    if not all(_LINEAR.fullmatch(path) for path in columns):
        state, bounds, outcome.cycles = _approach(state, columns, bounds, end, command["cycles"])
    for _ in range(PASSES + 1):
        state, bounds, ref, result = _pass(state, columns, bounds, end, command["cycles"] - outcome.cycles)
        outcome.cycles += result.stages[-1].n_iterations
        gone = gone_from(columns, ref.structure, ref.instrument)
        _take(result, ref, columns, catalog, outcome)
        if gone and len(gone) < len(columns):
            # an esd of an effect that is not there means nothing, and bends those of the others
            columns = [path for path in columns if path not in gone]
            outcome.absent += gone
            continue
        if outcome.converged or outcome.cycles >= command["cycles"] or result.status == "diverged":
            break
    return replace(state, last=_record(result, ref, command))


def gone_from(columns: list[str], structure: Any, instrument: Any) -> list[str]:
    """Return the free columns whose effect the fit took out of the model."""
    values = {entry.path: entry.value for entry in table_of(structure, instrument).entries}
    return [path for path in columns if _ABSENT.fullmatch(path) and abs(values[path]) <= _NOTHING]


def _approach(state: State, columns: list[str], bounds: Limits, end: float, budget: int) -> tuple[State, Limits, int]:
    """Walk towards the minimum with narrow windows; return where that ends, and the cycles it took."""
    ref = open_refinement(state)
    ref.extra_bounds = bounds
    stage = rx.Stage("approach", [], max_iter=budget, ftol=COARSE_FTOL)
    with guarded(end - time.monotonic()) as token:
        ref.set_vary(columns, True)
        cycles = ref.approach(
            state.pattern(), stage, mode=state.mode, limits=state.limits, cancel=token, area=COARSE_AREA
        )
    moved = state.with_models(ref.structure, ref.instrument)
    return moved, follow(bounds, state, moved), cycles


def _pass(state: State, columns: list[str], bounds: Limits, end: float, budget: int) -> tuple[State, Limits, Any, Any]:
    """Run one least-squares pass; return where it ended, the limits as seen from there, and rietx's objects."""
    ref = open_refinement(state)
    ref.extra_bounds = bounds
    stage = rx.Stage("step", [], max_iter=max(budget, 1), ftol=FTOL)
    with guarded(end - time.monotonic()) as token:
        ref.set_vary(columns, True)
        result = ref.run_stage(
            state.pattern(),
            stage,
            mode=state.mode,
            two_theta_limits=state.limits,
            cancel=token,
            telemetry=False,
            window_area_tol=WINDOW_AREA,
        )
    moved = state.with_models(ref.structure, ref.instrument)
    return moved, follow(bounds, state, moved), ref, result


@contextlib.contextmanager
def guarded(seconds: float) -> Iterator[Any]:
    """Give a token that stops the fit after a while, and turn what rietx raises into refusals."""
    token = StopToken()
    timer = threading.Timer(max(seconds, 0.0), token.cancel)
    timer.daemon = True
    timer.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield token
    except rx.RefinementCancelled as error:
        require_wanted()
        raise Refused("timeout", "soft_limit", "The fit did not end within its soft limit of time.") from error
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
    outcome.dropped = names
    outcome.answer, outcome.status, outcome.usable = answer, result.status, result.usable
    outcome.shift, outcome.inflation = result.statistics.max_shift_over_esd, result.statistics.esd_inflation
    outcome.converged = result.status == "converged" and (outcome.shift is None or outcome.shift <= SHIFT_CONVERGED)
    found = [
        (item.code.lower(), _translated(item, ref))
        for item in result.diagnostics
        if item.level in _KEPT_LEVELS or item.code in _KEPT_CODES
    ]
    outcome.findings = found


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
