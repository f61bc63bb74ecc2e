"""How much area is in lines of a missing phase that are too weak or too hidden to be seen one by one?

Once some lines of an unknown phase stand out, there are others: below the noise, or under calculated lines. The areas
of a phase's lines are taken for a Poisson process with k0 exp(-a / c) / a lines per unit of area (so that intensities
spread over orders of magnitude, as those of powders do), anywhere on the axis. A maximum of the filtered residual is
such a line or noise, whose maxima have a known rate. The constants k0 and c follow from the lines seen, from all maxima
above a low threshold and from the places that show none; the area that each maximum stands for, and the area of what
stays below the threshold, are posterior means over both constants.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.settings import UnexplainedSettings

__all__ = ["Evidence", "Faint", "faint_area"]

_CLASSES = 24


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the axis shows beside the lines that are seen; shares are of the whole axis, counted in peak widths.

    Args:
        area: fitted area of the maxima above the threshold, shape (m,).
        significance: of each, a normal deviate on noise, shape (m,).
        esd: of an area at each of them, noise and shape misfit, shape (m,).
        place_esd: the same at every place, infinite where nothing could be told, shape (n,).
        place_share: share of each place, shape (n,).
        hidden_esd: the same at places under calculated lines, shape (h,).
        hidden_share: share of each of them, shape (h,).
        rate: noise maxima on the whole axis: ``rate z exp(-z^2 / 2)`` per unit of z.
        seen: areas of the lines that are seen, shape (s,), s > 0.
        seen_share: share of the axis that they occupy.
    """

    area: FloatArray
    significance: FloatArray
    esd: FloatArray
    place_esd: FloatArray
    place_share: FloatArray
    hidden_esd: FloatArray
    hidden_share: FloatArray
    rate: float
    seen: FloatArray
    seen_share: float


@dataclass(frozen=True, slots=True)
class Faint:
    """Area expected of lines that are not seen.

    Args:
        area: of those between calculated lines.
        variance: of that, and of ``hidden_below``.
        hidden: of lines under calculated ones that would be significant there, before one looks.
        hidden_variance: of that.
        hidden_below: of lines there that would not be significant.
    """

    area: float
    variance: float
    hidden: float
    hidden_variance: float
    hidden_below: float


@dataclass(frozen=True, slots=True)
class _Grid:
    """Areas a (j,), numbers k0 (k,), scales c (c,); lines per grid step for k0 = 1, times a^0, a^1, a^2, (3, c, j)."""

    area: FloatArray
    number: FloatArray
    scale: FloatArray
    moments: FloatArray


def _grid(evidence: Evidence, settings: UnexplainedSettings) -> _Grid:
    top = float(evidence.seen.max())
    least = float(evidence.place_esd.min(initial=np.inf))
    lower = np.clip(settings.faint_floor * least, 1e-6 * top, settings.faint_floor * top)
    area = np.geomspace(lower, settings.faint_top * top, settings.faint_areas)
    number = np.geomspace(*settings.faint_number_range, settings.faint_numbers)
    scale = top * np.geomspace(*settings.faint_scale_range, settings.faint_scales)
    lines = np.log(area[1] / area[0]) * np.exp(-area[None, :] / scale[:, None])
    return _Grid(area, number, scale, np.stack((lines, lines * area, lines * np.square(area))))


def faint_area(evidence: Evidence, settings: UnexplainedSettings) -> Faint:
    """Return the area of the lines that are not seen."""
    grid = _grid(evidence, settings)
    number = grid.number[:, None]
    # each maximum: noise or a line
    chance, shape = _likelihood(evidence, grid.area)
    line = np.einsum("mj,pcj->pmc", shape, grid.moments)[:, :, None, :] * number
    either = chance[:, None, None] + line[0]
    mean = line[1] / either
    # no maximum elsewhere, nor anything under calculated lines that was looked at
    free = _expected(evidence.place_esd, evidence.place_share, grid, settings.faint_z)
    hidden = _expected(evidence.hidden_esd, evidence.hidden_share, grid, settings.hidden_z)
    # the lines that are seen, and the prior of k0
    known = evidence.seen.size * np.log(number) - evidence.seen.sum() / grid.scale
    known = known - number * (free[0, 0] + evidence.seen_share * grid.moments[0].sum(axis=1))
    prior = np.log(number / settings.faint_number) / settings.faint_number_spread
    weight = _normalised(np.log(either).sum(axis=0) + known - 0.5 * np.square(prior))

    def average(values: FloatArray) -> float:
        return float(np.sum(weight * values))

    below = number * (free[1, 1] + hidden[1, 1])
    total = mean.sum(axis=0) + below
    spread = (line[2] / either - np.square(mean)).sum(axis=0) + number * (free[1, 2] + hidden[1, 2])
    shown = number * hidden[0, 1]
    return Faint(
        area=average(mean.sum(axis=0) + number * free[1, 1]),
        variance=average(spread + np.square(total - average(total))),
        hidden=average(shown),
        hidden_variance=average(number * hidden[0, 2] + np.square(shown - average(shown))),
        hidden_below=average(number * hidden[1, 1]),
    )


def _expected(esd: FloatArray, share: FloatArray, grid: _Grid, threshold: float) -> FloatArray:
    """Return moments of lines that pass the threshold at some places and that do not, for k0 = 1, shape (2, 3, c)."""
    if esd.size == 0:
        return np.zeros((2, 3, grid.scale.size))
    classes, part = _classes(esd, share)
    passing = _passing(grid.area / classes[:, None], threshold)
    return np.asarray(
        np.einsum("b,sbj,pcj->spc", part, np.stack((passing, 1.0 - passing)), grid.moments, optimize=True)
    )


def _highest(true: FloatArray) -> FloatArray:
    """Return the mean significance of the maximum that a line makes: the free place adds one to the mean square."""
    square = np.square(true)
    return np.asarray(true * np.sqrt(1.0 + 1.0 / (1.0 + square)))


def _likelihood(evidence: Evidence, area: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the density of each maximum as noise (m,) and as a line of each area (m, j), times a factor of its own.

    The factor keeps them from underflow. A line's is as wide as the grid where the grid is coarser than the noise.
    """
    height = _highest(area / evidence.esd[:, None])
    width = np.sqrt(1.0 + np.square(0.5 * np.gradient(height, axis=1)))
    off = ((evidence.area / evidence.esd)[:, None] - height) / width
    line = -0.5 * np.square(off) - np.log(width * np.sqrt(2.0 * np.pi))
    noise = np.log(evidence.rate * evidence.significance) - 0.5 * np.square(evidence.significance)
    largest = np.maximum(line.max(axis=1), noise)
    return np.exp(noise - largest), np.exp(line - largest[:, None])


def _passing(true: FloatArray, threshold: float) -> FloatArray:
    """Return the probability that a line shows a maximum above the threshold."""
    return np.asarray(ndtr(_highest(true) - threshold))


def _classes(esd: FloatArray, share: FloatArray) -> tuple[FloatArray, NDArray[np.float64]]:
    """Return a few classes of places of like esd, and their shares."""
    order = np.argsort(esd, kind="stable")
    parts = [part for part in np.array_split(order, _CLASSES) if part.size]
    return np.array([esd[part[part.size // 2]] for part in parts]), np.array([share[part].sum() for part in parts])


def _normalised(log_weight: FloatArray) -> FloatArray:
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight / weight.sum())
