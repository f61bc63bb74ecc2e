"""Profile matching: per-reflection intensities that the data ask for, with the model's positions and shapes.

GSAS-II's extraction starts from unseeded random numbers, re-partitions once per cycle and never reaches its own
convergence; the intensities are linear, so they are solved for, none below zero.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from axg_model import build_model
from axg_pattern import Computed, Engine
from axg_state import State
from axr_partition import solve_nonnegative
from axr_wire import Refused
from scipy.sparse import csc_array, hstack

__all__ = ["match_intensities"]

MOST = 4000
"""Most reflections of a profile match; the normal matrix is dense."""


def match_intensities(state: State, *, background: bool) -> State:
    """Return the state with the best intensities, and the best background beside them where asked.

    Raises:
        Refused: there are too many reflections.
    """
    engine = Engine(build_model(state))
    model = engine.model
    seen = engine.compute(state.values)
    sizes = [len(structure.hkl) for structure in engine.structures]
    if sum(sizes) > MOST:
        raise Refused("input", "too_many_reflections", f"{sum(sizes)} reflections are too many for a profile match.")
    columns = csc_array(hstack([_profiles(engine, seen, index) for index in range(len(sizes))]))
    target = model.y - seen.background
    if background:
        columns, target = csc_array(hstack([columns, csc_array(engine.rows.T)])), model.y
    weighted = csc_array(columns.multiply((1.0 / model.sigma)[:, None]))
    solution = solve_nonnegative(weighted, target / model.sigma, sum(sizes))
    found, start = [], 0
    for structure, size in zip(engine.structures, sizes, strict=True):
        strengths = np.maximum(solution[start : start + size], 0.0)
        found.append(tuple((*map(float, hkl), float(f2)) for hkl, f2 in zip(structure.hkl, strengths, strict=True)))
        start += size
    matched = replace(state, intensities=tuple(found))
    if background:
        matched = matched.with_values({f"background.{k}": float(v) for k, v in enumerate(solution[start:])})
    return matched


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
