"""Do the intensities of a phase follow a preferred orientation, and along which axis?

Every low-index axis is tried: first with the first-order March-Dollase term, -3 (r - 1) <P2(cos alpha)> over the
equivalents, then the best few with the full function. Scale and angle trend stay free. March (1932); Dollase (1986),
doi:10.1107/S0021889886089458.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Feature
from autoxrd.domain.structure import CrystalStructure
from autoxrd.science.arrays import sum_by
from autoxrd.science.features import measured, unavailable
from autoxrd.science.frame import Frame
from autoxrd.science.intensities import LogRatios
from autoxrd.science.metric import invariant_forms, reciprocal_metric, rotations
from autoxrd.science.settings import IntensitySettings

__all__ = ["low_index_axes", "texture_feature"]

IntArray = NDArray[np.int64]

_FULL = 3
_STRENGTHS = np.geomspace(0.25, 4.0, 49)


@lru_cache(maxsize=64)
def low_index_axes(operations: tuple[str, ...]) -> tuple[tuple[int, int, int], ...]:
    """Return one axis of each family of (h, k, l) from -1, 0, 1, and (012), (104) where there is a threefold axis.

    The simplest comes first: fewest non-zero indices, then 001 before 100.
    """
    ops = rotations(operations)
    grid = [(h, k, m) for h in (0, 1, -1) for k in (0, 1, -1) for m in (1, 0, -1)]
    wanted = sorted((a for a in grid if any(a)), key=lambda a: (sum(map(abs, a)), -a[2], -a[0], -a[1]))
    # trigonal and hexagonal: a threefold axis and two free metric terms
    threefold = bool(np.any(np.isclose(np.trace(ops, axis1=1, axis2=2), 0.0)))
    if threefold and invariant_forms(operations).shape[0] == 2:
        wanted += [(0, 1, 2), (1, 0, 4)]
    found: list[tuple[int, int, int]] = []
    seen: set[tuple[int, ...]] = set()
    for axis in wanted:
        if axis not in seen:
            found.append(axis)
            family = np.rint(np.array(axis) @ ops).astype(int)
            seen |= {tuple(int(v) for v in row) for row in np.concatenate((family, -family))}
    return tuple(found)


def _cosines(hkl: IntArray, structure: CrystalStructure, axes: FloatArray) -> FloatArray:
    """Return cos^2 of the angles between axes and the equivalents of reflections, shape (axes, ops, m)."""
    metric = reciprocal_metric(structure.cell)
    ops = rotations(structure.operations)
    h = hkl.astype(float)
    length = np.einsum("mi,ij,mj->m", h, metric, h)
    family = axes @ metric
    turned = np.einsum("oij,aj->aoi", ops, family)
    dot = np.einsum("mi,aoi->aom", h, turned)
    axis_length = np.einsum("ai,ai->a", family, axes)
    return np.asarray(np.clip(np.square(dot) / (length * axis_length[:, None, None]), 0.0, 1.0))


def _march(cosine2: FloatArray, r: FloatArray) -> FloatArray:
    """Return the March-Dollase factor averaged over equivalents, shape (strengths, m), from (ops, m)."""
    inner = np.square(r)[:, None, None] * cosine2 + (1.0 - cosine2) / r[:, None, None]
    return np.asarray(np.mean(inner**-1.5, axis=1))


def texture_feature(
    frame: Frame, ratios: LogRatios, structure: CrystalStructure, index: int, settings: IntensitySettings
) -> Feature:
    """Return ``intensity.texture.PHASE``: range of ln(March-Dollase) over the peaks; ``reason`` is the axis "h,k,l".

    The significance allows for the number of axes tried (2 ln n off the chi2 gain).
    """
    n = int(ratios.value.size)
    if n < settings.min_texture_peaks:
        return unavailable(f"{n} peaks of this phase alone", n_used=n)
    table = frame.reflections
    local = np.full(frame.peaks.position.size, -1, dtype=np.int64)
    local[ratios.peak] = np.arange(n)
    member = np.flatnonzero((table.phase == index) & (table.peak >= 0) & (local[table.peak] >= 0))
    owner, area = local[table.peak[member]], np.maximum(table.area[member], 1e-300)
    area = area / sum_by(owner, area, n)[owner]
    axes = low_index_axes(structure.operations)
    cosine2 = _cosines(table.hkl[member], structure, np.array(axes, dtype=float))
    mean = 1.5 * cosine2.mean(axis=1) - 0.5
    first = np.array([sum_by(owner, area * row, n) for row in mean])
    weight = 1.0 / np.square(ratios.esd)
    project = _Projector(np.stack((np.ones(n), ratios.s2), axis=1), weight)
    target = project(ratios.value)
    columns = project(-3.0 * first)
    norm = np.maximum(columns**2 @ weight, 1e-12)
    gains = np.square(columns @ (weight * target)) / norm
    null = float(np.square(target) @ weight)
    order = np.argsort(-gains, kind="stable")
    slope = float(columns[order[0]] @ (weight * target) / norm[order[0]])
    best = (null - float(gains[order[0]]), int(order[0]), -3.0 * slope * first[order[0]])
    if gains[order[0]] < settings.texture_gain:
        # nothing that the full function could make significant
        return _feature(best, null, axes, n)
    spread = np.zeros((n, member.size))
    spread[owner, np.arange(member.size)] = area
    for axis in order[:_FULL]:
        logs = np.log(_march(cosine2[axis], _STRENGTHS) @ spread.T)
        chi2 = np.square(target - project(logs)) @ weight
        at = int(np.argmin(chi2))
        if chi2[at] < best[0]:
            best = (float(chi2[at]), int(axis), logs[at])
    return _feature(best, null, axes, n)


def _feature(
    best: tuple[float, int, FloatArray], null: float, axes: tuple[tuple[int, int, int], ...], n: int
) -> Feature:
    chi2, axis, logs = best
    scale = max(1.0, chi2 / max(n - 4, 1))
    gain = max(null - chi2, 0.0) / scale
    value = float(logs.max() - logs.min())
    significance = float(np.sqrt(max(gain - 2.0 * np.log(len(axes)), 0.0)))
    esd = value / np.sqrt(gain) if gain > 0 else 1.0
    return measured(value, float(esd), n_used=n, significance=significance, reason=",".join(str(v) for v in axes[axis]))


class _Projector:
    """Takes scale and trend off vectors (the last axis), in the metric of the weights."""

    def __init__(self, nuisance: FloatArray, weight: FloatArray) -> None:
        root = np.sqrt(weight)
        self._root = root
        self._basis = np.linalg.qr(nuisance * root[:, None])[0]

    def __call__(self, values: FloatArray) -> FloatArray:
        scaled = values * self._root
        return np.asarray((scaled - (scaled @ self._basis) @ self._basis.T) / self._root)
