"""How uncertain is what was refined when what else shapes the pattern is not known exactly?

Zero offset, specimen displacement, transparency and axial divergence move lines almost as a change of the cell does;
widths of the instrument and of the specimen, displacement parameters and scales share what they do to a line. Cell
lengths go with the wavelength, which is taken as known to its last digit.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from axr_certified import FAR, asked_rows, of_certified, scale_spread
from axr_linear import AXIAL_PATHS, Problem
from axr_marginal import Held, asked_for, marginal_covariance, plausible, plausible_axial, wavelength_spread
from axr_names import B_TO_U, Catalog, Mapped, map_path
from axr_private import Answer
from axr_report import Evaluation, phase_rows
from axr_rows import rows_beside
from axr_state import State

__all__ = ["Wider", "certified_in", "uncertainty_rows", "widened"]

_WHITE = 1.2694
"""What the factor of Berar and Lelann (1991, doi:10.1107/S0021889890008391) makes of a variance where residuals are
nothing but noise: rietx states it of its own implementation."""
_Loose = list[tuple[Mapped | None, Held]]
_LENGTH = re.compile(r"phases\.\d+\.cell\.(a|b|c)")


def uncertainty_rows(
    seen: Evaluation, problem: Problem, answer: Answer | None, catalog: Catalog, stated: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the uncertainty of each refined, derived or cell parameter as a derived parameter beside it.

    Args:
        seen: the state's pattern.
        problem: the state linearised, with the columns of all candidates.
        answer: covariance of the fit.
        catalog: what can be released.
        stated: the rows of the parameters: those with an esd get an uncertainty, and cells that are held.
    """
    if answer is None or answer.stderr is None:
        return []
    wider = widened(seen, problem, answer, catalog)
    _, derived = phase_rows(problem.state, seen, wider.answer)
    found = {row["name"]: row["esd"] for row in derived if row["esd"]}
    for path, esd in wider.answer.esds().items():
        mapped = map_path(path, problem.state.structure)
        if mapped is not None:
            found[mapped.name] = esd * mapped.factor
    found |= wider.held
    return rows_beside(stated, found) + wider.asked


@dataclass(frozen=True)
class Wider:
    """A fit when what it held is let go.

    Args:
        answer: with the covariance.
        held: how far what is held may be from where it is held, by our name and in our unit; and how uncertain each
            displacement parameter is of those that the fit holds in proportion.
        asked: rows of what the lines of phases of certified cell ask for.
    """

    answer: Answer
    held: dict[str, float]
    asked: list[dict[str, Any]] = field(default_factory=list)


def widened(seen: Evaluation, problem: Problem, answer: Answer, catalog: Catalog) -> Wider:
    """Return a fit with what it held let go within what that plausibly is.

    Args:
        seen: the state's pattern.
        problem: the state linearised, with the columns of all candidates.
        answer: covariance of the fit.
        catalog: what can be released.
    """
    paths = list(answer.table.free_paths)
    stderr = np.where(np.isfinite(answer.stderr), answer.stderr, 0.0)  # type: ignore[arg-type]
    where = [k for k, path in enumerate(paths) if path in problem.columns and stderr[k] > 0.0]
    if not where:
        return Wider(answer, {})
    names = [paths[k] for k in where]
    free = np.stack([problem.columns[path] for path in names], axis=1)
    held, atoms = _held(seen.values, problem, catalog, set(names)), _proportional(problem, answer, names)
    loose = [*(item for _, item in held), *(atom.held for atom in atoms)]
    whole = marginal_covariance(free, stderr[where], problem.residual, loose, _WHITE)
    if not certified_in(problem.state):
        light = np.zeros(len(whole))
        light[: len(names)] = [_length(problem.state, path) for path in names]
        light *= wavelength_spread(problem.state.instrument.source.lines[0].wavelength.value)
        whole += np.outer(light, light)
    left = np.sqrt(np.diag(whole))[len(names) :]
    found = {m.name: float(v) * m.factor for (m, _), v in zip(held, left, strict=False) if m is not None}
    for number, atom in enumerate(atoms, len(names) + len(held)):
        found[atom.name] = B_TO_U * _combined(whole, names.index(atom.source), number, atom.ratio)
    cells = _certified_columns(seen.values, problem, catalog)
    shifts = asked_for(free, stderr[where], problem.residual, loose, list(cells.values()), _WHITE) if cells else []
    here = {m.name: seen.values[p] for p, m in catalog.representatives.items() if m.name in cells}
    asked = asked_rows(list(cells), here, shifts)
    return Wider(_with_covariance(answer, stderr, where, whole[: len(names), : len(names)]), found, asked)


