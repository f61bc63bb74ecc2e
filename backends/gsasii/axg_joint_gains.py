"""Release gains over several histograms: one Jacobian over everything, each histogram's part at its own points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from axg_anisotropy import set_anisotropic
from axg_axial import AXIAL_FLOOR, axial_steps
from axg_background import NESTED, function_rows
from axg_gains import (
    GENERALISED,
    HIDDEN,
    MORE_TERMS,
    RANK,
    ROUGHNESS,
    Gained,
    add_apart,
    add_equal,
    directed_steps,
    gain_alone,
    is_stuck,
    left_to_gain,
    moved_apart,
    roughness_steps,
    texture_steps,
    too_large,
    ways_of,
)
from axg_joint import bare, full
from axg_joint_solve import local_columns
from axg_model import build_model
from axg_names import build_catalog
from axg_pattern import NARROW, Engine
from axg_uncertainty import Linearised
from axr_marginal import Held
from axr_score import basis, best_share, project, solve_beside

if TYPE_CHECKING:
    from axg_joint_report import Whole

__all__ = ["joint_gains"]


def joint_gains(whole: Whole) -> tuple[Gained, list[tuple[str, Held]]]:
    """Return gains by selector of the whole, and what axial divergence would do where it is neither free nor known."""
    notes: list[tuple[str, str]] = []
    engines = [Engine(model, NARROW) for model in whole.models]
    groups = _groups(whole, notes)
    problem = _problem(whole, engines, groups)
    blocked = {name for name in problem.free if is_stuck(problem, name)}
    base = basis([problem.columns[name] for name in problem.free if name not in blocked], RANK)
    rest = project(base, problem.residual)
    gains: dict[str, float] = {}
    counts: dict[str, int] = {}
    axials: list[tuple[str, Held]] = []
    for selector, names in groups.items():
        new = [name for name in names if name not in problem.free]
        counts[selector] = len(new)
        gains[selector] = gain_alone(problem, new, base, rest) if new else left_to_gain(problem, names, blocked)
    add_equal(whole.models[0], problem, whole.catalog, base, rest, gains, counts)
    add_apart(whole.models[0], problem, whole.catalogs[0], blocked, base, rest, gains, counts)
    for number, engine in enumerate(engines):
        place = _Place(whole, number, base, rest)
        axials += _add_own(place, problem, gains, counts)
        _add_shapes(place, engine, gains, counts)
    _add_anisotropic(whole, problem, base, rest, gains, counts)
    return Gained(gains, counts, notes, problem), axials


def _groups(whole: Whole, notes: list[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the selectors that are judged, with their columns."""
    large = too_large(whole.models[0], whole.catalogs[0], notes)
    groups = {}
    for selector, names in whole.catalog.selectors.items():
        own = bare(selector)[1]
        parts = own.split(".")
        atomic = parts[0] == "phase" and parts[2] in ("atom", "uiso")
        single = parts[0] == "background" and len(parts) > 1 and parts[1] != "fixed"
        single = single or (parts[0] == "phase" and parts[2] == "strain_hydrostatic" and len(parts) > 3)
        if names and own not in HIDDEN and not single and not (atomic and parts[1] in large):
            groups[selector] = names
    return groups


def _slices(whole: Whole) -> list[slice]:
    ends = np.cumsum([model.x.size for model in whole.models])
    return [slice(int(end) - model.x.size, int(end)) for end, model in zip(ends, whole.models, strict=True)]


def _problem(whole: Whole, engines: list[Engine], groups: dict[str, tuple[str, ...]]) -> Linearised:
    """Build one Jacobian for the free columns and all candidates."""
    wanted = {name for names in groups.values() for name in names} | {column.name for column in whole.columns}
    apart = moved_apart(whole.models[0], whole.columns)
    columns = (*(column for name, column in whole.catalog.columns.items() if name in wanted), *apart)
    values, parts = whole.state.values, _slices(whole)
    jacobian = np.zeros((len(columns), parts[-1].stop))
    residual = np.zeros(parts[-1].stop)
    for number, (engine, seen, part) in enumerate(zip(engines, whole.seen, parts, strict=True)):
        places = local_columns(columns, number, whole.state, values)
        found = engine.compute(seen.values, tuple(column for _, column in places))
        jacobian[[k for k, _ in places], part] = found.jacobian / engine.model.sigma
        residual[part] = (seen.y - engine.model.y) / engine.model.sigma
    return Linearised(
        residual=residual,
        columns={column.name: row for column, row in zip(columns[: len(columns) - len(apart)], jacobian, strict=False)},
        ways=ways_of(columns, values, whole.limits),
        free=tuple(column.name for column in whole.columns),
        axial=None,
        apart={c.name: row for c, row in zip(apart, jacobian[len(columns) - len(apart) :], strict=True)},
    )


