"""Release gains: what a Gauss-Newton step would win in sum(w e^2) if a selector were freed.

The score test of Rao (1948), doi:10.1017/S0305004100023987, on the linearised problem: with the free
columns projected out of the residual and of the selector's columns, the gain is the squared length of
the residual's projection on those columns. One Jacobian serves all selectors. A parameter that sits on
a limit counts only in the direction that leads away from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from axr_gain_columns import background_columns, roughness_steps, texture_steps
from axr_lebail import tellable
from axr_linear import DEFAULT, GainSettings, Problem, linearised
from axr_marginal import AXIAL_TRIALS
from axr_names import Catalog
from axr_score import basis, best_share, best_step, gain_of, project, solve_beside
from axr_state import State
from axr_strain import strain_columns
from axr_wanted import require_wanted

__all__ = ["axial_start", "release_gains"]


EQUAL = "@equal"
"""Suffix of the gain of ``phase.P.uiso`` when its atoms share one parameter (the ``equal_uiso`` edit)."""
GENERALISED = "@generalised"
"""Suffix of the gain of ``phase.P.strain`` when it is let depend on direction (the ``broadening`` edit)."""
APART = "@apart"
"""Suffix of the gain of ``phase.P.uiso`` when atoms that share one get parameters of their own (``apart_uiso``)."""
_HIDDEN = ("sample.offset_along", "sample.offset_across")
Gains = dict[str, float]


@dataclass(frozen=True)
class Released:
    """Gain and number of added parameters by selector, what was left out, and the problem they were read from."""

    gains: Gains
    counts: dict[str, int]
    notes: list[tuple[str, str]]
    problem: Problem


def release_gains(state: State, catalog: Catalog, free: list[str], settings: GainSettings = DEFAULT) -> Released:
    """Return what each selector would gain if it were freed.

    Free selectors are listed too: what is left for them to gain, near zero after a converged fit.

    Args:
        state: the state to judge.
        catalog: what can be released in it.
        free: rietx paths that are free.
        settings: bounds of the cost.
    """
    notes: list[tuple[str, str]] = []
    groups = _groups(state, catalog, settings, notes)
    problem = linearised(state, {path for paths in groups.values() for path in paths}, free, notes, settings)
    require_wanted()
    factor = problem.factor
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
    if state.mode == "rietveld":
        gains |= _equal(state, problem, base, rest, settings.rank)
        counts |= {name: 1 for name in gains if name.endswith(EQUAL)}
        _part(problem, blocked, base, rest, settings.rank, gains, counts)
    _extra(problem, catalog, base, rest, settings, gains, counts)
    return Released(gains, counts, notes, problem)


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
    for name, all_paths in catalog.selectors.items():
        paths = tuple(tellable(all_paths)) if state.mode == "lebail" else all_paths
        parts = name.split(".")
        atomic = parts[0] == "phase" and (parts[2] == "atom" or parts[2] == "uiso")
        single_term = parts[0] == "background" and len(parts) > 1 and parts[1] != "fixed"
        if not paths or name in _HIDDEN or single_term:
            continue
        if not (atomic and parts[1] in large):
            groups[name] = paths
    return groups


def _stuck(problem: Problem, path: str) -> bool:
    """Return whether a free parameter sits on a limit that holds it there."""
    way = problem.ways[path]
    return way != 0 and way * float(problem.columns[path] @ problem.residual) >= 0.0


def _gain(problem: Problem, paths: list[str], base: np.ndarray, rest: np.ndarray, rank: float) -> float:
    """Return what freeing these columns together would win, each only in its possible direction."""
    columns, ways = [problem.columns[path] for path in paths], [problem.ways[path] for path in paths]
    return gain_of(columns, ways, base, rest, rank)


def _equal(state: State, problem: Problem, base: np.ndarray, rest: np.ndarray, rank: float) -> Gains:
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


def _part(
    problem: Problem,
    blocked: set[str],
    base: np.ndarray,
    rest: np.ndarray,
    rank: float,
    gains: Gains,
    counts: dict[str, int],
) -> None:
    """Add what atoms that share a displacement parameter would win by their own; what is left where they have them."""
    for index, phase in enumerate(problem.state.structure.phases):
        name = f"phase.{phase.name}.uiso{APART}"
        paths = [f"phases.{index}.atoms.{number}.biso" for number in range(len(phase.atoms))]
        free = [path for path in paths if path in problem.free]
        apart = problem.apart
        if apart is not None and phase.name in problem.state.equal_uiso:
            # the shared one is free already: of n atoms n - 1 are new
            own = [path for path in paths if path in apart.columns and path not in free]
            if free and own:
                columns, ways = [apart.columns[path] for path in own], [apart.ways[path] for path in own]
                gains[name], counts[name] = problem.factor * gain_of(columns, ways, base, rest, rank), len(own)
        elif len(free) > 1:
            gains[name], counts[name] = problem.factor * _left(problem, free, blocked, rank), 0


def _left(problem: Problem, paths: Iterable[str], blocked: set[str], rank: float) -> float:
    """Return what a free selector could still gain beside the other free ones."""
    own = [path for path in paths if path in problem.free and path not in blocked]
    if not own:
        return 0.0
    others = [problem.within[0][path] for path in problem.free if path not in own and path not in blocked]
    columns, ways = [problem.within[0][path] for path in own], [problem.ways[path] for path in own]
    base = basis(others, rank)
    return gain_of(columns, ways, base, project(base, problem.within[1]), rank)


def _extra(
    problem: Problem,
    catalog: Catalog,
    base: np.ndarray,
    rest: np.ndarray,
    settings: GainSettings,
    gains: Gains,
    counts: dict[str, int],
) -> None:
    """Add what no column of the model stands for yet: asymmetry from zero, texture, more background terms."""
    columns = background_columns(problem.model, settings.more_terms)
    _, gain = solve_beside(problem.following(-columns), base, rest, settings.rank)
    gains["background.more"], counts["background.more"] = problem.factor * gain, columns.shape[1]
    if "profile.SH/L" not in gains and catalog.selectors.get("profile.SH/L"):
        steps = project(base, problem.axial)
        gains["profile.SH/L"], counts["profile.SH/L"] = problem.factor * best_share(steps, rest), 1
    matched = problem.state.mode == "lebail"
    if not matched and catalog.selectors.get("sample.roughness") == ():
        steps = project(base, roughness_steps(problem.state) * problem.weight[:, None])
        gains["sample.roughness"], counts["sample.roughness"] = problem.factor * best_share(steps, rest), 1
    require_wanted()
    _directed(problem, base, rest, settings, gains, counts)
    for name, steps in ({} if matched else texture_steps(problem.state)).items():
        gains[name] = problem.factor * best_share(project(base, steps * problem.weight[:, None]), rest)
        whole = name.split("@")[0]
        gains[whole] = max(gains[name], gains.get(whole, 0.0))
        counts[name] = counts[whole] = 1


def _directed(
    problem: Problem, base: np.ndarray, rest: np.ndarray, settings: GainSettings, gains: Gains, counts: dict[str, int]
) -> None:
    """Add what a strain that depends on direction would win, and what is left of it where there is one."""
    for phase in problem.state.structure.phases:
        whole = f"phase.{phase.name}.strain"
        if phase.microstrain is not None and whole in gains:
            gains[whole + GENERALISED], counts[whole + GENERALISED] = gains[whole], counts[whole]
    for name, columns in strain_columns(problem.state).items():
        whole = f"phase.{name}.strain{GENERALISED}"
        _, gain = solve_beside(problem.following(-columns), base, rest, settings.rank)
        gains[whole], counts[whole] = problem.factor * gain, columns.shape[1]


def axial_start(state: State, columns: list[str], settings: GainSettings = DEFAULT) -> float:
    """Return the S/L = H/L from which a fit that frees it at zero should start, 0 where none of the trials gains.

    Args:
        state: S/L and H/L are zero.
        columns: rietx paths that will be free beside them.
        settings: bounds of the cost.
    """
    problem = linearised(state, set(), columns, [], settings)
    base = basis([problem.columns[path] for path in problem.free], settings.rank)
    steps = project(base, problem.axial)
    best = best_step(steps, project(base, problem.residual))
    # the effect grows as the square
    return AXIAL_TRIALS[best.number] * math.sqrt(best.share)
