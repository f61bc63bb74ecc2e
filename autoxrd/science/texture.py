"""Do the intensities of a phase follow a preferred orientation, and along which axis?

Every low-index axis is tried with the March-Dollase function averaged over the equivalents, scale and angle trend
free. (A linear term would not do: averaged over a uniaxial crystal's equivalents it is the same for every axis, over a
cubic one's it vanishes.) March (1932); Dollase (1986), doi:10.1107/S0021889886089458.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Feature
from autoxrd.domain.structure import CrystalStructure
from autoxrd.science.arrays import ordinary_median, sum_by
from autoxrd.science.features import measured, unavailable
from autoxrd.science.frame import Frame
from autoxrd.science.intensities import LogRatios
from autoxrd.science.metric import invariant_forms, reciprocal_metric, rotations
from autoxrd.science.settings import IntensitySettings

__all__ = ["low_index_axes", "texture_feature"]

IntArray = NDArray[np.int64]

_STRENGTHS = np.exp(np.array([-1.2, -0.8, -0.5, -0.35, -0.25, -0.18, -0.12, -0.08, -0.05, -0.03, -0.015, -0.005]))
_STRENGTHS = np.concatenate((_STRENGTHS, 1.0 / _STRENGTHS[::-1]))


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


@lru_cache(maxsize=64)
def _halved(operations: tuple[str, ...]) -> FloatArray:
    """Return the rotations without those that only invert another one: cos^2 does not see it."""
    kept: list[FloatArray] = []
    for op in rotations(operations):
        if not any(np.array_equal(op, -other) for other in kept):
            kept.append(op)
    return np.array(kept)


def _cosines(hkl: IntArray, structure: CrystalStructure, axes: FloatArray) -> FloatArray:
    """Return cos^2 of the angles between axes and the equivalents of reflections, shape (axes, ops, m)."""
    metric = reciprocal_metric(structure.cell)
    ops = _halved(structure.operations)
    h = hkl.astype(float)
    length = np.einsum("mi,ij,mj->m", h, metric, h)
    family = axes @ metric
    turned = np.einsum("oij,aj->aoi", ops, family)
    dot = np.einsum("mi,aoi->aom", h, turned)
    axis_length = np.einsum("ai,ai->a", family, axes)
    return np.asarray(np.clip(np.square(dot) / (length * axis_length[:, None, None]), 0.0, 1.0))


def _march(cosine2: FloatArray, r: FloatArray) -> FloatArray:
    """Return the March-Dollase factor averaged over equivalents, shape (strengths, m), from cos^2 (ops, m)."""
    strength = r[:, None, None]
    inner = np.square(strength) * cosine2 + (1.0 - cosine2) / strength
    inner *= np.sqrt(inner)
    return np.asarray(np.mean(1.0 / inner, axis=1))


def texture_feature(
    frame: Frame, ratios: LogRatios, structure: CrystalStructure, index: int, settings: IntensitySettings
) -> Feature:
    """Return ``intensity.texture.PHASE``: range of ln(March-Dollase) over the peaks; ``reason`` is the axis "h,k,l".

    The significance allows for the number of axes tried (2 ln n off the chi2 gain).
    """
    n = int(ratios.value.size)
    if n < settings.min_texture_peaks:
        return unavailable(f"{n} peaks of this phase alone", n_used=n)
    axes = low_index_axes(structure.operations)
    weight = 1.0 / np.square(ratios.esd)
    project = _Projector(np.array((np.ones(n), ratios.s2)).T, weight)
    target = project(ratios.value)
    null = float(np.square(target) @ weight)
    dof = n - 2
    if null < dof + settings.texture_scatter * np.sqrt(2.0 * dof):
        # nothing scatters that a texture could explain
        return measured(0.0, ordinary_median(ratios.esd), n_used=n, significance=0.0, reason=_told(axes[0]))
    logs = _log_factors(frame, ratios, structure, index, axes)
    chi2, contrasts = _best_strength(target, logs, project, weight)
    scale = max(1.0, float(chi2.min()) / max(n - 4, 1))
    best = int(np.argmax(chi2 <= chi2.min() + settings.texture_margin * scale))
    gain = max(null - float(chi2[best]), 0.0) / scale
    contrast = float(contrasts[best])
    return measured(
        contrast,
        contrast / float(np.sqrt(gain)) if gain > 0 else 1.0,
        n_used=n,
        significance=float(np.sqrt(max(gain - 2.0 * np.log(len(axes)), 0.0))),
        reason=_told(axes[best]),
    )


def _best_strength(
    target: FloatArray, logs: FloatArray, project: _Projector, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return, for each axis, the smallest chi2 over all strengths and the range of ln T there, each of shape (axes,).

    Between grid points ln T is interpolated linearly, which makes chi2 a parabola with a known minimum.
    """
    bent = project(logs)
    chi2 = np.square(target - bent) @ weight
    axes = np.arange(logs.shape[0])
    middle = np.argmin(chi2, axis=1)
    lowest, contrast = chi2[axes, middle], np.ptp(logs[axes, middle], axis=1)
    left = target - bent[axes, middle]
    for step in (-1, 1):
        beside = np.clip(middle + step, 0, logs.shape[1] - 1)
        change = bent[axes, beside] - bent[axes, middle]
        norm = np.maximum(np.square(change) @ weight, 1e-300)
        share = np.clip(np.sum(left * change * weight, axis=1) / norm, 0.0, 1.0)
        there = np.square(left - share[:, None] * change) @ weight
        mixed = (1.0 - share[:, None]) * logs[axes, middle] + share[:, None] * logs[axes, beside]
        better = there < lowest
        lowest = np.where(better, there, lowest)
        contrast = np.where(better, np.ptp(mixed, axis=1), contrast)
    return lowest, contrast


