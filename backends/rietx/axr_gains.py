"""Release gains: what a Gauss-Newton step would win in sum(w e^2) if a selector were freed.

The score test of Rao (1948), doi:10.1017/S0305004100023987, on the linearised problem: with the free
columns projected out of the residual and of the selector's columns, the gain is the squared length of
the residual's projection on those columns. One Jacobian serves all selectors. A parameter that sits on
a limit counts only in the direction that leads away from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from axr_gain_columns import axial_column, background_columns, texture_steps
from axr_model import open_refinement
from axr_names import Catalog
from axr_private import build_table, compiled, jacobian_and_residual
from axr_score import basis, best_share, gain_of, project, solve_beside
from axr_state import State

__all__ = ["GainSettings", "release_gains"]


@dataclass(frozen=True)
class GainSettings:
    """What bounds the cost of the gains.

    Args:
        rows: more points than this are thinned evenly; the gains are scaled up.
        atom_columns: most columns of atoms of one phase; a larger phase gets no gains of atoms.
        rank: columns shorter than this share of their length after projection count as dependent.
        more_terms: how many further background terms ``background.more`` stands for.
    """

    rows: int = 20_000
    atom_columns: int = 120
    rank: float = 1e-7
    more_terms: int = 4


DEFAULT = GainSettings()
EQUAL = "@equal"
"""Suffix of the gain of ``phase.P.uiso`` when its atoms share one parameter (the ``equal_uiso`` edit)."""
_HIDDEN = ("sample.offset_along", "sample.offset_across")
Gains = dict[str, float]


@dataclass(frozen=True)
class _Problem:
    """The linearised problem: residual, named columns, and which way each may go (-1, 0 both, +1)."""

    residual: np.ndarray
    columns: dict[str, np.ndarray]
    ways: dict[str, int]
    free: tuple[str, ...]
    weight: np.ndarray
    model: Any
    factor: float


def release_gains(
    state: State, catalog: Catalog, free: list[str], settings: GainSettings = DEFAULT
) -> tuple[Gains, dict[str, int], list[tuple[str, str]]]:
    """Return gain and number of added parameters by selector, and what was left out.

    Free selectors are listed too: what is left for them to gain, near zero after a converged fit.

    Args:
        state: the state to judge.
        catalog: what can be released in it.
        free: rietx paths that are free.
        settings: bounds of the cost.
    """
    notes: list[tuple[str, str]] = []
    groups = _groups(state, catalog, settings, notes)
    thinned, factor = _thinned(state, settings, notes)
    problem = _problem(thinned, groups, free, factor)
    blocked = {path for path in problem.free if _stuck(problem, path)}
    base = basis([problem.columns[path] for path in problem.free if path not in blocked], settings.rank)
    rest = project(base, problem.residual)
    gains: Gains = {}
    counts: dict[str, int] = {}
    for name, paths in groups.items():
        new = [path for path in paths if path in problem.columns and path not in problem.free]
        if new:
            gains[name] = factor * _gain(problem, new, base, rest, settings.rank)
            counts[name] = len(new)
        elif any(path in problem.free for path in paths):
            gains[name], counts[name] = factor * _left(problem, paths, blocked, settings.rank), 0
    gains |= _equal(state, problem, base, rest, settings.rank)
    counts |= {name: 1 for name in gains if name.endswith(EQUAL)}
    _extra(thinned, problem, catalog, base, rest, settings, gains, counts)
    return gains, counts, notes


def _groups(
    state: State, catalog: Catalog, settings: GainSettings, notes: list[tuple[str, str]]
) -> dict[str, tuple[str, ...]]:
    """Return the selectors that are judged, with their columns."""
    large = set()
    for index, phase in enumerate(state.structure.phases):
        if sum(path.startswith(f"phases.{index}.atoms.") for path in catalog.order) > settings.atom_columns:
            large.add(phase.name)
            text = f"Phase {phase.name} has too many atom parameters for release gains of single atoms."
            notes.append(("gains_limited", text))
    groups = {}
    for name, paths in catalog.selectors.items():
        parts = name.split(".")
        atomic = parts[0] == "phase" and (parts[2] == "atom" or parts[2] == "uiso")
        if not paths or name in _HIDDEN or (parts[0] == "background" and len(parts) > 1):
            continue
        if not (atomic and parts[1] in large):
            groups[name] = paths
    return groups


def _thinned(state: State, settings: GainSettings, notes: list[tuple[str, str]]) -> tuple[State, float]:
    """Return the state on fewer points where there are too many, and what a gain must be multiplied by."""
    used = np.flatnonzero(state.used())
    stride = -(-used.size // settings.rows)
    if stride == 1:
        return state, 1.0
    # both ends stay: the background's polynomials are anchored there
    keep = np.unique(np.r_[used[::stride], used[-1]])
    notes.append(("gains_thinned", f"Release gains are estimated from every {stride}th of {used.size} points."))
    fewer = replace(state, x=state.x[keep], y=state.y[keep], sigma=state.sigma[keep])
    return fewer, used.size / keep.size


def _problem(state: State, groups: dict[str, tuple[str, ...]], free: list[str], factor: float) -> _Problem:
    """Build one Jacobian for the free columns and all candidates."""
    table = build_table(open_refinement(state))
    free_now = set(table.set_vary(free, True)) if free else set()
    geometry = state.instrument.geometry
    dead = geometry.axial_sl.value == 0 and geometry.axial_hl.value == 0
    axial = {path for path in groups.get("profile.SH/L", ()) if dead and path not in free_now}
    wanted = {path for paths in groups.values() for path in paths} - axial
    # a wavelength is freed first: rietx declines it beside a free cell, and each candidate stands alone
    light = sorted(path for path in wanted if path.endswith(".wavelength"))
    if light:
        table.set_vary(light, True)
    table.set_vary(sorted(wanted - set(light)), True)
    model = compiled(
        state.structure,
        state.instrument,
        state.pattern(),
        mode="rietveld",
        limits=state.limits,
        moving=set(table.moving_paths),
    )
    jacobian, residual = jacobian_and_residual(model, table)
    entries = {entry.path: entry for entry in table.entries}
    names = list(table.free_paths)
    return _Problem(
        residual=residual,
        columns={path: jacobian[:, number] for number, path in enumerate(names)},
        ways={path: _way(entries[path]) for path in names},
        free=tuple(path for path in names if path in free_now),
        weight=1.0 / model.sigma,
        model=model,
        factor=factor,
    )


def _way(entry: Any) -> int:
    """Return +1 where a value sits on its lower limit, -1 on its upper, 0 in between."""
    if entry.value <= entry.lo:
        return 1
    return -1 if entry.value >= entry.hi else 0


def _stuck(problem: _Problem, path: str) -> bool:
    """Return whether a free parameter sits on a limit that holds it there."""
    way = problem.ways[path]
    return way != 0 and way * float(problem.columns[path] @ problem.residual) >= 0.0


def _gain(problem: _Problem, paths: list[str], base: np.ndarray, rest: np.ndarray, rank: float) -> float:
    """Return what freeing these columns together would win, each only in its possible direction."""
    columns, ways = [problem.columns[path] for path in paths], [problem.ways[path] for path in paths]
    return gain_of(columns, ways, base, rest, rank)


def _equal(state: State, problem: _Problem, base: np.ndarray, rest: np.ndarray, rank: float) -> Gains:
    """Return what one displacement parameter for all atoms of a phase would win, their proportions kept."""
    found: Gains = {}
    for index, phase in enumerate(state.structure.phases):
        paths = [f"phases.{index}.atoms.{number}.biso" for number in range(len(phase.atoms))]
        if phase.name in state.equal_uiso or any(path in problem.free for path in paths):
            continue
        columns = [
            atom.biso.value * problem.columns[path]
            for path, atom in zip(paths, phase.atoms, strict=True)
            if path in problem.columns and atom.biso.value > 0.0
        ]
        if columns:
            _, gain = solve_beside(np.sum(columns, axis=0)[:, None], base, rest, rank)
            found[f"phase.{phase.name}.uiso{EQUAL}"] = problem.factor * gain
    return found


def _left(problem: _Problem, paths: Iterable[str], blocked: set[str], rank: float) -> float:
    """Return what a free selector could still gain beside the other free ones."""
    own = [path for path in paths if path in problem.free and path not in blocked]
    if not own:
        return 0.0
    others = [problem.columns[path] for path in problem.free if path not in own and path not in blocked]
    base = basis(others, rank)
    return _gain(problem, own, base, project(base, problem.residual), rank)


def _extra(
    state: State,
    problem: _Problem,
    catalog: Catalog,
    base: np.ndarray,
    rest: np.ndarray,
    settings: GainSettings,
    gains: Gains,
    counts: dict[str, int],
) -> None:
    """Add what no column of the model stands for yet: asymmetry from zero, texture, more background terms."""
    found: dict[str, tuple[np.ndarray, int]] = {}
    if "profile.SH/L" not in gains and catalog.selectors.get("profile.SH/L"):
        found["profile.SH/L"] = axial_column(state)
    found["background.more"] = background_columns(problem.model, settings.more_terms)
    for name, (columns, way) in found.items():
        steps, gain = solve_beside(-columns * problem.weight[:, None], base, rest, settings.rank)
        gains[name] = problem.factor * gain if way == 0 or steps[0] * way > 0 else 0.0
        counts[name] = columns.shape[1]
    for name, steps in texture_steps(state).items():
        gains[name] = problem.factor * best_share(project(base, steps * problem.weight[:, None]), rest)
        whole = name.split("@")[0]
        gains[whole] = max(gains[name], gains.get(whole, 0.0))
        counts[name] = counts[whole] = 1
