"""Which limits do sums of parameters have? The Gaussian variance of lines is nowhere below nothing.

U tan^2 + V tan + W, and its like over d with time of flight, may fall below zero inside the range although no
parameter leaves its own limits: the lines then have no width there, GSAS-II clips in silence, and the fit is refused
afterwards. The sum is linear in the parameters, so that the least squares can keep it: see `axg_lsq`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from axg_lsq import Guard
from axg_names import Column
from axg_shape import FWHM_TO_VARIANCE
from axg_state import State

__all__ = ["Kept", "variance_guard"]

GRID = 256
LEAST_CENTIDEG2 = 1e-3
"""GSAS-II's floor of a variance; the same number is taken for microseconds."""
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


def _design(state: State) -> tuple[np.ndarray, dict[str, np.ndarray], float]:
    x = state.x[state.used()]
    if state.flight is not None:
        at = (np.linspace(x[0], x[-1], GRID) - state.values["instrument.zero"]) / state.values["instrument.difC"]
        return at, {name: at**power for name, power in _POWERS.items()}, LEAST_CENTIDEG2
    at = np.linspace(max(float(x[0]), 0.1), min(float(x[-1]), 179.0), GRID)
    tangent = np.tan(np.radians(at / 2.0))
    design = {"profile.U": tangent**2, "profile.V": tangent, "profile.W": np.ones(GRID)}
    return at, design, LEAST_CENTIDEG2 / FWHM_TO_VARIANCE