ANISOTROPIC = "@anisotropic"
"""Suffix of the gain of ``phase.P.uiso`` when its atoms are given six parameters each (the ``anisotropic`` edit)."""


def _add_anisotropic(
    whole: Whole,
    problem: Linearised,
    base: np.ndarray,
    rest: np.ndarray,
    gains: dict[str, float],
    counts: dict[str, int],
) -> None:
    """Add what anisotropic displacement parameters would win in a phase whose isotropic ones are all free."""
    large = too_large(whole.models[0], whole.catalogs[0], [])
    for phase in whole.state.members[0].phases:
        selector = f"phase.{phase.name}.uiso"
        names = whole.catalog.selectors[selector]
        if phase.anisotropic:
            gains[selector + ANISOTROPIC], counts[selector + ANISOTROPIC] = gains.get(selector, 0.0), 0
        if phase.anisotropic or phase.name in large or not names or not set(names) <= set(problem.free):
            continue
        rows, places = [], [_Place(whole, number, base, rest) for number in range(len(whole.models))]
        for place in places:
            trial = set_anisotropic(place.model.state, {"phase": phase.name})
            engine = Engine(build_model(trial), NARROW)
            catalog = build_catalog(engine.model)
            columns = tuple(catalog.columns[name] for name in catalog.selectors[selector])
            rows.append(place.placed(engine.compute(trial.values, columns).jacobian))
        together = np.sum(rows, axis=0)
        if together.shape[1] > len(names):
            gains[selector + ANISOTROPIC] = solve_beside(together, base, rest, RANK)[1]
            counts[selector + ANISOTROPIC] = together.shape[1] - len(names)


class _Place:
    """One histogram among all: what its changes alone would win.

    Args:
        whole: the fit.
        number: of the histogram.
        base: of the free columns, over the points of all.
        rest: the residual beside them.
    """

    def __init__(self, whole: Whole, number: int, base: np.ndarray, rest: np.ndarray) -> None:
        self.model, self.seen, self.name = whole.models[number], whole.seen[number], whole.state.names[number]
        self._part, self._base, self._rest = _slices(whole)[number], base, rest

    def placed(self, rows: np.ndarray) -> np.ndarray:
        """Return rows over the histogram's points as columns over all points, weighted."""
        columns = np.zeros((self._rest.size, len(rows)))
        columns[self._part] = (rows / self.model.sigma).T
        return columns

    def best(self, steps: np.ndarray) -> float:
        """Return what the best of some steps of the pattern, shape (trials, n), takes off the sum of squares."""
        return best_share(-project(self._base, self.placed(steps)), self._rest)

    def beside(self, rows: np.ndarray) -> float:
        """Return what columns, shape (k, n), would win together."""
        return solve_beside(self.placed(rows), self._base, self._rest, RANK)[1]


def _add_own(
    place: _Place, problem: Linearised, gains: dict[str, float], counts: dict[str, int]
) -> list[tuple[str, Held]]:
    """Add what only one histogram could have: further background terms, axial divergence.

    Returns:
        What some axial divergence would do, where it is neither free nor known.
    """
    model, seen = place.model, place.seen
    kind, have = model.state.background
    if kind in NESTED:
        name = full(place.name, "background.more")
        rows = function_rows(kind, model.x, have + MORE_TERMS, model.state.wavelength)[have:]
        gains[name], counts[name] = place.beside(rows), MORE_TERMS
    axial, own = seen.values.get("profile.S/L"), full(place.name, "profile.S/L")
    if axial is None or axial > AXIAL_FLOOR or own in problem.free:
        return []
    tried = axial_steps(model, seen)
    gains[full(place.name, "profile.SH/L")] = place.best(tried.changes.T)
    return [(own, Held(place.placed(tried.plausible[None, :])[:, 0], 1.0, 1))]


def _add_shapes(place: _Place, engine: Engine, gains: dict[str, float], counts: dict[str, int]) -> None:
    """Add what a rough surface, a strain with a direction and a texture would win in one histogram."""
    rough = full(place.name, ROUGHNESS)
    moved = roughness_steps(engine, place.seen) if rough in gains else None
    if moved is not None:
        gains[rough] = place.best(moved)
    for name, slopes in directed_steps(engine, place.seen):
        strain = full(place.name, name)
        known = (gains.get(strain, 0.0), counts.get(strain, 0))
        told = known if slopes is None else (place.beside(slopes), len(slopes))
        gains[strain + GENERALISED], counts[strain + GENERALISED] = told
    for name, steps in texture_steps(engine, place.seen):
        own = full(place.name, name)
        gains[own] = place.best(steps)
        head = own.partition("@")[0]
        gains[head] = max(gains[own], gains.get(head, 0.0))
        counts[own] = counts[head] = 1