def _told(axis: tuple[int, int, int]) -> str:
    return ",".join(str(index) for index in axis)


def _log_factors(
    frame: Frame,
    ratios: LogRatios,
    structure: CrystalStructure,
    index: int,
    axes: tuple[tuple[int, int, int], ...],
) -> FloatArray:
    """Return ln of the texture factor of each peak, area-weighted over its reflections, shape (axes, strengths, n)."""
    table = frame.reflections
    n = int(ratios.value.size)
    local = np.full(frame.peaks.position.size, -1, dtype=np.int64)
    local[ratios.peak] = np.arange(n)
    member = np.flatnonzero((table.phase == index) & (table.peak >= 0) & (local[table.peak] >= 0))
    owner, area = local[table.peak[member]], np.maximum(table.area[member], 1e-300)
    spread = np.zeros((n, member.size))
    spread[owner, np.arange(member.size)] = area / sum_by(owner, area, n)[owner]
    cosine2 = _cosines(table.hkl[member], structure, np.array(axes, dtype=float))
    # one axis at a time: all at once would be the largest array of the whole measurement
    return np.array([np.log(_march(one, _STRENGTHS) @ spread.T) for one in cosine2])


class _Projector:
    """Takes scale and trend off vectors (the last axis), in the metric of the weights."""

    def __init__(self, nuisance: FloatArray, weight: FloatArray) -> None:
        root = np.sqrt(weight)
        self._root = root
        first, second = (nuisance * root[:, None]).T
        first = first / np.sqrt(first @ first)
        # twice: what is left of a nearly parallel column after once is not yet at a right angle
        for _ in range(2):
            second = second - (second @ first) * first
        self._basis = np.stack((first, second / np.sqrt(max(second @ second, 1e-300))), axis=1)

    def __call__(self, values: FloatArray) -> FloatArray:
        scaled = values * self._root
        return np.asarray((scaled - (scaled @ self._basis) @ self._basis.T) / self._root)
