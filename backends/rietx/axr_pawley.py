"""The least squares of a profile match: the intensities are solved for at every step of everything else.

To alternate between the two stops where it began when lines start too narrow or out of place, and its esds know
nothing of the intensities. With these projected out of residual and derivatives the steps are those of the joint least
squares (Pawley 1981, doi:10.1107/S0021889881009618; Kaufman 1975, doi:10.1007/BF01932995).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from axr_bounds import Limits
from axr_lebail import Matched, match_intensities, matched_at, matched_model
from axr_lsq import Fit, Settings, minimise, without_hidden
from axr_model import open_refinement
from axr_names import Catalog
from axr_private import COARSE_AREA, WINDOW_AREA, Answer, build_table, compiled, jacobian_and_residual, narrow
from axr_private_match import committed, spread_factor
from axr_report import Evaluation
from axr_solve import PASSES, SHIFT_CONVERGED, Outcome, gone_from, guarded
from axr_state import State
from axr_wire import Refused
from rietx.io.exporters import d_spacings
from rietx.model.corrections import lorentz_polarization

__all__ = ["refine_matched", "squared_factors"]

COARSE_DROP = 1e-5
"""The way towards the minimum ends at this relative fall of the sum of squares: its windows are narrow."""


class _Problem:
    """The residual of a pass, with intensities that follow, by the free parameters in rietx's own space."""

    def __init__(self, state: State, columns: list[str], bounds: Limits, area: float) -> None:
        self.ref = open_refinement(state)
        self.table = build_table(self.ref)
        self.table.set_vary(columns, True)
        narrow(self.table, bounds)
        self.model = compiled(
            state.structure,
            state.instrument,
            state.pattern(),
            mode="lebail",
            limits=state.limits,
            moving=set(self.table.moving_paths),
            area=area,
        )
        self.hidden = 0
        self.residual = np.zeros(0)
        self._near: np.ndarray | None = None

    def matched(self, theta: np.ndarray) -> Matched:
        """Return the model at some values, the best intensities put into it."""
        point = matched_at(self.model, self.table.decode(theta), self._near)
        self._near = point.active
        return point

    def __call__(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weighted residual, observed less calculated, and the Jacobian, shape (k, n)."""
        point = self.matched(theta)
        jacobian, residual = jacobian_and_residual(self.model, self.table, theta)
        self.hidden, self.residual = int(point.active.sum()), residual
        return -residual, point.intensities.let_go(jacobian).T


def refine_matched(
    state: State, columns: list[str], bounds: Limits, catalog: Catalog, command: dict[str, Any], outcome: Outcome
) -> State:
    """Refine what is free beside the intensities, and leave the best ones in the state.

    Args:
        state: where to start.
        columns: rietx paths that are free.
        bounds: limits by rietx path.
        catalog: what can be released, for the names.
        command: ``cycles``, ``soft_seconds`` and ``released``.
        outcome: filled with how it ended.

    Raises:
        Refused: the fit cannot go on, or passed its soft limit.
    """
    deadline = time.monotonic() + command["soft_seconds"]
    coarse = Settings(cycles=command["cycles"], drop=COARSE_DROP)
    state, _, fit = _pass(state, columns, bounds, coarse, COARSE_AREA, deadline)
    outcome.cycles = fit.cycles
    for _ in range(PASSES + 1):
        settings = Settings(cycles=max(command["cycles"] - outcome.cycles, 1))
        state, problem, fit = _pass(state, columns, bounds, settings, WINDOW_AREA, deadline)
        outcome.cycles += fit.cycles
        _take(problem, fit, catalog, outcome)
        gone = gone_from(columns, state.structure, state.instrument)
        if gone and len(gone) < len(columns):
            # an esd of an effect that is not there means nothing, and bends those of the others
            columns = [path for path in columns if path not in gone]
            outcome.absent += gone
            continue
        # a pass without a step has its windows where the answer stands
        if fit.cycles == 0 or outcome.cycles >= command["cycles"] or fit.status == "stuck":
            break
    esds = outcome.answer.esds() if outcome.answer is not None else {}
    record = {"released": list(command["released"]), "esds": {path: esds[path] for path in sorted(esds)}}
    return match_intensities(replace(state, last=record))


def _pass(
    state: State, columns: list[str], bounds: Limits, settings: Settings, area: float, deadline: float
) -> tuple[State, _Problem, Fit]:
    with guarded(deadline - time.monotonic()), np.errstate(all="ignore"):
        problem = _Problem(state, columns, bounds, area)
        lower, upper = problem.table.bounds()
        fit = minimise(problem, problem.table.x0(), lower, upper, settings, deadline)
        if fit.status == "timeout":
            raise Refused("timeout", "soft_limit", "The fit did not end within its soft limit of time.")
        if not np.isfinite(fit.chi2):
            raise Refused("diverged", "fit_failed", "The model cannot be computed where the fit starts.")
        problem(fit.theta)
        committed(problem.ref, problem.table, fit.theta)
    fit = without_hidden(fit, problem.residual.size, problem.hidden)
    return state.with_models(problem.ref.structure, problem.ref.instrument), problem, fit


def _take(problem: _Problem, fit: Fit, catalog: Catalog, outcome: Outcome) -> None:
    """Read how a pass ended; esds carry the factor for serial correlation that those of rietx's own fits do."""
    factor = spread_factor(problem.residual)
    stderr = factor * np.sqrt(np.maximum(np.diag(fit.covariance), 0.0))
    scale = np.where(stderr > 0.0, stderr / factor, 1.0)
    correlation = fit.covariance / np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0)
    paths, known = list(problem.table.free_paths), catalog.representatives
    outcome.dropped = [known[paths[k]].name for k in fit.dropped if paths[k] in known]
    outcome.answer = Answer(problem.table, fit.theta, stderr, correlation)
    outcome.status, outcome.shift, outcome.inflation = fit.status, fit.shift, factor
    outcome.converged = fit.status == "converged" or (fit.status == "stuck" and fit.shift <= SHIFT_CONVERGED)


