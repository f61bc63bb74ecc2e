"""The least squares over several histograms: the residuals of all, one set of free parameters."""

from __future__ import annotations

import numpy as np
from axg_guard import Kept, strain_guard, together, variance_guard
from axg_joint import JointState, bare, full, local
from axg_lines import Structure
from axg_model import build_model
from axg_names import Catalog, Column
from axg_pattern import Engine
from axg_restraints import Restraints
from axg_solve import Outcome, Residuals
from axr_lsq import Guard

__all__ = ["JointResiduals", "joint_guard", "joint_strains", "local_columns", "member_outcome"]


def local_columns(
    columns: tuple[Column, ...], number: int, state: JointState, values: dict[str, float]
) -> list[tuple[int, Column]]:
    """Return what of the whole's columns moves in a member: place among them, and the member's own column."""
    found = ((k, local(column, number, state, values)) for k, column in enumerate(columns))
    return [(k, column) for k, column in found if column is not None]


class JointResiduals(Residuals):
    """All histograms, one after the other.

    Args:
        state: where the pass starts.
        free: columns of the whole that may move.
        share: of GSAS-II's windows.
    """

    def __init__(self, state: JointState, free: tuple[Column, ...], share: float) -> None:
        self.state = state
        self._engines = [Engine(build_model(member), share) for member in state.members]
        self.structures = tuple(engine.structures for engine in self._engines)
        self._restraints = Restraints(state.members[0])
        points = sum(engine.x.size for engine in self._engines) + len(self._restraints)
        super().__init__(state.values, free, points)

    def computed(self, values: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Return weighted residuals over all histograms, and the model's Jacobian."""
        residual, jacobian, at = np.zeros(self.points), np.zeros((len(self.free), self.points)), 0
        for number, engine in enumerate(self._engines):
            places = local_columns(self.free, number, self.state, values)
            found = engine.compute(self.state.member_values(number, values), tuple(c for _, c in places))
            part = slice(at, at + engine.x.size)
            residual[part] = (engine.model.y - found.y) / engine.model.sigma
            jacobian[[k for k, _ in places], part] = found.jacobian / engine.model.sigma
            at = part.stop
        if len(self._restraints):
            residual[at:] = self._restraints.residual(values)
            jacobian[:, at:] = self._restraints.jacobian(values, self.free)
        return residual, jacobian


def joint_guard(state: JointState, columns: tuple[Column, ...], theta: np.ndarray) -> Kept | None:
    """Return what keeps every histogram's Gaussian variance above nothing; None where nothing of it is free."""
    rows, least, at = [], [], []
    values = state.values
    for number, member in enumerate(state.members):
        places = local_columns(columns, number, state, values)
        where = [k for k, _ in places]
        kept = variance_guard(member, tuple(c for _, c in places), theta[where])
        if kept is None:
            continue
        block = np.zeros((len(kept.at), len(columns)))
        block[:, where] = kept.guard.rows
        rows.append(block)
        least.append(kept.guard.least)
        at.append(kept.at)
    return Kept(Guard(np.vstack(rows), np.concatenate(least)), np.concatenate(at)) if rows else None


def joint_strains(
    structures: tuple[tuple[Structure, ...], ...], state: JointState, columns: tuple[Column, ...], theta: np.ndarray
) -> Guard | None:
    """Return what keeps strains with a direction above nothing in every histogram; None where none of it is free."""
    found = []
    for number, (member, fixed) in enumerate(zip(state.members, structures, strict=True)):
        places = local_columns(columns, number, state, state.values)
        where = [k for k, _ in places]
        guard = strain_guard(fixed, member, tuple(c for _, c in places), theta[where])
        if guard is not None:
            block = np.zeros((len(guard.least), len(columns)))
            block[:, where] = guard.rows
            found.append(Guard(block, guard.least))
    return together(*found)


def member_outcome(
    outcome: Outcome, whole: Catalog, number: int, state: JointState
) -> tuple[Outcome, dict[str, Column]]:
    """Return how the fit ended as one member sees it: its own names, with the columns that they stand for."""
    columns = tuple(whole.columns[name] for name in outcome.names)
    places = local_columns(columns, number, state, state.values)
    names = [bare(columns[k].name)[1] for k, _ in places]
    where = [k for k, _ in places]
    seen = Outcome(
        converged=outcome.converged,
        cycles=outcome.cycles,
        status=outcome.status,
        shift=outcome.shift,
        dropped=[bare(name)[1] for name in outcome.dropped if full(state.names[number], bare(name)[1]) == name],
        names=names,
        covariance=outcome.covariance[np.ix_(where, where)],
    )
    return seen, dict(zip(names, (column for _, column in places), strict=True))
