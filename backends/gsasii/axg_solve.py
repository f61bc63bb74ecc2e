"""The least squares of one command: passes over windows laid anew, and an honest account of how they ended."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from axg_guard import Kept, strain_guard, together, variance_guard
from axg_lebail import matched_point
from axg_model import build_model
from axg_names import Catalog, Column
from axg_pattern import FULL, NARROW, Engine
from axg_quantities import quantity_of
from axg_restraints import Restraints
from axg_state import State
from axr_lsq import Fit, Guard, Settings, minimise, without_hidden
from axr_wanted import require_wanted
from axr_wire import Refused

__all__ = ["Kit", "Limits", "Outcome", "Residuals", "limits_of", "refine"]

PASSES = 4
"""A pass holds windows and reflection lists where it starts; a fit that moved far is taken up again this often."""
NARROW_DROP = 1e-5
"""The way towards the minimum ends at this relative fall of the sum of squares: its windows are narrow."""
SHIFT_CONVERGED = 0.1
"""Largest shift over esd of a converged fit (McCusker et al. 1999, doi:10.1107/S0021889898009856, section 7)."""
_COEFFICIENTS = ("stephens", "harmonic", "u12", "u13", "u23")
_NO_SHARE = 1e-9
"""A number moves with a column by less than this of it: not at all, but for rounding."""
_LINEAR = ("scale", "background")
_ABSENT = ("size", "strain", "axial", "peak_gauss", "peak_lorentz", "transparency", "roughness", "S/L", "W", "X", "Y")
"""Effects that are not there at zero, or at the floor of the axial divergence; none can be negative."""
_NOTHING = 1e-7
"""A width in degrees (or its square) this close to its limit does nothing to a pattern of any step."""

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
    absent: list[str] = field(default_factory=list)
    """Columns of effects that the fit drove to nothing: they are held there."""
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


@dataclass(frozen=True)
class Kit:
    """What a fit is made of, for a state of one histogram or of several.

    Args:
        residuals: from state, free columns and share of the windows to the least-squares problem of a pass.
        guard: from state, free columns and their values to what keeps variances above nothing.
        strains: from structures, state, free columns and their values to what keeps strains with a direction above
            nothing.
        unit: of where the guard's rows stand; empty takes that of the state's one histogram.
    """

    residuals: Callable[[Any, tuple[Column, ...], float], Any]
    guard: Callable[[Any, tuple[Column, ...], np.ndarray], Kept | None]
    strains: Callable[[Any, Any, tuple[Column, ...], np.ndarray], Guard | None]
    unit: str = ""


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
            if not max(old[0], ends[0]) <= min(old[1], ends[1]) or bound["lower"] > bound["upper"]:
                text = f"The limits of {column.name} leave it no value; give a lower one below the upper one."
                raise Refused("input", "bounds_contradictory", text)
            found[column.name] = (max(old[0], ends[0]), min(old[1], ends[1]))
    return found


def _bounded(catalog: Catalog, selector: str) -> list[tuple[Column, str, float]]:
    # a displacement parameter off the diagonal leaves the mean as it is
    named = [
        (c, key, w) for c in catalog.columns.values() for key, w in c.moves if key == selector and abs(w) > _NO_SHARE
    ]
    # the limits of a width, a texture or a displacement without direction are not those of its coefficients
    freed = [c for c in catalog.freed([selector]) if quantity_of(c.name) not in _COEFFICIENTS]
    return named or [(column, column.name, 1.0) for column in freed]


def refine(
    state: Any, columns: list[Column], limits: Limits, command: dict[str, Any], outcome: Outcome, kit: Kit | None = None
) -> Any:
    """Run passes until the shifts are small, the cycles are used up or PASSES is reached.

    Args:
        state: where to start.
        columns: what is free.
        limits: by column, as the command gave them.
        command: ``cycles`` and ``soft_seconds``.
        outcome: filled with how it ended.
        kit: what a fit of this kind of state is made of; by default of one histogram.

    Returns:
        The state as refined, of the kind that was given.

    Raises:
        Refused: the fit cannot go on, or passed its soft limit.
    """
    kit = kit or Kit(_Residuals, variance_guard, strain_guard)
    deadline = time.monotonic() + command["soft_seconds"]
    if not all(quantity_of(column.name) in _LINEAR for column in columns):
        settings = Settings(cycles=command["cycles"], drop=NARROW_DROP)
        state, fit = _pass(state, columns, limits, settings, NARROW, deadline, kit)
        outcome.cycles += fit.cycles
    for _ in range(PASSES + 1):
        settings = Settings(cycles=max(command["cycles"] - outcome.cycles, 1))
        state, fit = _pass(state, columns, limits, settings, FULL, deadline, kit)
        outcome.cycles += fit.cycles
        _take(fit, columns, outcome)
        gone = _gone(columns, state.values)
        if gone and len(gone) < len(columns):
            # an esd of an effect that is not there means nothing, and bends those of the others
            columns = [column for column in columns if column.name not in gone]
            outcome.absent += gone
            continue
        # a pass without a step has its windows where the answer stands: its figures are those of the answer
        if fit.cycles == 0 or outcome.cycles >= command["cycles"] or fit.status == "stuck":
            break
    _note_width(state, columns, outcome, kit)
    return state


def _note_width(state: Any, columns: list[Column], outcome: Outcome, kit: Kit) -> None:
    """Tell where the Gaussian variance stands on its limit."""
    theta = np.array([state.values[column.name] for column in columns])
    kept = kit.guard(state, tuple(columns), theta)
    if kept is None:
        return
    places = kept.at[kept.guard.touched(theta)]
    if places.size:
        unit = kit.unit or ("degrees" if state.flight is None else "angstrom (d)")
        text = f"The Gaussian width of the instrument is held at nothing near {np.median(places):.4g} {unit}."
        outcome.notices.append(("width_held", text))


def _gone(columns: list[Column], values: dict[str, float]) -> list[str]:
    """Return the free columns whose effect the fit took out of the model."""
    small = [c.name for c in columns if quantity_of(c.name) in _ABSENT and values[c.name] <= c.lower + _NOTHING]
    return [name for name in small if values[name] >= 0.0]


class Residuals(ABC):
    """The least-squares problem of one pass, of one histogram or of several: `computed` says what it is made of.

    Args:
        values: every number where the pass starts.
        free: columns that may move.
        points: number of observations, restraints included.
    """

    hidden = 0
    """Parameters that are solved for at every step beside the free ones."""

    def __init__(self, values: dict[str, float], free: tuple[Column, ...], points: int) -> None:
        self.free, self.base, self.points = free, dict(values), points
        self.origin = np.array([self.base[column.name] for column in free])

    def moved(self, theta: np.ndarray) -> dict[str, float]:
        """Return every number at some values of the free ones."""
        moved = dict(self.base)
        for column, shift in zip(self.free, theta - self.origin, strict=True):
            for key, weight in column.moves:
                moved[key] = moved[key] + weight * float(shift)
        return moved

    def __call__(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weighted residuals and the model's Jacobian; infinite residuals where there is no model."""
        require_wanted()
        try:
            return self.computed(self.moved(theta))
        except Refused as error:
            if error.kind != "diverged":
                raise
            return np.full(self.points, np.inf), np.zeros((len(self.free), self.points))

    @abstractmethod
    def computed(self, values: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Return weighted residuals, shape (n,), and the model's Jacobian, shape (k, n), at given values."""


class _Residuals(Residuals):
    """One histogram: data, restraints, and intensities that follow in a profile match.

    Args:
        state: where the pass starts.
        free: columns that may move.
        share: of GSAS-II's windows.
    """

    def __init__(self, state: State, free: tuple[Column, ...], share: float) -> None:
        self.state = state
        self._engine, self._restraints = Engine(build_model(state), share), Restraints(state)
        self.structures = self._engine.structures
        super().__init__(state.values, free, self._engine.x.size + len(self._restraints))

    def computed(self, values: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
        model = self._engine.model
        if self.state.mode == "lebail":
            point = matched_point(self._engine, values, self.free)
            self.hidden = int(point.active.sum())
            return (model.y - point.seen.y) / model.sigma, point.jacobian
        found = self._engine.compute(values, self.free)
        residual, jacobian = (model.y - found.y) / model.sigma, found.jacobian / model.sigma
        if len(self._restraints):
            residual = np.concatenate([residual, self._restraints.residual(values)])
            jacobian = np.concatenate([jacobian, self._restraints.jacobian(values, self.free)], axis=1)
        return residual, jacobian


def _pass(
    state: Any, columns: list[Column], limits: Limits, settings: Settings, share: float, deadline: float, kit: Kit
) -> tuple[Any, Fit]:
    problem = kit.residuals(state, tuple(columns), share)
    lower = np.array([limits.get(c.name, (c.lower, c.upper))[0] for c in columns])
    upper = np.array([limits.get(c.name, (c.lower, c.upper))[1] for c in columns])
    kept = kit.guard(state, tuple(columns), problem.origin)
    with np.errstate(all="ignore"):
        directed = kit.strains(problem.structures, state, tuple(columns), problem.origin)
        guard = together(None if kept is None else kept.guard, directed)
        fit = minimise(problem, problem.origin, lower, upper, settings, deadline, guard)
    if fit.status == "timeout":
        raise Refused("timeout", "soft_limit", "The fit did not end within its soft limit of time.")
    if not math.isfinite(fit.chi2):
        raise Refused("diverged", "fit_failed", "The model cannot be computed where the fit starts.")
    fit = without_hidden(fit, problem.points, problem.hidden)
    return state.with_values(problem.moved(fit.theta)), fit


def _take(fit: Fit, columns: list[Column], outcome: Outcome) -> None:
    names = [column.name for column in columns]
    kept = [k for k in range(len(names)) if k not in fit.dropped]
    outcome.names = [names[k] for k in kept]
    outcome.covariance = fit.covariance[np.ix_(kept, kept)]
    outcome.dropped = [names[k] for k in fit.dropped]
    outcome.shift, outcome.status = fit.shift, fit.status
    outcome.converged = fit.status == "converged" or (fit.status == "stuck" and fit.shift <= SHIFT_CONVERGED)
