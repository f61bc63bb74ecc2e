"""Release gains: what a Gauss-Newton step would win in sum(w e^2) if a selector were freed.

One Jacobian over everything that can be released serves all selectors. A parameter that sits on a limit counts
only in the direction that leads away from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from axg_axial import AXIAL_FLOOR, axial_steps
from axg_background import NESTED, function_rows
from axg_broadening import stephens_slopes, stephens_terms, strain_unit
from axg_lebail import free_intensities
from axg_lines import march_dollase, rough_surface
from axg_model import Model, cell_of
from axg_names import Catalog, Column, build_catalog
from axg_pattern import NARROW, Computed, Engine
from axg_uncertainty import Linearised
from axr_marginal import ROUGHNESS_TRIALS
from axr_score import basis, best_share, gain_of, project, solve_beside
from GSASII import GSASIIlattice as G2lat

__all__ = [
    "GENERALISED",
    "HIDDEN",
    "MORE_TERMS",
    "RANK",
    "ROUGHNESS",
    "Gained",
    "add_apart",
    "add_equal",
    "directed_steps",
    "gain_alone",
    "is_stuck",
    "left_to_gain",
    "moved_apart",
    "release_gains",
    "roughness_steps",
    "texture_steps",
    "too_large",
    "ways_of",
]

RANK = 1e-7
"""Columns shorter than this share of their length after projection count as dependent."""
ATOM_COLUMNS = 120
"""A phase with more columns of atoms gets no gains of single atoms."""
MORE_TERMS = 4
"""How many further background terms ``background.more`` stands for."""
GENERALISED = "@generalised"
"""Suffix of the gain of ``phase.P.strain`` when it is let depend on direction (the ``broadening`` edit)."""
MOST_COEFFICIENTS = 9
"""A phase with more of Stephens' coefficients (triclinic) gets no such gain."""
EQUAL = "@equal"
"""Suffix of the gain of ``phase.P.uiso`` when its atoms share one parameter (the ``equal_uiso`` edit)."""
APART = "@apart"
"""Suffix of the gain of ``phase.P.uiso`` when atoms that share one get parameters of their own (``apart_uiso``)."""
MARCH_TRIALS = (0.5, 0.65, 0.8, 0.9, 1.12, 1.3, 1.6, 2.2)
"""March-Dollase coefficients that are tried: plates below 1, needles above. Steps and not a derivative: at r = 1
all axes have the same one, and in a cubic phase it vanishes."""
MOST_AXES = 40
_CUBIC = ((1, 0, 0), (1, 1, 0), (1, 1, 1))
_UNIAXIAL = ((0, 0, 1), (1, 0, 0), (1, 1, 0))
_TRIGONAL = ((0, 0, 1), (1, 0, 0), (1, 0, 4))
_AXES = {"m3": _CUBIC, "m3m": _CUBIC, "3R": _CUBIC, "3mR": _CUBIC}
_AXES |= dict.fromkeys(("3", "3m1", "31m"), _TRIGONAL) | dict.fromkeys(("4/m", "4/mmm", "6/m", "6/mmm"), _UNIAXIAL)
_OTHER = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
ROUGHNESS = "sample.roughness"
HIDDEN = ("sample.offset_along", "sample.offset_across")

Gains = dict[str, float]


@dataclass(frozen=True)
class Gained:
    """What releases would win.

    Args:
        gains: predicted drop of the sum of squares by selector.
        counts: number of parameters that each would add.
        notes: what was left out: (code, text).
        problem: the linearised problem that they come from.
    """

    gains: Gains
    counts: dict[str, int]
    notes: list[tuple[str, str]]
    problem: Linearised


