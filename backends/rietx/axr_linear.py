"""The linearised problem of a state: its residual, and the derivative of every parameter that could be free."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from axr_gain_columns import axial_steps
from axr_lebail import matched_model, tellable
from axr_model import open_refinement
from axr_partition import Intensities
from axr_private import build_table, compiled, jacobian_and_residual
from axr_state import State
from scipy.sparse import csc_array

__all__ = ["AXIAL_PATHS", "DEFAULT", "GainSettings", "Problem", "linearised"]

AXIAL_PATHS = ("instrument.geometry.axial_sl", "instrument.geometry.axial_hl")


@dataclass(frozen=True)
class GainSettings:
    """What bounds the cost of the gains.

    Args:
        rows: more points than this are thinned evenly; the gains are scaled up.
        atom_columns: most columns of atoms of one phase; a larger phase gets no gains of atoms.
        rank: columns shorter than this share of their length after projection count as dependent.
        more_terms: how many further background terms ``background.more`` stands for.
        reflections: most intensities of a profile match that are let go; the weakest beyond are held.
    """

    rows: int = 20_000
    atom_columns: int = 120
    rank: float = 1e-7
    more_terms: int = 4
    reflections: int = 2000


DEFAULT = GainSettings()


@dataclass(frozen=True)
class Problem:
    """The linearised problem: residual, named columns, and which way each may go (-1, 0 both, +1).

    Of a profile match, what its free intensities make up for is taken out of both.
    """

    state: State
    residual: np.ndarray
    columns: dict[str, np.ndarray]
    ways: dict[str, int]
    free: tuple[str, ...]
    weight: np.ndarray
    model: Any
    factor: float
    intensities: Intensities | None = None

    def following(self, changes: np.ndarray) -> np.ndarray:
        """Return changes of the pattern, shape (rows, k), over sigma, with free intensities following."""
        weighted = changes * self.weight[:, None]
        return weighted if self.intensities is None else self.intensities.let_go(weighted)

    @cached_property
    def apart(self) -> Problem | None:
        """The problem of the displacement parameters that are moved together, each alone; None where none are."""
        equal = self.state.equal_uiso
        phases = [(index, phase) for index, phase in enumerate(self.state.structure.phases) if phase.name in equal]
        paths = {f"phases.{index}.atoms.{n}.biso" for index, phase in phases for n in range(len(phase.atoms))}
        return linearised(replace(self.state, equal_uiso=()), paths, [], []) if paths else None

    @cached_property
    def within(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The free columns and the residual in a basis of these columns' span, each of shape (free,).

        Lengths and angles among them are what they are on all the points, at a hundredth of the cost.
        """
        columns = np.stack([self.columns[path] for path in self.free], axis=1)
        norms = np.linalg.norm(columns, axis=0)
        span, _ = np.linalg.qr(columns / np.where(norms > 0.0, norms, 1.0))
        return dict(zip(self.free, (span.T @ columns).T, strict=True)), span.T @ self.residual

    @cached_property
    def axial(self) -> np.ndarray:
        """Weighted change of the pattern by each of AXIAL_TRIALS, from S/L = H/L = 0, shape (rows, trials)."""
        return self.following(axial_steps(self.state))


def linearised(
    state: State, wanted: set[str], free: list[str], notes: list[tuple[str, str]], settings: GainSettings = DEFAULT
) -> Problem:
    """Build one Jacobian for the free columns and all candidates.

    Args:
        state: where to linearise.
        wanted: rietx paths of the candidates.
        free: rietx paths that are free.
        notes: filled with what bounded the cost.
        settings: bounds of the cost.
    """
    state, factor = _thinned(state, settings, notes)
    table = build_table(open_refinement(state))
    free_now = set(table.set_vary(free, True)) if free else set()
    wanted = set(tellable(wanted)) if state.mode == "lebail" else wanted
    geometry = state.instrument.geometry
    dead = geometry.axial_sl.value == 0 and geometry.axial_hl.value == 0
    wanted = {path for path in wanted if not (dead and path in AXIAL_PATHS and path not in free_now)}
    # a wavelength is freed first: rietx declines it beside a free cell, and each candidate stands alone
    light = sorted(path for path in wanted if path.endswith(".wavelength"))
    if light:
        table.set_vary(light, True)
    table.set_vary(sorted(wanted - set(light)), True)
    model = compiled(
        state.structure,
        state.instrument,
        state.pattern(),
        mode=state.mode,
        limits=state.limits,
        moving=set(table.moving_paths),
    )
    intensities = _intensities(state, model, settings, notes) if state.mode == "lebail" else None
    jacobian, residual = _following(intensities, *jacobian_and_residual(model, table))
    entries = {entry.path: entry for entry in table.entries}
    names = list(table.free_paths)
    return Problem(
        state=state,
        residual=residual,
        columns={path: jacobian[:, number] for number, path in enumerate(names)},
        ways={path: _way(entries[path]) for path in names},
        free=tuple(path for path in names if path in free_now),
        weight=1.0 / model.sigma,
        model=model,
        factor=factor,
        intensities=intensities,
    )


def _following(
    intensities: Intensities | None, jacobian: np.ndarray, residual: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return Jacobian and residual less what free intensities make up for."""
    if intensities is None:
        return jacobian, residual
    return intensities.let_go(jacobian), intensities.let_go(residual)


def _intensities(state: State, model: Any, settings: GainSettings, notes: list[tuple[str, str]]) -> Intensities:
    """Put a state's intensities into a model, and return what they are in its least squares."""
    point = matched_model(state, model)
    signal = point.strengths * np.sqrt(point.profiles.multiply(point.profiles).sum(axis=0))
    active = np.flatnonzero(signal > 0.0)
    if active.size > settings.reflections:
        text = (
            f"Release gains let the strongest {settings.reflections} of {active.size} intensities go, and hold others."
        )
        notes.append(("gains_limited", text))
        active = np.sort(active[np.argsort(-signal[active], kind="stable")[: settings.reflections]])
    return Intensities(csc_array(point.profiles[:, active]))


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


def _way(entry: Any) -> int:
    """Return +1 where a value sits on its lower limit, -1 on its upper, 0 in between."""
    if entry.value <= entry.lo:
        return 1
    return -1 if entry.value >= entry.hi else 0
