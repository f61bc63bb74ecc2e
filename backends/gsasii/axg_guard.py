"""Which limits do sums of parameters have? The Gaussian variance of lines is nowhere below nothing.

U tan^2 + V tan + W, and its like over d with time of flight, may fall below zero inside the range although no
parameter leaves its own limits: the lines then have no width there, GSAS-II clips in silence, and the fit is refused
afterwards. The sum is linear in the parameters, so that the least squares can keep it: see `axr_lsq`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from axg_lines import Structure
from axg_names import Column
from axg_shape import FWHM_TO_VARIANCE
from axg_state import State
from axr_lsq import Guard

__all__ = ["Kept", "strain_guard", "together", "variance_guard"]

GRID = 256
LEAST_CENTIDEG2 = 1e-3
"""GSAS-II's floor of a variance; the same number is taken for microseconds."""
LEAST_SHARE = 1e-4
"""Share of its largest value that the square of an anisotropic strain keeps in every direction."""
MOST_DIRECTIONS = 400
_POWERS = {"profile.sig-0": 0, "profile.sig-q": 1, "profile.sig-1": 2, "profile.sig-2": 4}


@dataclass(frozen=True)
class Kept:
    """The guard of a fit.

    Args:
        guard: rows and limits for the free parameters.
        at: where each row stands, degrees 2theta or angstrom (spacing), shape (m,).
    """

    guard: Guard
    at: np.ndarray


def variance_guard(state: State, columns: tuple[Column, ...], theta: np.ndarray) -> Kept | None:
    """Return what keeps the instrument's Gaussian variance above nothing; None where nothing of it is free.

    Args:
        state: where a pass starts.
        columns: what is free.
        theta: their values, shape (k,).
    """
    at, design, least = _design(state)
    free = np.array([sum((design[key] * w for key, w in c.moves if key in design), np.zeros(GRID)) for c in columns])
    if not np.any(free):
        return None
    whole = np.sum([state.values[name] * row for name, row in design.items()], axis=0)
    return Kept(Guard(free.T, least - (whole - free.T @ theta)), at)


def strain_guard(
    structures: tuple[Structure, ...], state: State, columns: tuple[Column, ...], theta: np.ndarray
) -> Guard | None:
    """Return what keeps microstrain after Stephens above nothing in every direction; None where none of it is free.

    Args:
        structures: the reflections of each phase.
        state: where a pass starts.
        columns: what is free.
        theta: their values, shape (k,).
    """
    rows, least = [], []
    for phase, fixed in zip(state.phases, structures, strict=True):
        names = [f"phase.{phase.name}.strain.{name}" for name in phase.stephens]
        moves = np.array([[dict(c.moves).get(name, 0.0) for c in columns] for name in names])
        if not names or not np.any(moves):
            continue
        assert fixed.stephens is not None
        unique = _directions(fixed.stephens)
        free, whole = unique @ moves, unique @ np.array([state.values[name] for name in names])
        rows.append(free)
        least.append(LEAST_SHARE * np.abs(whole).max() - (whole - free @ theta))
    return Guard(np.vstack(rows), np.concatenate(least)) if rows else None


def _directions(terms: np.ndarray) -> np.ndarray:
    """Return the different rows, up to their length, of what coefficients are multiplied with, shape (m, k)."""
    unit = terms.T / np.maximum(np.linalg.norm(terms, axis=0), 1e-300)[:, None]
    _, first = np.unique(np.round(unit, 3), axis=0, return_index=True)
    return np.asarray(unit[np.sort(first)[:MOST_DIRECTIONS]])


def together(*guards: Guard | None) -> Guard | None:
    """Return one guard for all."""
    there = [guard for guard in guards if guard is not None]
    if not there:
        return None
    return Guard(np.vstack([g.rows for g in there]), np.concatenate([g.least for g in there]))


def _design(state: State) -> tuple[np.ndarray, dict[str, np.ndarray], float]:
    x = state.x[state.used()]
    if state.flight is not None:
        at = (np.linspace(x[0], x[-1], GRID) - state.values["instrument.zero"]) / state.values["instrument.difC"]
        return at, {name: at**power for name, power in _POWERS.items()}, LEAST_CENTIDEG2
    at = np.linspace(max(float(x[0]), 0.1), min(float(x[-1]), 179.0), GRID)
    tangent = np.tan(np.radians(at / 2.0))
    design = {"profile.U": tangent**2, "profile.V": tangent, "profile.W": np.ones(GRID)}
    return at, design, LEAST_CENTIDEG2 / FWHM_TO_VARIANCE