def release_gains(
    model: Model, seen: Computed, catalog: Catalog, free: list[Column], limits: dict[str, tuple[float, float]]
) -> Gained:
    """Return gain and number of added parameters by selector, and what was left out.

    Free selectors are listed too: what is left for them to gain, near zero after a converged fit.

    Args:
        model: GSAS-II's dictionaries.
        seen: the state's pattern.
        catalog: what can be released in it.
        free: columns that are free.
        limits: by column, as the command gave them.
    """
    notes: list[tuple[str, str]] = []
    groups = _groups(model, catalog, notes)
    engine = Engine(model, NARROW)
    problem = _problem(engine, seen, catalog, groups, free, limits, notes)
    blocked = {name for name in problem.free if is_stuck(problem, name)}
    base = basis([problem.columns[name] for name in problem.free if name not in blocked], RANK)
    rest = project(base, problem.residual)
    gains: Gains = {}
    counts: dict[str, int] = {}
    for selector, names in groups.items():
        new = [name for name in names if name not in problem.free]
        if new:
            gains[selector] = gain_alone(problem, new, base, rest)
            counts[selector] = len(new)
        else:
            gains[selector], counts[selector] = left_to_gain(problem, names, blocked), 0
    matched = model.state.mode == "lebail"
    if not matched:
        add_equal(model, problem, catalog, base, rest, gains, counts)
        add_apart(model, problem, catalog, blocked, base, rest, gains, counts)
    _add_terms(model, problem, base, rest, gains, counts)
    _add_axial(model, problem, base, rest, gains)
    if not matched:
        _add_textures(engine, seen, base, rest, gains, counts)
        _add_roughness(engine, seen, base, rest, gains)
    _add_directed(engine, seen, problem, base, rest, gains, counts)
    return Gained(gains, counts, notes, problem)


def too_large(model: Model, catalog: Catalog, notes: list[tuple[str, str]]) -> set[str]:
    """Return the phases with too many atoms for gains of single ones, and tell so."""
    large = set()
    for phase in model.state.phases:
        if sum(name.startswith(f"phase.{phase.name}.atom.") for name in catalog.columns) > ATOM_COLUMNS:
            large.add(phase.name)
            text = f"Phase {phase.name} has too many atom parameters for release gains of single atoms."
            notes.append(("gains_limited", text))
    return large


