"""How uncertain is what was refined when what else shapes the pattern is not known exactly?

Zero offset, specimen offset, transparency and axial divergence move lines almost as a change of the cell does; widths
of the instrument and of the specimen, displacement parameters and scales share what they do to a line. Cell lengths
go with the wavelength, which is taken as known to its last digit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from axg_axial import AxialSteps
from axg_model import CELL, Model
from axg_names import Catalog
from axg_report import phase_rows
from axg_solve import Outcome
from axg_state import State
from axr_certified import FAR, asked_rows, of_certified, scale_spread
from axr_marginal import Held, asked_for, marginal_covariance, plausible, wavelength_spread
from axr_partition import Intensities
from axr_rows import rows_beside

__all__ = ["Linearised", "asked_of", "uncertainty_rows", "widen", "widened"]


@dataclass(frozen=True)
class Linearised:
    """The linearised problem: residual (calculated minus observed), columns by name, and which way each may go.

    Of a profile match, what its free intensities make up for is taken out of both.
    """

    residual: np.ndarray
    columns: dict[str, np.ndarray]
    ways: dict[str, int]
    free: tuple[str, ...]
    axial: AxialSteps | None
    """What axial divergence would do, where it is neither free nor known."""
    apart: dict[str, np.ndarray]
    """What each displacement parameter would do alone of those that are moved together."""
    intensities: Intensities | None = None

    def following(self, columns: np.ndarray) -> np.ndarray:
        """Return columns over sigma, shape (n,) or (n, k), with free intensities following."""
        return columns if self.intensities is None else self.intensities.let_go(columns)


def uncertainty_rows(
    state: State, model: Model, catalog: Catalog, problem: Linearised, outcome: Outcome, stated: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the uncertainty of each refined, derived or cell parameter as a derived parameter beside it.

    Args:
        state: the state's numbers.
        model: GSAS-II's dictionaries.
        catalog: what can be released.
        problem: the state linearised, with the columns of all candidates.
        outcome: with the covariance of the fit.
        stated: the rows of the parameters: those with an esd get an uncertainty, and cells that are held.
    """
    wider, held = widened(state, model, catalog, problem, outcome)
    asked = asked_of(state.values, problem, outcome, _axial(model, problem), state.certified)
    _, derived = phase_rows(state, model, catalog, wider)
    found = {row["name"]: row["esd"] for row in derived if row["esd"]} | wider.esds(catalog.columns) | held
    return rows_beside(stated, found) + asked


def widened(
    state: State, model: Model, catalog: Catalog, problem: Linearised, outcome: Outcome
) -> tuple[Outcome, dict[str, float]]:
    """Return how a fit ended when what it held is let go within what that plausibly is, and what is open of that.

    Args:
        state: the state's numbers.
        model: GSAS-II's dictionaries.
        catalog: what can be released.
        problem: the state linearised, with the columns of all candidates.
        outcome: with the covariance of the fit.
    """
    spread = 0.0 if state.certified else wavelength_spread(state.values["instrument.wavelength"])
    return widen(state.values, catalog, problem, outcome, spread, _axial(model, problem), state.certified)


def _axial(model: Model, problem: Linearised) -> list[tuple[str, Held]]:
    """Return what axial divergence would do where it is neither free nor known."""
    if problem.axial is None:
        return []
    return [("profile.S/L", Held(problem.following(problem.axial.plausible / model.sigma), 1.0, 1))]


def widen(
    values: dict[str, float],
    catalog: Catalog,
    problem: Linearised,
    outcome: Outcome,
    spread: float,
    axial: list[tuple[str, Held]],
    certified: tuple[str, ...] = (),
) -> tuple[Outcome, dict[str, float]]:
    """Return what `widened` does, of a fit of one histogram or of several.

    Args:
        values: every number.
        catalog: what can be released.
        problem: linearised, with the columns of all candidates.
        outcome: with the covariance of the fit.
        spread: relative standard deviation of the wavelength that lengths go with; 0 where they go with a certified
            cell, or the wavelength with them.
        axial: what axial divergence would do where it is neither free nor known.
        certified: the phases whose cell is exact.
    """
    esds = np.sqrt(np.maximum(np.diag(outcome.covariance), 0.0))
    where = [k for k, name in enumerate(outcome.names) if name in problem.columns and esds[k] > 0.0]
    if not where:
        return outcome, {}
    names = [outcome.names[k] for k in where]
    free = np.stack([problem.columns[name] for name in names], axis=1)
    held = [*_held(values, problem, set(names), certified), *axial]
    atoms = [Held(column, plausible(key, values[key]) or 0.0) for key, column in problem.apart.items()]
    loose = [*(item for _, item in held), *atoms]
    whole = marginal_covariance(free, esds[where], problem.residual, loose)
    light = np.zeros(len(whole))
    light[: len(names)] = [values[n] if ".cell." in n and n.rsplit(".", 1)[-1] in CELL[:3] else 0.0 for n in names]
    light *= spread
    whole += np.outer(light, light)
    covariance = outcome.covariance.copy()
    covariance[np.ix_(where, where)] = whole[: len(names), : len(names)]
    left = np.sqrt(np.diag(whole))[len(names) :]
    found = {name: float(value) for (name, _), value in zip(held, left, strict=False)}
    for number, key in enumerate(problem.apart, len(names) + len(held)):
        functional = np.zeros(len(whole))
        functional[number] = 1.0
        for k, name in enumerate(names):
            functional[k] += dict(catalog.columns[name].moves).get(key, 0.0)
        found[key] = float(np.sqrt(max(functional @ whole @ functional, 0.0)))
    return replace(outcome, covariance=covariance), found


def asked_of(
    values: dict[str, float],
    problem: Linearised,
    outcome: Outcome,
    axial: list[tuple[str, Held]],
    certified: tuple[str, ...],
) -> list[dict[str, Any]]:
    """Return what the lines of phases of certified cell ask for, as derived quantities.

    Args:
        values: as for `widen`.
        problem: as there.
        outcome: as there.
        axial: as there.
        certified: as there.
    """
    cells = {name: column for name, column in problem.columns.items() if of_certified(name, certified)}
    esds = np.sqrt(np.maximum(np.diag(outcome.covariance), 0.0))
    where = [k for k, name in enumerate(outcome.names) if name in problem.columns and esds[k] > 0.0]
    if not cells or not where:
        return []
    names = [outcome.names[k] for k in where]
    free = np.stack([problem.columns[name] for name in names], axis=1)
    loose = [item for _, item in (*_held(values, problem, set(names), certified), *axial)]
    wanted = [Held(column, FAR * abs(values[name])) for name, column in cells.items()]
    return asked_rows(list(cells), values, asked_for(free, esds[where], problem.residual, loose, wanted))


def _held(
    values: dict[str, float], problem: Linearised, free: set[str], certified: tuple[str, ...]
) -> list[tuple[str, Held]]:
    """Return what is held and not known exactly: a certified cell is, and so is a wavelength that goes with none."""
    found = []
    for name, column in problem.columns.items():
        own = name.split(".", 2)[2] if name.startswith("histogram.") else name
        if name in free or of_certified(own, certified):
            continue
        value = values.get(name, 0.0)
        spread = plausible(own, value, values.get(f"{name.removesuffix(own)}instrument.difC"))
        if certified and spread is None:
            spread = scale_spread(own, value)
        if spread is not None:
            found.append((name, Held(column, spread, problem.ways[name])))
    return found
