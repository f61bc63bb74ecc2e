"""How large is each of many bumps, when they overlap and stand beside calculated lines of imperfect shape?

Each bump is fitted on its own window beside the common changes of the calculated lines there, which are held near what
other lines show (``misfit``), and beside a constant, which is held near zero as far as the slow part, which is off
already, is known. On its window a bump's area is linear in the residual; what the other bumps put there is taken off by
solving for all areas together, none negative. A second fit, beside a parabola, tells a peak from a tail or a hump.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_banded
from scipy.sparse import csr_array

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import Windows, windows_between
from autoxrd.science.unexplained.field import CHANGES, Field
from autoxrd.science.unexplained.misfit import ShapePrior
from autoxrd.science.unexplained.residual import Bumps

__all__ = ["Areas", "Smooth", "bump_areas"]

_RIDGE = 1e-9
_CHANGES = np.arange(1, CHANGES + 1)
_PARABOLA = np.arange(CHANGES + 1, CHANGES + 4)
_FITTED = CHANGES + 2


@dataclass(frozen=True, slots=True)
class Areas:
    """Areas of b bumps.

    Args:
        area: not negative, shape (b,).
        noise: esd from noise and prior, shape (b,).
        esd: the same with the misfit on the window, shape (b,).
        bent: area beside a parabola, which a tail or a hump would be; its significance is ``bent_z``, shape (b,).
        curves: unit-area curves, tails included, sparse, shape (b, n).
    """

    area: FloatArray
    noise: FloatArray
    esd: FloatArray
    bent: FloatArray
    bent_z: FloatArray
    curves: csr_array


@dataclass(frozen=True, slots=True)
class Smooth:
    """By how much the residual may be off smoothly around each bump, shape (b,).

    Args:
        level: the slow part, that is off already.
        tails: beyond it, where strong lines are near.
    """

    level: FloatArray
    tails: FloatArray


@dataclass(frozen=True, slots=True)
class _Local:
    """The linear fits on all windows.

    Args:
        columns: bump, six changes, parabola; shape (10, elements). The fit of areas takes the constant of the parabola.
        weighted: the same times the weight.
        normal: matrices of all columns with the prior of the changes, shape (b, 10, 10).
        inverse: of the fit of areas, with its prior, shape (b, 8, 8).
        pull: the prior's right side, shape (b, 10).
    """

    windows: Windows
    columns: FloatArray
    weighted: FloatArray
    normal: FloatArray
    inverse: FloatArray
    pull: FloatArray


def bump_areas(
    field: Field,
    residual: FloatArray,
    bumps: Bumps,
    prior: ShapePrior,
    smooth: Smooth,
    settings: UnexplainedSettings,
) -> Areas:
    """Fit the areas of at least one bump.

    Args:
        field: the field.
        residual: without its slow part, shape (n,).
        bumps: candidates.
        prior: expected misfit of the calculated lines at each bump.
        smooth: by how much the residual may be off smoothly.
        settings: widths of windows.
    """
    local = _local(field, bumps, prior, smooth.level, settings)
    owner, point = local.windows.owner, local.windows.point
    row = np.einsum("ke,ke->e", local.inverse[:, 0, :].T[:, owner], local.weighted[:_FITTED])
    alone = np.add.reduceat(row * residual[point], local.windows.start)
    alone += np.einsum("pj,pj->p", local.inverse[:, 0, :], local.pull[:, :_FITTED])
    wide = _windows(field, bumps, settings.curve_fwhm)
    value = field.shape.at(field.x[wide.point], bumps.position, bumps.fwhm, wide.owner)
    curves = _sparse(value, wide, field.x.size)
    area = _positive((_sparse(row, local.windows, field.x.size) @ curves.T).tocsr(), alone, settings.solve_cycles)
    mine = (residual - curves.T @ area)[point] + area[owner] * local.columns[0]
    right = np.add.reduceat(local.weighted * mine, local.windows.start, axis=1).T + local.pull
    noise = np.sqrt(np.maximum(local.inverse[:, 0, 0], 0.0))
    esd = noise * np.sqrt(_misfit(field, local, mine, right))
    bent, bent_esd = _beside_parabola(local, right, smooth, settings)
    return Areas(area, noise, esd, bent, bent / bent_esd, curves)


def _sparse(values: FloatArray, windows: Windows, size: int) -> csr_array:
    """Return a sparse matrix with the values of each window in a row of its own."""
    rows = np.append(windows.start, windows.point.size)
    return csr_array((values, windows.point, rows), shape=(windows.start.size, size))


def _windows(field: Field, bumps: Bumps, reach_fwhm: float) -> Windows:
    reach = reach_fwhm * bumps.fwhm
    return windows_between(field.x, bumps.position - reach, field.shape.second(bumps.position) + reach)


def _local(field: Field, bumps: Bumps, prior: ShapePrior, level: FloatArray, settings: UnexplainedSettings) -> _Local:
    windows = _windows(field, bumps, settings.fit_fwhm)
    owner, point = windows.owner, windows.point
    x = field.x[point]
    value = field.shape.at(x, bumps.position, bumps.fwhm, owner)
    away = (x - bumps.position[owner]) / (settings.fit_fwhm * bumps.fwhm)[owner]
    columns = np.stack((value, *field.changes[:, point], np.ones_like(x), away, np.square(away)))
    weighted = columns * field.weight[point]
    size = columns.shape[0]
    normal = np.empty((bumps.position.size, size, size))
    for i in range(size):
        for j in range(i, size):
            normal[:, i, j] = normal[:, j, i] = np.add.reduceat(weighted[i] * columns[j], windows.start)
    precision = 1.0 / np.square(prior.spread)
    normal[:, _CHANGES, _CHANGES] += precision
    pull = np.zeros((bumps.position.size, size))
    pull[:, _CHANGES] = prior.mean * precision
    fitted = normal[:, :_FITTED, :_FITTED].copy()
    fitted[:, -1, -1] += 1.0 / np.maximum(np.square(level), 1e-300)
    return _Local(windows, columns, weighted, normal, _inverse(fitted), pull)


def _inverse(normal: FloatArray) -> FloatArray:
    scale = np.sqrt(np.maximum(np.einsum("pii->pi", normal), 1e-300))
    outer = scale[:, :, None] * scale[:, None, :]
    return np.asarray(np.linalg.inv(normal / outer + _RIDGE * np.eye(normal.shape[1])) / outer)


def _beside_parabola(
    local: _Local, right: FloatArray, smooth: Smooth, settings: UnexplainedSettings
) -> tuple[FloatArray, FloatArray]:
    """Return the areas, and their esds, beside a parabola that slow part and tails may be off by."""
    normal = local.normal.copy()
    spread = np.square(smooth.level) + np.square(settings.smooth_share * smooth.tails)
    normal[:, _PARABOLA, _PARABOLA] += 1.0 / np.maximum(spread, 1e-300)[:, None]
    row = _inverse(normal)[:, 0, :]
    return np.einsum("pj,pj->p", row, right), np.sqrt(np.maximum(row[:, 0], 1e-300))


def _positive(response: csr_array, alone: FloatArray, cycles: int) -> FloatArray:
    """Solve ``response @ area = alone`` for areas that are not negative: what comes out negative is left out.

    A row's entries lie near the diagonal, as bumps are in order of position.
    """
    size = alone.size
    rows = np.repeat(np.arange(size), np.diff(response.indptr))
    away = rows - response.indices
    low, high = max(int(away.max(initial=0)), 0), max(int(-away.min(initial=0)), 0)
    out = np.zeros(size, dtype=bool)
    area = np.zeros(size)
    for _ in range(cycles):
        band = np.zeros((low + high + 1, size))
        keep = ~(out[rows] | out[response.indices])
        band[(high + away)[keep], response.indices[keep]] = response.data[keep]
        band[high, out] = 1.0
        area = solve_banded((low, high), band, np.where(out, 0.0, alone), overwrite_ab=True, check_finite=False)
        if not np.any(area < 0.0):
            break
        out |= area < 0.0
    return np.asarray(np.maximum(area, 0.0))


def _misfit(field: Field, local: _Local, mine: FloatArray, right: FloatArray) -> FloatArray:
    """Return the reduced chi2 of each window, at least 1.

    Args:
        field: the field.
        local: the fits.
        mine: residual without all other bumps, shape (elements,).
        right: right side of the normal equations, shape (b, 10).
    """
    windows = local.windows
    solution = np.einsum("pij,pj->pi", local.inverse, right[:, :_FITTED])
    off = mine - np.einsum("ke,ke->e", solution.T[:, windows.owner], local.columns[:_FITTED])
    chi2 = np.add.reduceat(field.weight[windows.point] * np.square(off), windows.start)
    spare = np.maximum(windows.high - windows.low - _FITTED, 1)
    return np.asarray(np.maximum(chi2 / spare, 1.0))
