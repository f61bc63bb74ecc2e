"""How large is each of many bumps, when they overlap and stand beside calculated lines of imperfect shape?

Each bump is fitted on its own window beside the common changes of the calculated lines there, which are held near what
other lines show (:mod:`autoxrd.science.misfit`), and a constant, which is held near zero as well as the slow part, which
is off already, is known. On its window a bump's area is linear in the residual; what the other bumps put there is taken off by solving
for all areas together, none negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.field import CHANGES, Field
from autoxrd.science.misfit import ShapePrior
from autoxrd.science.residual import Bumps
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import Windows, windows_between

__all__ = ["Areas", "bump_areas", "bump_curves"]

_RIDGE = 1e-9


@dataclass(frozen=True, slots=True)
class Areas:
    """Areas of b bumps: esd from noise and prior, and the same with the misfit on the window."""

    area: FloatArray
    noise: FloatArray
    esd: FloatArray


@dataclass(frozen=True, slots=True)
class _Local:
    """The linear fits on all windows.

    Args:
        columns: bump, six changes, constant; shape (8, elements).
        weighted: the same times the weight.
        inverse: of the normal matrices with the prior, shape (b, 8, 8).
        pull: the prior's right side, shape (b, 8).
    """

    windows: Windows
    columns: FloatArray
    weighted: FloatArray
    inverse: FloatArray
    pull: FloatArray


def bump_curves(field: Field, bumps: Bumps, settings: UnexplainedSettings) -> csr_array:
    """Return unit-area curves of all bumps, tails included, sparse, shape (b, n)."""
    windows = _windows(field, bumps, settings.curve_fwhm)
    owner, point = windows.owner, windows.point
    value = field.shape.at(field.x[point], bumps.position[owner], bumps.fwhm[owner])
    return csr_array((value, (owner, point)), shape=(bumps.position.size, field.x.size))


def bump_areas(
    field: Field,
    residual: FloatArray,
    bumps: Bumps,
    prior: ShapePrior,
    level: FloatArray,
    settings: UnexplainedSettings,
) -> Areas:
    """Fit the areas of at least one bump.

    Args:
        field: the field.
        residual: without its slow part, shape (n,).
        bumps: candidates.
        prior: expected misfit of the calculated lines at each bump.
        level: by how much the slow part may be off at each bump, shape (b,).
        settings: widths of windows.
    """
    local = _local(field, bumps, prior, level, settings)
    owner, point = local.windows.owner, local.windows.point
    row = np.einsum("ke,ke->e", local.inverse[:, 0, :].T[:, owner], local.weighted)
    project = csr_array((row, (owner, point)), shape=(bumps.position.size, field.x.size))
    curves = bump_curves(field, bumps, settings)
    alone = project @ residual + np.einsum("pj,pj->p", local.inverse[:, 0, :], local.pull)
    area = _positive((project @ curves.T).toarray(), np.asarray(alone), settings.solve_cycles)
    left = residual - curves.T @ area
    noise = np.sqrt(np.maximum(local.inverse[:, 0, 0], 0.0))
    return Areas(area, noise, noise * np.sqrt(_misfit(field, local, left, area)))


def _windows(field: Field, bumps: Bumps, reach_fwhm: float) -> Windows:
    reach = reach_fwhm * bumps.fwhm
    return windows_between(field.x, bumps.position - reach, field.shape.second(bumps.position) + reach)


def _local(field: Field, bumps: Bumps, prior: ShapePrior, level: FloatArray, settings: UnexplainedSettings) -> _Local:
    windows = _windows(field, bumps, settings.fit_fwhm)
    owner, point = windows.owner, windows.point
    value = field.shape.at(field.x[point], bumps.position[owner], bumps.fwhm[owner])
    columns = np.concatenate((value[None, :], field.changes[:, point], np.ones((1, point.size))))
    weighted = columns * field.weight[point]
    size = columns.shape[0]
    normal = np.empty((bumps.position.size, size, size))
    for i in range(size):
        for j in range(i, size):
            normal[:, i, j] = normal[:, j, i] = np.add.reduceat(weighted[i] * columns[j], windows.start)
    precision = np.zeros((bumps.position.size, size))
    precision[:, 1 : CHANGES + 1] = 1.0 / np.square(prior.spread)
    precision[:, -1] = 1.0 / np.maximum(np.square(level), 1e-300)
    pull = np.zeros_like(precision)
    pull[:, 1 : CHANGES + 1] = prior.mean * precision[:, 1 : CHANGES + 1]
    normal[:, np.arange(size), np.arange(size)] += precision
    scale = np.sqrt(np.maximum(np.einsum("pii->pi", normal), 1e-300))
    outer = scale[:, :, None] * scale[:, None, :]
    inverse = np.linalg.inv(normal / outer + _RIDGE * np.eye(size)) / outer
    return _Local(windows, columns, weighted, inverse, pull)


def _positive(response: FloatArray, alone: FloatArray, cycles: int) -> FloatArray:
    """Solve ``response @ area = alone`` for areas that are not negative, by projected Gauss-Seidel."""
    area = np.maximum(alone, 0.0)
    diagonal = np.maximum(response.diagonal(), 1e-12)
    for _ in range(cycles):
        for i in range(area.size):
            area[i] = max(0.0, area[i] + (alone[i] - response[i] @ area) / diagonal[i])
    return area


def _misfit(field: Field, local: _Local, left: FloatArray, area: FloatArray) -> FloatArray:
    """Return the reduced chi2 of each window, at least 1; ``left`` is the residual without all bumps."""
    windows, columns = local.windows, local.columns
    owner, point = windows.owner, windows.point
    mine = left[point] + area[owner] * columns[0]
    right = np.add.reduceat(local.weighted * mine, windows.start, axis=1).T
    solution = np.einsum("pij,pj->pi", local.inverse, right + local.pull)
    off = mine - np.einsum("ke,ke->e", solution.T[:, owner], columns)
    chi2 = np.add.reduceat(field.weight[point] * np.square(off), windows.start)
    spare = np.maximum(windows.high - windows.low - columns.shape[0], 1)
    return np.maximum(chi2 / spare, 1.0)
