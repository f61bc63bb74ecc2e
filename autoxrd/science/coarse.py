"""By which zero, displacement or cell error could the whole pattern be off, over a range of many FWHM?

On an axis of its own (2theta, the integral of 1/cos theta, ln sin theta) each law is a uniform translation, so that one
weighted cross-correlation tries all amplitudes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.frame import Frame, phase_curve
from autoxrd.science.laws import CELL, DISPLACEMENT, ZERO
from autoxrd.science.noise import moving_mean
from autoxrd.science.settings import PositionSettings

__all__ = ["CoarseShift", "coarse_cell", "coarse_shifts"]

_MAX_GRID = 1 << 16
_POINTS_PER_FWHM = 3.0
_BASELINE_FWHM = 30.0


@dataclass(frozen=True, slots=True)
class CoarseShift:
    """A law and its amplitude in degrees 2theta, with the grid's resolution as uncertainty."""

    law: str
    amplitude_deg: float
    esd_deg: float


def coarse_shifts(frame: Frame, displacement: str, settings: PositionSettings) -> Iterator[CoarseShift]:
    """Yield the best amplitude of each law where it is more than the derivatives can see.

    Args:
        frame: as calculated.
        displacement: displacement law of the geometry; only ``cos`` is a translation on an axis.
        settings: ranges.
    """
    for law in (ZERO, DISPLACEMENT, CELL):
        if law == DISPLACEMENT and displacement != "cos":
            continue
        reach = _reach(frame, settings) if law == CELL else settings.coarse_zero_deg
        if frame.timed and law == ZERO:
            reach = settings.coarse_zero_fwhm * float(np.median(frame.lines.fwhm))
        found = _correlate(frame, law, float(reach), frame.net_obs, frame.net_calc, settings)
        if found is not None:
            yield found


def coarse_cell(frame: Frame, phase: int, observed: FloatArray, settings: PositionSettings) -> CoarseShift | None:
    """Return the best isotropic cell error of one phase, None where it is small.

    Args:
        frame: model as it is now.
        phase: index of the phase.
        observed: net pattern without the other phases, shape (n,).
        settings: ranges.
    """
    calculated = phase_curve(frame, phase)
    return _correlate(frame, CELL, _reach(frame, settings), observed, calculated, settings)


def _reach(frame: Frame, settings: PositionSettings) -> float:
    """Return the half range of a cell's amplitude: relative over the time of flight, else degrees."""
    relative = settings.coarse_cell_relative
    return relative if frame.timed else float(np.rad2deg(2.0 * relative))


def _stretched(x: FloatArray, law: str, *, timed: bool) -> tuple[FloatArray, FloatArray]:
    """Return the axis on which a law is a translation (of its amplitude), and d(position)/d(axis)."""
    if timed and law == CELL:
        return np.log(np.maximum(x, 1.0)), np.maximum(x, 1.0)
    theta = np.deg2rad(np.clip(x, 0.2, 178.0)) / 2.0
    if law == ZERO:
        return x, np.ones_like(x)
    if law == DISPLACEMENT:
        return np.rad2deg(2.0 * np.arctanh(np.sin(theta))), np.cos(theta)
    return np.rad2deg(2.0 * np.log(np.sin(theta))), np.tan(theta)


def _correlate(
    frame: Frame, law: str, reach: float, observed: FloatArray, calculated: FloatArray, settings: PositionSettings
) -> CoarseShift | None:
    """Return the amplitude with the largest weighted correlation, None where derivatives can see it."""
    axis, slope = _stretched(frame.x, law, timed=frame.timed)
    widths = frame.lines.fwhm / np.maximum(_stretched(frame.lines.position, law, timed=frame.timed)[1], 1e-6)
    width = float(np.median(widths))
    span = float(axis[-1] - axis[0])
    size = int(min(max(span / (float(np.quantile(widths, 0.1)) / _POINTS_PER_FWHM), 64), _MAX_GRID))
    grid = np.linspace(axis[0], axis[-1], size)
    step = span / (size - 1)
    lags = min(int(reach / step) + 1, size // 2)
    piece = int(_BASELINE_FWHM * width / step) | 1
    weight = np.interp(grid, axis, frame.weight * slope)
    seen = np.interp(grid, axis, observed)
    model = np.interp(grid, axis, calculated)
    seen = seen - moving_mean(seen, piece)
    model = model - moving_mean(model, piece)
    length = 1 << int(np.ceil(np.log2(size + 2 * lags)))

    def correlation(first: FloatArray, second: FloatArray) -> FloatArray:
        full = np.fft.irfft(np.fft.rfft(first, length) * np.conj(np.fft.rfft(second, length)), length)
        return np.concatenate((full[-lags:], full[: lags + 1]))

    cross = correlation(weight * seen, model)
    norm = correlation(weight, model * model)
    score = np.where(norm > 0, np.square(np.maximum(cross, 0.0)) / np.maximum(norm, 1e-300), 0.0)
    amplitude = float((int(np.argmax(score)) - lags) * step)
    return CoarseShift(law, amplitude, step) if abs(amplitude) >= settings.coarse_min_fwhm * width else None