def _with_covariance(answer: Answer, stderr: np.ndarray, where: list[int], covariance: np.ndarray) -> Answer:
    correlation, spread = np.eye(len(stderr)), stderr.copy()
    spread[where] = np.sqrt(np.diag(covariance))
    correlation[np.ix_(where, where)] = covariance / np.outer(spread[where], spread[where])
    return replace(answer, stderr=spread, correlation=correlation)


@dataclass(frozen=True)
class _Atom:
    """A displacement parameter that follows another one, and what it would do alone."""

    name: str
    source: str
    ratio: float
    held: Held


def _proportional(problem: Problem, answer: Answer, free: list[str]) -> list[_Atom]:
    """Return the displacement parameters that the fit moves together though the atoms may differ."""
    structure, found = problem.state.structure, list[_Atom]()
    if problem.apart is None:
        return found
    apart = problem.apart.columns
    for entry in answer.table.entries:
        terms = [(entry.path, 1.0)] if entry.path in free else list(entry.tie.terms) if entry.tie is not None else []
        mapped = map_path(entry.path, structure)
        if entry.path not in apart or len(terms) != 1 or terms[0][0] not in free or mapped is None:
            continue
        source, ratio = terms[0]
        spread = plausible(mapped.name, entry.value * B_TO_U) or 0.0
        found.append(_Atom(mapped.name, source, float(ratio), Held(apart[entry.path], spread / B_TO_U)))
    return found


def _combined(covariance: np.ndarray, shared: int, own: int, ratio: float) -> float:
    """Return the standard deviation of ratio * shared + own."""
    variance = ratio**2 * covariance[shared, shared] + 2.0 * ratio * covariance[shared, own] + covariance[own, own]
    return math.sqrt(max(float(variance), 0.0))


def _certified_columns(values: dict[str, float], problem: Problem, catalog: Catalog) -> dict[str, Held]:
    """Return what the certified cells would do if they were let go, by our names of their parameters."""
    certified, found = certified_in(problem.state), {}
    for path, column in problem.columns.items():
        mapped = catalog.representatives.get(path)
        if mapped is not None and of_certified(mapped.name, certified):
            found[mapped.name] = Held(column, FAR * abs(values[path]))
    return found


def certified_in(state: State) -> tuple[str, ...]:
    """Return the phases of a state whose cell is certified; one that left the model fixes nothing."""
    there = {phase.name for phase in state.structure.phases}
    return tuple(name for name in state.known_cells if name in there)


def _length(state: State, path: str) -> float:
    if not _LENGTH.fullmatch(path):
        return 0.0
    _, index, _, key = path.split(".")
    return float(getattr(state.structure.phases[int(index)].cell, key).value)


def _held(
    values: dict[str, float], problem: Problem, catalog: Catalog, free: set[str]
) -> list[tuple[Mapped | None, Held]]:
    """Return what is held and not known exactly: a certified cell is, and so is a wavelength that goes with none."""
    found: list[tuple[Mapped | None, Held]] = []
    certified = certified_in(problem.state)
    for path, column in problem.columns.items():
        mapped = catalog.representatives.get(path)
        if path in free or mapped is None:
            continue
        value, spread = values.get(path, 0.0) * mapped.factor, None
        if not of_certified(mapped.name, certified):
            spread = plausible(mapped.name, value) or (scale_spread(mapped.name, value) if certified else None)
        if spread is not None:
            found.append((mapped, Held(column, spread / mapped.factor, problem.ways[path])))
    if not any(path in problem.columns for path in AXIAL_PATHS):
        found.append((None, Held(problem.axial[:, plausible_axial()], 1.0, 1)))
    return found