def _groups(model: Model, catalog: Catalog, notes: list[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the selectors that are judged, with their columns."""
    large = too_large(model, catalog, notes)
    groups = {}
    for selector, names in catalog.selectors.items():
        parts = selector.split(".")
        atomic = parts[0] == "phase" and parts[2] in ("atom", "uiso")
        single_term = parts[0] == "background" and len(parts) > 1 and parts[1] != "fixed"
        if names and selector not in HIDDEN and not single_term and not (atomic and parts[1] in large):
            groups[selector] = names
    return groups


def _problem(
    engine: Engine,
    seen: Computed,
    catalog: Catalog,
    groups: dict[str, tuple[str, ...]],
    free: list[Column],
    limits: dict[str, tuple[float, float]],
    notes: list[tuple[str, str]],
) -> Linearised:
    """Build one Jacobian for the free columns and all candidates."""
    model = engine.model
    wanted = {name for names in groups.values() for name in names} | {column.name for column in free}
    columns = tuple(column for name, column in catalog.columns.items() if name in wanted)
    apart = moved_apart(model, free)
    residual, intensities = (seen.y - model.y) / model.sigma, None
    if model.state.mode == "lebail":
        intensities = free_intensities(engine, seen, notes)
        residual = intensities.let_go(residual)
    jacobian = engine.compute(seen.values, columns + tuple(apart)).jacobian / model.sigma
    if intensities is not None:
        jacobian = intensities.let_go(jacobian.T).T
    names = tuple(column.name for column in free)
    given = seen.values.get("profile.S/L")  # none over the time of flight
    unknown = "profile.S/L" not in names and given is not None and given <= AXIAL_FLOOR
    return Linearised(
        residual=residual,
        columns={column.name: row for column, row in zip(columns, jacobian, strict=False)},
        ways=ways_of(columns, seen.values, limits),
        free=names,
        axial=axial_steps(model, seen) if unknown else None,
        apart={column.name: row for column, row in zip(apart, jacobian[len(columns) :], strict=True)},
        intensities=intensities,
    )


def ways_of(
    columns: Sequence[Column], values: dict[str, float], limits: dict[str, tuple[float, float]]
) -> dict[str, int]:
    """Return into which direction each column may go: 1 or -1 from a limit that it sits on, 0 into both."""
    ways = {}
    for column in columns:
        lower, upper = limits.get(column.name, (column.lower, column.upper))
        value = values[column.name]
        ways[column.name] = 1 if value <= lower else (-1 if value >= upper else 0)
    return ways


def moved_apart(model: Model, free: list[Column]) -> list[Column]:
    """Return the displacement parameters that are moved together though the atoms may differ, each alone."""
    prefixes = tuple(f"phase.{phase}." for phase in model.state.equal_uiso)
    shared = [c for c in free if c.name.startswith(prefixes) and c.name.endswith(".uiso") and len(c.moves) > 1]
    return [replace(c, name=key, moves=((key, 1.0),)) for c in shared for key, _ in c.moves]


def is_stuck(problem: Linearised, name: str) -> bool:
    """Return whether a free parameter sits on a limit that holds it there."""
    way = problem.ways[name]
    return way != 0 and way * float(problem.columns[name] @ problem.residual) >= 0.0


def gain_alone(problem: Linearised, names: list[str], base: np.ndarray, rest: np.ndarray) -> float:
    """Return what freeing some columns together would win beside the free ones."""
    return gain_of([problem.columns[n] for n in names], [problem.ways[n] for n in names], base, rest, RANK)


def left_to_gain(problem: Linearised, names: tuple[str, ...], blocked: set[str]) -> float:
    """Return what a free selector could still gain beside the other free ones."""
    own = [name for name in names if name not in blocked]
    if not own:
        return 0.0
    base = basis([problem.columns[n] for n in problem.free if n not in own and n not in blocked], RANK)
    return gain_alone(problem, own, base, project(base, problem.residual))


def add_equal(
    model: Model,
    problem: Linearised,
    catalog: Catalog,
    base: np.ndarray,
    rest: np.ndarray,
    gains: Gains,
    counts: dict[str, int],
) -> None:
    """Add what one displacement parameter for all atoms of a phase would win, their proportions kept."""
    values = model.state.values
    for phase in model.state.phases:
        names = catalog.selectors[f"phase.{phase.name}.uiso"]
        if phase.name in model.state.equal_uiso or any(name in problem.free for name in names):
            continue
        known = [values[n] * problem.columns[n] for n in names if n in problem.columns and values[n] > 0.0]
        if known:
            name = f"phase.{phase.name}.uiso{EQUAL}"
            gains[name] = solve_beside(np.sum(known, axis=0)[:, None], base, rest, RANK)[1]
            counts[name] = 1


def add_apart(
    model: Model,
    problem: Linearised,
    catalog: Catalog,
    blocked: set[str],
    base: np.ndarray,
    rest: np.ndarray,
    gains: Gains,
    counts: dict[str, int],
) -> None:
    """Add what atoms that share a displacement parameter would win by their own; what is left where they have them."""
    shared = model.state.equal_uiso
    alone = build_catalog(replace(model, state=replace(model.state, equal_uiso=()))) if shared else catalog
    for phase in model.state.phases:
        name, selector = f"phase.{phase.name}.uiso{APART}", f"phase.{phase.name}.uiso"
        own = tuple(column for column in alone.selectors[selector] if column.endswith(".uiso"))
        free = tuple(column for column in own if column in problem.free)
        if phase.name in shared:
            # the shared one is free already: of n sites n - 1 are new
            moves = [alone.columns[column].moves for column in own if column not in free]
            known = [np.sum([f * problem.apart[k] for k, f in m], axis=0) for m in moves if m[0][0] in problem.apart]
            if free and known:
                gains[name], counts[name] = gain_of(known, [0] * len(known), base, rest, RANK), len(known)
        elif len(free) > 1:
            gains[name], counts[name] = left_to_gain(problem, free, blocked), 0


def _add_axial(model: Model, problem: Linearised, base: np.ndarray, rest: np.ndarray, gains: Gains) -> None:
    """Put what axial divergence would win at its best in the place of what its derivative says at the floor."""
    if problem.axial is not None:
        steps = project(base, problem.following(problem.axial.changes / model.sigma[:, None]))
        gains["profile.SH/L"] = best_share(-steps, rest)


def _add_roughness(engine: Engine, seen: Computed, base: np.ndarray, rest: np.ndarray, gains: Gains) -> None:
    """Put what a rough surface would win at its best in the place of what its derivative at none says."""
    moved = roughness_steps(engine, seen) if ROUGHNESS in gains else None
    if moved is not None:
        gains[ROUGHNESS] = best_share(-project(base, (moved / engine.model.sigma).T), rest)


def roughness_steps(engine: Engine, seen: Computed) -> np.ndarray | None:
    """Return what rough surfaces would do to the pattern, shape (trials, n); None where one is there or none can be."""
    if seen.values.get(ROUGHNESS) != 0.0:
        return None
    moved = np.zeros((len(ROUGHNESS_TRIALS), engine.x.size))
    for index, lines in enumerate(seen.lines):
        changes = np.stack([rough_surface(depth, lines.position[0]) - 1.0 for depth in ROUGHNESS_TRIALS])
        moved += engine.intensity_changes(seen, index, np.nan_to_num(changes, nan=-1.0))
    return moved


def _add_directed(
    engine: Engine,
    seen: Computed,
    problem: Linearised,
    base: np.ndarray,
    rest: np.ndarray,
    gains: Gains,
    counts: dict[str, int],
) -> None:
    """Add what a strain that depends on direction would win, and what is left of it where there is one."""
    for whole, moved in directed_steps(engine, seen):
        if moved is None:
            gains[whole + GENERALISED], counts[whole + GENERALISED] = gains.get(whole, 0.0), counts.get(whole, 0)
            continue
        columns = problem.following((moved / engine.model.sigma).T)
        gains[whole + GENERALISED] = solve_beside(columns, base, rest, RANK)[1]
        counts[whole + GENERALISED] = len(moved)


def directed_steps(engine: Engine, seen: Computed) -> Iterator[tuple[str, np.ndarray | None]]:
    """Yield what coefficients of a strain with a direction do to the pattern, shape (k, n), by ``phase.P.strain``.

    None stands for a phase that has such a strain.
    """
    for index, phase in enumerate(engine.model.state.phases):
        whole = f"phase.{phase.name}.strain"
        if phase.stephens:
            yield whole, None
            continue
        fixed, lines = engine.structures[index], seen.lines[index]
        terms = stephens_terms(fixed.hkl, fixed.group)
        if phase.strain_axis is not None or len(terms) > MOST_COEFFICIENTS:
            continue
        slopes = stephens_slopes(seen.values[whole], terms, lines.d, strain_unit(seen.values))
        # degrees over tan(theta), in centidegrees; microseconds over d
        law = 100.0 * np.tan(np.radians(lines.position[0] / 2.0)) if lines.rise is None else lines.d
        yield whole, engine.width_changes(seen, index, np.nan_to_num(slopes * law))


def _add_terms(
    model: Model, problem: Linearised, base: np.ndarray, rest: np.ndarray, gains: Gains, counts: dict[str, int]
) -> None:
    """Add what the next terms of the background would win."""
    kind, have = model.state.background
    if kind not in NESTED:
        return
    rows = function_rows(kind, model.x, have + MORE_TERMS, model.state.wavelength)[have:]
    gains["background.more"] = solve_beside(problem.following((rows / model.sigma).T), base, rest, RANK)[1]
    counts["background.more"] = MORE_TERMS


def _add_textures(
    engine: Engine, seen: Computed, base: np.ndarray, rest: np.ndarray, gains: Gains, counts: dict[str, int]
) -> None:
    """Add what a texture would win, by axis and at its best, for each phase without one."""
    for name, moved in texture_steps(engine, seen):
        gains[name] = best_share(-project(base, (moved / engine.model.sigma).T), rest)
        whole = name.partition("@")[0]
        gains[whole] = max(gains[name], gains.get(whole, 0.0))
        counts[name] = counts[whole] = 1


def texture_steps(engine: Engine, seen: Computed) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what textures would do to the pattern, shape (trials, n), by ``phase.P.preferred_orientation@h,k,l``.

    For each phase without one; at most MOST_AXES axes are tried.
    """
    model, tried = engine.model, 0
    for index, phase in enumerate(model.state.phases):
        if phase.axis is not None or tried >= MOST_AXES:
            continue
        laue = model.phases[phase.name]["General"]["SGData"]["SGLaue"]
        axes = _AXES.get(laue, _OTHER)
        metric, fixed = G2lat.cell2A(cell_of(phase, seen.values)), engine.structures[index]
        changes = np.stack([march_dollase(fixed, metric, axis, r) - 1.0 for axis in axes for r in MARCH_TRIALS])
        moved = engine.intensity_changes(seen, index, changes)
        trials = len(MARCH_TRIALS)
        for number, axis in enumerate(axes):
            name = f"phase.{phase.name}.preferred_orientation@{','.join(map(str, axis))}"
            yield name, moved[number * trials : (number + 1) * trials]
        tried += len(axes)
