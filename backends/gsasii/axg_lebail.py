"""Profile matching: per-reflection intensities that the data ask for, with the model's positions and shapes.

GSAS-II's extraction starts from unseeded random numbers, re-partitions once per cycle and never reaches its own
convergence. The intensities are linear: they are solved for, none below zero, at every step of everything else, and the
steps are those of the joint least squares (Pawley 1981, 10.1107/S0021889881009618; separated as by Kaufman 1975,
10.1007/BF01932995). To alternate between the two instead stops where it began when the lines start too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from axg_model import build_model
from axg_names import Column
from axg_pattern import Computed, Engine
from axg_state import State
from axr_partition import Intensities, best_intensities, solve_nonnegative
from axr_wire import Refused
from scipy.sparse import csc_array, hstack

__all__ = ["Matched", "free_intensities", "intensity_esds", "match_intensities", "matched_point"]

MOST = 4000
"""Most reflections of a profile match; the normal matrix is dense."""

MOST_INTENSITIES = 2000
"""Most intensities of a profile match that its gains let go; the weakest beyond are held."""


@dataclass(frozen=True)
class Matched:
    """A pattern whose intensities are the data's.

    Args:
        seen: the pattern, and derivatives by what is free beside the intensities, these held.
        jacobian: the same derivatives over sigma with the intensities following, shape (columns, n).
        profiles: profile of every reflection per unit F^2, over sigma, shape (n, r).
        intensities: F^2 of every reflection, none below zero, shape (r,).
    """

    seen: Computed
    jacobian: np.ndarray
    profiles: csc_array
    intensities: np.ndarray

    @property
    def active(self) -> np.ndarray:
        """Return which reflections have an intensity, shape (r,), bool."""
        return np.asarray(self.intensities > 0.0)

    def free(self, most: int = 0) -> Intensities:
        """Return what the free intensities are in the least squares; the strongest of them where there are more."""
        active = np.flatnonzero(self.active)
        if 0 < most < active.size:
            signal = self.intensities * np.sqrt(self.profiles.multiply(self.profiles).sum(axis=0))
            active = np.sort(active[np.argsort(-signal[active], kind="stable")[:most]])
        return Intensities(csc_array(self.profiles[:, active]))

    def let_go(self, columns: np.ndarray) -> np.ndarray:
        """Return columns over sigma, shape (n, k), less what the intensities make up for."""
        return self.free().let_go(columns)


def matched_point(
    engine: Engine, values: dict[str, float], columns: tuple[Column, ...], *, aside: bool = False
) -> Matched:
    """Return the pattern at given values with the intensities that fit best.

    Args:
        engine: of the model.
        values: every number.
        columns: what is free beside the intensities.
        aside: nearly the best will do, in fewer rounds: for a side measurement.

    Raises:
        Refused: there are too many reflections, or the pattern is not finite.
    """
    sizes = [len(structure.hkl) for structure in engine.structures]
    if sum(sizes) > MOST:
        raise Refused("input", "too_many_reflections", f"{sum(sizes)} reflections are too many for a profile match.")
    model = engine.model
    engine.match(None)
    bare = engine.compute(values)
    profiles = csc_array(hstack([_profiles(engine, bare, index) for index in range(len(sizes))]))
    weighted = csc_array(profiles.multiply((1.0 / model.sigma)[:, None]))
    target = (model.y - bare.background) / model.sigma
    if aside:
        intensities = np.maximum(solve_nonnegative(weighted, target, sum(sizes)), 0.0)
    else:
        intensities = best_intensities(weighted, target, engine.lit)
        engine.lit = intensities > 0.0
    engine.match(tuple(np.split(intensities, np.cumsum(sizes)[:-1])))
    seen = engine.compute(values, columns)
    point = Matched(seen, seen.jacobian / model.sigma, weighted, intensities)
    return replace(point, jacobian=point.let_go(point.jacobian.T).T) if columns else point


def free_intensities(engine: Engine, seen: Computed, notes: list[tuple[str, str]]) -> Intensities:
    """Give an engine the intensities that fit best, and return what they are in the least squares."""
    point = matched_point(engine, seen.values, ())
    count = int(point.active.sum())
    if count > MOST_INTENSITIES:
        text = f"Release gains let the strongest {MOST_INTENSITIES} of {count} intensities go, and hold the others."
        notes.append(("gains_limited", text))
    return point.free(MOST_INTENSITIES)


def match_intensities(state: State, *, aside: bool = False) -> State:
    """Return the state with the intensities that fit best, or with `aside` nearly best.

    Raises:
        Refused: there are too many reflections.
    """
    engine = Engine(build_model(state))
    found = matched_point(engine, state.values, (), aside=aside).intensities
    rows, start = [], 0
    for structure in engine.structures:
        strengths = found[start : start + len(structure.hkl)]
        rows.append(tuple((*map(float, hkl), float(f2)) for hkl, f2 in zip(structure.hkl, strengths, strict=True)))
        start += len(structure.hkl)
    return replace(state, intensities=tuple(rows))


def intensity_esds(
    engine: Engine, values: dict[str, float], columns: tuple[Column, ...]
) -> tuple[list[np.ndarray], int]:
    """Return the esd of every F^2 of a profile match by phase, and how many of these the data tell apart.

    From the joint normal matrix of intensities and what is free beside them; zero where the data give no intensity.
    Lines that coincide share theirs: theirs are esds of the shares.
    """
    point = matched_point(engine, values, columns)
    free, jacobian = point.free(), point.seen.jacobian.T / engine.model.sigma[:, None]
    rest = (engine.model.y - point.seen.y) / engine.model.sigma
    variance = float(rest @ rest) / max(rest.size - free.rank - len(columns), 1)
    covariance = variance * np.linalg.pinv(point.jacobian @ point.jacobian.T)
    esds = np.zeros(point.intensities.size)
    esds[point.active] = free.esds(jacobian, covariance, variance)
    return np.split(esds, np.cumsum([len(structure.hkl) for structure in engine.structures])[:-1]), free.rank


def _profiles(engine: Engine, seen: Computed, index: int) -> csc_array:
    """Return the profile per unit F^2 of every reflection of a phase, lines summed, shape (n, r)."""
    rows, columns, entries = [], [], []
    for number, window, curve in engine.curves(seen, index):
        rows.append(np.arange(window.start, window.stop))
        columns.append(np.full(window.stop - window.start, number))
        entries.append(curve)
    shape = (engine.x.size, len(engine.structures[index].hkl))
    if not rows:
        return csc_array(shape)
    return csc_array((np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=shape)