def squared_factors(
    state: State, seen: Evaluation, answer: Answer | None, inflation: float | None
) -> tuple[dict[str, np.ndarray], int]:
    """Return the |F|^2 that the intensities of a profile match are, and how many of these the data tell apart.

    On the scale of the pattern: intensity over multiplicity and the Lorentz-polarisation factor. Lines that coincide
    share theirs.

    Args:
        state: with the intensities.
        seen: its pattern.
        answer: covariance of what is free beside them.
        inflation: factor that the esds of the answer carry, and those of |F|^2 get.

    Returns:
        Arrays ``f2_calc`` and ``f2_esd`` in the order of `reflection_arrays`, zero esd where there is no intensity; the
        number of intensities, those that coincide counted as one. Nothing and 0 of a structure.
    """
    if state.mode != "lebail":
        return {}, 0
    point = matched_model(state, seen.model)
    free, model = point.intensities, seen.model
    jacobian, covariance = np.zeros((model.tt.size, 0)), np.zeros((0, 0))
    factor = inflation or spread_factor((seen.y_calc - model.y_obs) / model.sigma)
    if answer is not None and answer.stderr is not None:
        jacobian, _ = jacobian_and_residual(model, answer.table, answer.theta)
        stderr = np.where(np.isfinite(answer.stderr), answer.stderr, 0.0) / factor
        covariance = np.asarray(answer.correlation) * np.outer(stderr, stderr)
    rest = (seen.y_calc - model.y_obs) / model.sigma
    freedom = max(rest.size - free.rank - jacobian.shape[1], 1)
    esds = np.zeros(point.strengths.size)
    esds[point.active] = factor * free.esds(jacobian, covariance, float(rest @ rest) / freedom)
    return _by_row(seen, point.strengths, esds), free.rank


def _by_row(seen: Evaluation, strengths: np.ndarray, esds: np.ndarray) -> dict[str, np.ndarray]:
    """Return |F|^2 and its esd of each line of each reflection inside the range."""
    model, values = seen.model, seen.values
    wavelengths = model.line_wavelengths
    found: dict[str, list[np.ndarray]] = {"f2_calc": [], "f2_esd": []}
    start = 0
    for index, phase in enumerate(model.phases):
        cell = [values[f"phases.{index}.cell.{key}"] for key in ("a", "b", "c", "alpha", "beta", "gamma")]
        d = d_spacings(phase.reflections.index, *cell)
        own = slice(start, start + len(phase.reflections))
        start = own.stop
        sines = np.clip(wavelengths[0] / (2.0 * d), 1e-6, 1.0 - 1e-9)
        angle = 2.0 * np.degrees(np.arcsin(sines))
        unit = phase.reflections.multiplicity * lorentz_polarization(angle, values["instrument.polarization"])
        for position, *_ in model.phase_peaks(index, values):
            # as reflection_arrays keeps them
            keep = np.isfinite(position) & (position >= model.tt[0]) & (position <= model.tt[-1])
            found["f2_calc"].append((strengths[own] / unit)[keep])
            found["f2_esd"].append((esds[own] / unit)[keep])
    return {name: np.concatenate(columns) for name, columns in found.items()}
