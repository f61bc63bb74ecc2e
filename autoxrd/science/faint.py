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
        significance: of the maxima above the threshold, shape (m,).
        esd: of an area at each of them, noise and shape misfit, shape (m,).
        place_esd: the same at every place, infinite where nothing could be told, shape (n,).
        place_share: share of each place, shape (n,).
        hidden_esd: the same at places under calculated lines, shape (h,).
        hidden_share: share of each of them, shape (h,).
        rate: noise maxima on the whole axis: ``rate z exp(-z^2 / 2)`` per unit of z.
        seen: areas of the lines that are seen, shape (s,), s > 0.
        seen_share: share of the axis that they occupy.
    """

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
    """Area that is expected in each maximum, shape (m,), and below the threshold, with the esd of the sum.

    Args:
        hidden_shown: area expected in lines under calculated ones that would be significant there.
        hidden_variance: of that, before it is looked for.
        hidden_below: area expected in others there.
    """

    maxima: FloatArray
    below: float
    esd: float
    hidden_shown: float
    hidden_variance: float
    hidden_below: float
    hidden_below_variance: float

    @property
    def area(self) -> float:
        """Return the whole of it."""
        return float(self.maxima.sum()) + self.below


@dataclass(frozen=True, slots=True)
class _Grid:
    """Areas a (j,), numbers k0 (k,), scales c (c,), and lines per grid step for k0 = 1 times a^0, a^1, a^2, (3, c, j)."""

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
    z = evidence.significance
    chance, shape = _likelihood(z, grid.area / evidence.esd[:, None], evidence.rate)
    line = np.einsum("mj,pcj->pmc", shape, grid.moments)[:, :, None, :] * number
    either = chance[:, None, None] + line[0]
    mean = line[1] / either
    # no maximum elsewhere
    esd, share = _classes(evidence.place_esd, evidence.place_share)
    shown = _passing(grid.area / esd[:, None], settings.faint_z)
    passing = np.einsum("b,bj,cj->c", share, shown, grid.moments[0])
    below = number * np.einsum("b,bj,pcj->pc", share, 1.0 - shown, grid.moments)[:, None, :]
    # the lines that are seen, and the prior of k0
    known = evidence.seen.size * np.log(number) - evidence.seen.sum() / grid.scale
    known = known - number * (passing + evidence.seen_share * grid.moments[0].sum(axis=1))
    prior = np.log(number / settings.faint_number) / settings.faint_number_spread
    weight = _normalised(np.log(either).sum(axis=0) + known - 0.5 * np.square(prior))
    total = mean.sum(axis=0) + below[1]
    average = float(np.sum(weight * total))
    variance = (line[2] / either - np.square(mean)).sum(axis=0) + below[2] + np.square(total - average)
    esd, share = _classes(evidence.hidden_esd, evidence.hidden_share)
    shown = _passing(grid.area / esd[:, None], settings.hidden_z) if esd.size else np.zeros((0, grid.area.size))
    hidden = number * np.einsum("b,bj,pcj->pc", share, shown, grid.moments)[:, None, :]
    under = number * np.einsum("b,bj,pcj->pc", share, 1.0 - shown, grid.moments)[:, None, :]
    mh, mu = float(np.sum(weight * hidden[1])), float(np.sum(weight * under[1]))
    return Faint(
        hidden_shown=mh,
        hidden_variance=float(np.sum(weight * (hidden[2] + np.square(hidden[1] - mh)))),
        hidden_below=mu,
        hidden_below_variance=float(np.sum(weight * (under[2] + np.square(under[1] - mu)))),
        maxima=np.einsum("mkc,kc->m", mean, weight),
        below=float(np.sum(weight * below[1])),
        esd=float(np.sqrt(np.sum(weight * variance))),
    )


def _highest(true: FloatArray) -> FloatArray:
    """Return the mean significance of the maximum that a line makes: the free place adds one to the mean square."""
    square = np.square(true)
    return np.asarray(true * np.sqrt(1.0 + 1.0 / (1.0 + square)))


def _likelihood(z: FloatArray, true: FloatArray, rate: float) -> tuple[FloatArray, FloatArray]:
    """Return the density of each maximum as noise (m,) and as a line of each area (m, j), times a factor of its own.

    The factor keeps them from underflow. A line's is as wide as the grid where the grid is coarser than the noise.
    """
    height = _highest(true)
    width = np.sqrt(1.0 + np.square(0.5 * np.gradient(height, axis=1)))
    line = -0.5 * np.square((z[:, None] - height) / width) - np.log(width * np.sqrt(2.0 * np.pi))
    noise = np.log(rate * z) - 0.5 * np.square(z)
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
