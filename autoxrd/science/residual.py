"""Where does the residual bulge? Its slow part, the local peak width, and bumps of that width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import median, piece_medians, sum_by
from autoxrd.science.frame import Frame
from autoxrd.science.settings import UnexplainedSettings
from autoxrd.science.shapes import windows_between

__all__ = ["Bumps", "covered_share", "find_bumps", "local_fwhm", "slow_part"]

_BINS = 12
_CLIP = 2.5
_CLIP_CYCLES = 4
_FALLBACK_STEPS = 6.0


@dataclass(frozen=True, slots=True)
class Bumps:
    """Candidate peaks of a residual, arrays of shape (c,).

    Args:
        position: unit of the axis.
        fwhm: local peak width.
        significance: of the box-filtered residual.
    """

    position: FloatArray
    fwhm: FloatArray
    significance: FloatArray

    @classmethod
    def none(cls) -> Bumps:
        """Return no bumps."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0))

    def where(self, mask: NDArray[np.bool_]) -> Bumps:
        """Return those under a mask, shape (c,)."""
        return Bumps(self.position[mask], self.fwhm[mask], self.significance[mask])

    def joined(self, other: Bumps) -> Bumps:
        """Return both in order of position."""
        position = np.concatenate((self.position, other.position))
        order = np.argsort(position, kind="stable")
        return Bumps(
            position[order],
            np.concatenate((self.fwhm, other.fwhm))[order],
            np.concatenate((self.significance, other.significance))[order],
        )


def local_fwhm(frame: Frame) -> FloatArray:
    """Return the width of calculated lines at every channel, shape (n,): medians of ranges, interpolated."""
    position, fwhm = frame.lines.position, frame.lines.fwhm
    if position.size == 0:
        return np.full_like(frame.x, _FALLBACK_STEPS * float(np.median(frame.step)))
    parts = np.array_split(np.arange(position.size), min(_BINS, position.size))
    centres = [median(position[part]) for part in parts]
    return np.asarray(np.interp(frame.x, centres, [median(fwhm[part]) for part in parts]))


def slow_part(frame: Frame, residual: FloatArray, widths: FloatArray, settings: UnexplainedSettings) -> FloatArray:
    """Return the slowly varying part of a residual, shape (n,): clipped means of pieces, interpolated.

    Pieces are many peak widths long, so that a peak is clipped out of its piece and not taken for background.
    """
    size = int(max(settings.baseline_fwhm * float(np.median(widths)) / float(np.median(frame.step)), 24))
    count = max(frame.x.size // size, 1)
    length = frame.x.size // count
    piece = np.minimum(np.arange(frame.x.size) // length, count - 1)
    sigma = np.sqrt(frame.variance)
    level = piece_medians(residual, count)
    weight = np.minimum(1.0, frame.weight * float(np.median(frame.variance)))
    for _ in range(_CLIP_CYCLES):
        keep = np.abs(residual - level[piece]) < _CLIP * sigma
        total = sum_by(piece[keep], weight[keep], count)
        mean = sum_by(piece[keep], (weight * residual)[keep], count) / np.maximum(total, 1e-300)
        level = np.where(total > 0, mean, level)
    first = np.arange(count) * length
    last = np.append(first[1:], frame.x.size) - 1
    centres = 0.5 * (frame.x[first] + frame.x[last])
    return np.asarray(np.interp(frame.x, centres, level))


def find_bumps(
    frame: Frame, residual: FloatArray, widths: FloatArray, settings: UnexplainedSettings, *, taken: FloatArray
) -> tuple[Bumps, FloatArray]:
    """Return where the box-filtered residual is a significant local maximum, and its significance at every channel.

    Args:
        frame: its lines exclude their surroundings.
        residual: shape (n,).
        widths: local peak width, shape (n,).
        settings: thresholds.
        taken: positions of peaks already found, which exclude theirs.
    """
    score = _box_score(frame, residual, settings.core_fwhm * widths)
    peak = np.zeros(score.size, dtype=bool)
    peak[1:-1] = (score[1:-1] >= score[:-2]) & (score[1:-1] > score[2:])
    found = np.flatnonzero(peak & (score > settings.companion_z) & ~_excluded(frame, settings))
    apart = settings.separation_fwhm * widths
    if taken.size:
        near = np.min(np.abs(frame.x[found][:, None] - taken[None, :]), axis=1, initial=np.inf)
        found = found[near > apart[found]]
    found = _separated(frame, found, score, apart, settings.max_peaks)
    strong = score[found] > settings.detect_z
    if int(strong.sum()) + taken.size < settings.companion_after:
        found = found[strong]
    position = _refined(frame, residual, found, settings.core_fwhm * widths)
    return Bumps(position, widths[found], score[found]), score


def covered_share(frame: Frame, settings: UnexplainedSettings) -> float:
    """Return the share of the channels in which no peak can be called unexplained."""
    return float(_excluded(frame, settings).mean())


def _box_score(frame: Frame, residual: FloatArray, half: FloatArray) -> FloatArray:
    """Return the sum of the residual within +-half over its counting esd, at every channel."""
    low = np.searchsorted(frame.x, frame.x - half)
    high = np.searchsorted(frame.x, frame.x + half, side="right")
    total = np.concatenate(([0.0], np.cumsum(residual)))
    variance = np.concatenate(([0.0], np.cumsum(frame.variance)))
    return np.asarray((total[high] - total[low]) / np.sqrt(variance[high] - variance[low]))


def _excluded(frame: Frame, settings: UnexplainedSettings) -> NDArray[np.bool_]:
    """Return the channels within max(0.5 FWHM, 2 steps) of any calculated line, whatever its intensity."""
    lines, size = frame.lines, frame.x.size
    if lines.position.size == 0:
        return np.zeros(size, dtype=bool)
    step = frame.step[np.clip(np.searchsorted(frame.x, lines.position), 0, size - 1)]
    zone = np.maximum(settings.exclusion_fwhm * lines.fwhm, settings.exclusion_steps * step)
    low = np.searchsorted(frame.x, lines.position - zone)
    high = np.searchsorted(frame.x, lines.position + zone, side="right")
    depth = np.bincount(low, minlength=size + 1) - np.bincount(high, minlength=size + 1)
    return np.asarray(np.cumsum(depth)[:size] > 0)


def _separated(
    frame: Frame, found: NDArray[np.int64], score: FloatArray, apart: FloatArray, limit: int
) -> NDArray[np.int64]:
    """Keep the strongest of those closer than ``apart``, at most as many as are worth a fit."""
    order = found[np.argsort(-score[found], kind="stable")]
    low = np.searchsorted(frame.x, frame.x[order] - apart[order])
    high = np.searchsorted(frame.x, frame.x[order] + apart[order])
    kept: list[int] = []
    taken = np.zeros(frame.x.size, dtype=bool)
    for index, begin, end in zip(order.tolist(), low.tolist(), high.tolist(), strict=True):
        if not taken[index]:
            kept.append(index)
            taken[begin:end] = True
    return np.sort(np.asarray(kept[:limit], dtype=np.int64))


def _refined(frame: Frame, residual: FloatArray, found: NDArray[np.int64], half: FloatArray) -> FloatArray:
    """Return centroids of the positive residual around the maxima."""
    windows = windows_between(frame.x, frame.x[found] - half[found], frame.x[found] + half[found])
    mass = np.maximum(residual[windows.point], 0.0)
    total = sum_by(windows.owner, mass, found.size)
    moment = sum_by(windows.owner, mass * frame.x[windows.point], found.size)
    return np.asarray(np.where(total > 0, moment / np.where(total > 0, total, 1.0), frame.x[found]))
