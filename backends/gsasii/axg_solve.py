"""The least squares of one command: passes over windows laid anew, and an honest account of how they ended."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from axg_lsq import Fit, Settings, minimise
from axg_model import build_model
from axg_names import Catalog, Column, quantity_of
from axg_pattern import FULL, NARROW, Engine
from axg_state import State
from axr_wire import Refused

__all__ = ["Limits", "Outcome", "limits_of", "refine"]

PASSES = 4
"""A pass holds windows and reflection lists where it starts; a fit that moved far is taken up again this often."""
NARROW_DROP = 1e-5
"""The way towards the minimum ends at this relative fall of the sum of squares: its windows are narrow."""
SHIFT_CONVERGED = 0.1
"""Largest shift over esd of a converged fit (McCusker et al. 1999, doi:10.1107/S0021889898009856, section 7)."""
_LINEAR = ("scale", "background")

Limits = dict[str, tuple[float, float]]


@dataclass
class Outcome:
    """How the least squares of one command ended."""

    converged: bool = True
    cycles: int = 0
    status: str = "evaluated"
    shift: float | None = None
    unmatched: list[str] = field(default_factory=list)
    """Selectors that the model does not have."""
    dropped: list[str] = field(default_factory=list)
    """Columns that the data do not determine."""
    notices: list[tuple[str, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Columns of the covariance."""
    covariance: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def esds(self, columns: dict[str, Column]) -> dict[str, float]:
        """Return the esd of every number that moved with a determined column."""
        weights: dict[str, np.ndarray] = {}
        for position, name in enumerate(self.names):
            for key, weight in columns[name].moves:
                weights.setdefault(key, np.zeros(len(self.names)))[position] += weight
        return {key: math.sqrt(max(float(w @ self.covariance @ w), 0.0)) for key, w in weights.items()}


def limits_of(catalog: Catalog, values: dict[str, float], bounds: list[dict[str, Any]]) -> Limits:
    """Return limits by column; a bound on a number that follows another is one on what it follows.

    Args:
        catalog: what can be released.
        values: where the fit starts.
        bounds: ``selector``, ``lower``, ``upper``; a selector is a parameter's name or stands for all it frees.
    """
    found: Limits = {}
    for bound in bounds:
        for column, key, weight in _bounded(catalog, bound["selector"]):
            base = values[column.name] - values[key] / weight
            ends = sorted((base + bound["lower"] / weight, base + bound["upper"] / weight))
            old = found.get(column.name, (column.lower, column.upper))
            found[column.name] = (max(old[0], ends[0]), min(old[1], ends[1]))
    return found


def _bounded(catalog: Catalog, selector: str) -> list[tuple[Column, str, float]]:
    named = [(c, key, w) for c in catalog.columns.values() for key, w in c.moves if key == selector]
    return named or [(column, column.name, 1.0) for column in catalog.freed([selector])]


def refine(state: State, columns: list[Column], limits: Limits, command: dict[str, Any], outcome: Outcome) -> State:
    """Run passes until the shifts are small, the cycles are used up or PASSES is reached.

    Args:
        state: where to start.
        columns: what is free.
        limits: by column, as the command gave them.
        command: ``cycles`` and ``soft_seconds``.
        outcome: filled with how it ended.

    Raises:
        Refused: the fit cannot go on, or passed its soft limit.
    """
    deadline = time.monotonic() + command["soft_seconds"]
    if not all(quantity_of(column.name) in _LINEAR for column in columns):
        settings = Settings(cycles=command["cycles"], drop=NARROW_DROP)
        state, fit = _pass(state, columns, limits, settings, NARROW, deadline)
        outcome.cycles += fit.cycles
    for _ in range(PASSES):
        settings = Settings(cycles=max(command["cycles"] - outcome.cycles, 1))
        state, fit = _pass(state, columns, limits, settings, FULL, deadline)
        outcome.cycles += fit.cycles
        _take(fit, columns, outcome)
        # a pass without a step has its windows where the answer stands: its figures are those of the answer
        if fit.cycles == 0 or outcome.cycles >= command["cycles"] or fit.status == "stuck":
            break
    return state


def _pass(
    state: State, columns: list[Column], limits: Limits, settings: Settings, share: float, deadline: float
) -> tuple[State, Fit]:
    engine = Engine(build_model(state), share)
    model = engine.model
    free = tuple(columns)
    base = dict(state.values)
    origin = np.array([base[column.name] for column in free])

    def problem(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        try:
            found = engine.compute(_moved(base, free, theta - origin), free)
        except Refused as error:
            if error.kind != "diverged":
                raise
            return np.full(model.x.size, np.inf), np.zeros((len(free), model.x.size))
        return (model.y - found.y) / model.sigma, found.jacobian / model.sigma

    lower = np.array([limits.get(c.name, (c.lower, c.upper))[0] for c in free])
    upper = np.array([limits.get(c.name, (c.lower, c.upper))[1] for c in free])
    with np.errstate(all="ignore"):
        fit = minimise(problem, origin, lower, upper, settings, deadline)
    if fit.status == "timeout":
        raise Refused("timeout", "soft_limit", "The fit did not end within its soft limit of time.")
    if not math.isfinite(fit.chi2):
        raise Refused("diverged", "fit_failed", "The model cannot be computed where the fit starts.")
    return state.with_values(_moved(base, free, fit.theta - origin)), fit


def _moved(values: dict[str, float], columns: tuple[Column, ...], shifts: np.ndarray) -> dict[str, float]:
    moved = dict(values)
    for column, shift in zip(columns, shifts, strict=True):
        for key, weight in column.moves:
            moved[key] = moved[key] + weight * float(shift)
    return moved


def _take(fit: Fit, columns: list[Column], outcome: Outcome) -> None:
    names = [column.name for column in columns]
    kept = [k for k in range(len(names)) if k not in fit.dropped]
    outcome.names = [names[k] for k in kept]
    outcome.covariance = fit.covariance[np.ix_(kept, kept)]
    outcome.dropped = [names[k] for k in fit.dropped]
    outcome.shift, outcome.status = fit.shift, fit.status
    outcome.converged = fit.status == "converged" or (fit.status == "stuck" and fit.shift <= SHIFT_CONVERGED)
