"""Do the calculated lines around show the same bump beside them? Then it belongs to their shape, and is no peak.

A wrong profile is wrong at all lines alike: what stands at a certain distance (in FWHM) from one line, with a certain
share of its height, stands at the same distance from its neighbours too. The median of what is left there is the height
to be expected. Where no other line is strong enough to tell, a lone line is granted the tail that axial divergence can
give it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.frame import Frame
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.unexplained.field import AREA_OVER_HEIGHT, Field

__all__ = ["Heights", "expected_heights"]

_ASIDE = (-0.35, 0.0, 0.35)
"""FWHM by which a bump may lie elsewhere beside another line."""
_SHOWN = 3.0
"""Esds that the same share of a neighbour must have, for it to show."""


@dataclass(frozen=True, slots=True)
class Heights:
    """Height of a peak fitted at each place of the residual, and its esd, shape (n,)."""

    value: FloatArray
    esd: FloatArray


@dataclass(frozen=True, slots=True)
class _Strong:
    """The highest calculated peaks, shape (p,)."""

    position: FloatArray
    fwhm: FloatArray
    area: FloatArray
    height: FloatArray


def expected_heights(
    field: Field, frame: Frame, seen: Heights, position: FloatArray, height: FloatArray, settings: UnexplainedSettings
) -> FloatArray:
    """Return the height that the shape of the calculated lines lets expect at each bump, shape (b,).

    Args:
        field: the field.
        frame: its calculated peaks.
        seen: what the residual shows.
        position: of the bumps, shape (b,).
        height: of them, shape (b,).
        settings: how many neighbours are asked.
    """
    peaks = frame.peaks
    if peaks.position.size == 0:
        return np.zeros_like(height)
    tall = np.argsort(-peaks.area / peaks.fwhm, kind="stable")[: settings.misfit_windows]
    tops = peaks.area[tall] / (AREA_OVER_HEIGHT * peaks.fwhm[tall] * (1.0 + field.shape.ratio))
    strong = _Strong(peaks.position[tall], peaks.fwhm[tall], peaks.area[tall], tops)
    away = (position[:, None] - strong.position) / strong.fwhm
    parent = np.argmax(strong.height / (1.0 + np.square(2.0 * away)), axis=1)
    own = away[np.arange(position.size), parent]
    share, known = _beside(field, seen, strong, own, height / np.maximum(strong.height[parent], 1e-300))
    known[np.arange(position.size), parent] = False
    known[np.abs(own) > settings.repeat_fwhm] = False
    count, middle = _middle_of_nearest(
        np.abs(strong.position - strong.position[parent][:, None]), share, known, settings
    )
    repeated = settings.repeat_factor * middle * strong.height[parent]
    tail = _axial_tail(frame, position, strong.position[parent], strong.area[parent], settings.axial_ratio)
    # tails grow towards low angle: what neighbours show a part of may be one, and those far above cannot tell
    alike = middle * strong.height[parent] > settings.repeat_least * height
    asked = known & (strong.position < settings.axial_alike * strong.position[parent][:, None])
    share_of_tail = np.where(alike & (count > 0), 1.0, np.where(asked.any(axis=1), 0.0, settings.axial_share))
    return np.asarray(np.maximum(repeated, share_of_tail * tail))


def _beside(
    field: Field, seen: Heights, strong: _Strong, away: FloatArray, share: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the share of each line's height that the residual has beside it, and whether it can tell, shape (b, p).

    Args:
        field: the field.
        seen: what the residual shows.
        strong: the lines.
        away: distance of each bump from its line, FWHM, shape (b,).
        share: height of each bump over that of its line, shape (b,).
    """
    place = strong.position + away[:, None] * strong.fwhm
    there = [seen.value[field.at(place + aside * strong.fwhm)] for aside in _ASIDE]
    middle = field.at(place)
    inside = (place > field.x[0]) & (place < field.x[-1]) & ~field.covered[middle]
    telling = share[:, None] * strong.height > _SHOWN * seen.esd[middle]
    return np.max(there, axis=0) / strong.height, inside & telling


def _middle_of_nearest(
    distance: FloatArray, share: FloatArray, known: NDArray[np.bool_], settings: UnexplainedSettings
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return how many of the nearest lines can tell, and their lower median, not negative, shape (b,)."""
    asked = np.argsort(np.where(known, distance, np.inf), axis=1, kind="stable")[:, : settings.repeat_neighbours]
    telling = np.take_along_axis(known, asked, axis=1)
    count = telling.sum(axis=1)
    ordered = np.sort(np.where(telling, np.take_along_axis(share, asked, axis=1), np.inf), axis=1)
    middle = ordered[np.arange(count.size), np.maximum(count - 1, 0) // 2]
    return count, np.maximum(np.where(count > 0, middle, 0.0), 0.0)


def _axial_tail(frame: Frame, position: FloatArray, line: FloatArray, area: FloatArray, ratio: float) -> FloatArray:
    """Return the height of the tail that axial divergence can give a line, shape (b,); 0 beyond its reach.

    The distribution of shifts for slits of one height, at small angles: 1 / sqrt(reach d) - 1 / reach (Finger, Cox &
    Jephcoat 1994, doi:10.1107/S0021889894004218).
    """
    if not frame.angular:
        return np.zeros_like(position)
    angle = np.deg2rad(np.clip(line, 1.0, 179.0))
    # signed: towards low angle below 90 degrees, towards high beyond
    reach = -np.rad2deg(0.5 * ratio**2 / np.tan(angle))
    along = (position - line) / reach
    within = (along > 0.0) & (along < 1.0)
    density = (1.0 / np.sqrt(np.where(within, along, 1.0)) - 1.0) / np.abs(reach)
    return np.asarray(np.where(within, area * density, 0.0))
