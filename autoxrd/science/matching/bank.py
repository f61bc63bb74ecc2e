"""Where on a target does a candidate fit best? Its pattern, kept with its transform, slid over all cell changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import sum_by
from autoxrd.science.matching.lines import CandidateLines
from autoxrd.science.matching.settings import MatchSettings
from autoxrd.science.matching.target import Axis, Target
from autoxrd.science.shapes import pseudo_voigt, windows_between

__all__ = ["Bank", "Match"]

_ETA = 0.5
_REACH_FWHM = 4.0


@dataclass(frozen=True, slots=True)
class Match:
    """A candidate on a target.

    Args:
        lag: steps of the axis that its pattern is moved by.
        strain: the relative change of its cell lengths that this is.
        scale: relative to the scale of its lines.
        drop: chi2 that it takes away, the others held.
        seen: share of the intensity expected in its own lines that is there; NaN where it has none of its own.
        lines: number of its own lines that were looked for.
    """

    name: str
    lag: int
    strain: float
    scale: float
    drop: float
    seen: float = float("nan")
    lines: int = 0


class Bank:
    """The patterns of all candidates on one axis."""

    def __init__(self, axis: Axis, candidates: Iterable[CandidateLines], settings: MatchSettings) -> None:
        self.axis = axis
        self.lines = {c.name: c for c in candidates}
        self._lags = max(int(np.rad2deg(2.0 * settings.cell_relative) / axis.step), 1)
        self._length = 1 << int(np.ceil(np.log2(axis.u.size + 2 * self._lags)))
        self.shapes = {name: self._template(c) for name, c in self.lines.items()}
        self._spectra = {
            name: (np.conj(np.fft.rfft(s, self._length)), np.conj(np.fft.rfft(s * s, self._length)))
            for name, s in self.shapes.items()
        }

    def places(self, name: str, lag: int = 0) -> FloatArray:
        """Return the places on the axis of a candidate's lines, moved."""
        return np.asarray(np.rad2deg(2.0 * np.log(self.lines[name].sine)) + lag * self.axis.step)

    def _template(self, lines: CandidateLines) -> FloatArray:
        axis = self.axis
        at = np.rad2deg(2.0 * np.log(lines.sine))
        width = np.interp(at, axis.u, axis.fwhm)
        area = lines.area * np.interp(at, axis.u, axis.height)
        windows = windows_between(axis.u, at - _REACH_FWHM * width, at + _REACH_FWHM * width)
        owner = windows.owner
        value = pseudo_voigt(axis.u[windows.point], at[owner], width[owner], np.full(owner.size, _ETA))
        return sum_by(windows.point, area[owner] * value, axis.u.size)

    def moved(self, name: str, lag: int) -> FloatArray:
        """Return a candidate's pattern moved by a number of steps, shape (g,)."""
        shape, out = self.shapes[name], np.zeros(self.axis.u.size)
        if lag >= 0:
            out[lag:] = shape[: shape.size - lag]
        else:
            out[:lag] = shape[-lag:]
        return out

    def spectra(self, target: Target) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """Return the transforms of a target that :meth:`match` needs: of weight times curve, and of the weight."""
        return np.fft.rfft(target.weight * target.y, self._length), np.fft.rfft(target.weight, self._length)

    def match(self, name: str, spectra: tuple[NDArray[np.complex128], NDArray[np.complex128]]) -> Match:
        """Return the best place of a candidate within the cell tolerance: a weighted correlation over all lags."""
        mine, square = self._spectra[name]
        cross = np.maximum(self._window(np.fft.irfft(spectra[0] * mine, self._length)), 0.0)
        norm = self._window(np.fft.irfft(spectra[1] * square, self._length))
        drop = np.where(norm > 1e-9 * max(norm.max(), 0.0), np.square(cross) / np.maximum(norm, 1e-300), 0.0)
        best = int(np.argmax(drop))
        if not drop[best] > 0:
            return Match(name, 0, 0.0, 0.0, 0.0)
        lag = best - self._lags
        return Match(name, lag, self.strain(lag), float(cross[best] / norm[best]), float(drop[best]))

    def strain(self, lag: int) -> float:
        """Return the relative change of cell lengths that moves a pattern by a number of steps."""
        return float(np.expm1(-np.deg2rad(lag * self.axis.step) / 2.0))

    def likeness(self, first: str, second: str) -> float:
        """Return the squared cosine between two candidates' patterns, the second one's cell moved to fit best."""
        shape = self.shapes[first]
        total = float(np.dot(shape, shape))
        return self.match(second, self.spectra_of(shape)).drop / total if total > 0 else 0.0

    def spectra_of(self, curve: FloatArray) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """Return the transforms of a curve all of whose points weigh alike, shape (g,)."""
        return self.spectra(Target(curve, np.ones_like(curve)))

    def _window(self, full: FloatArray) -> FloatArray:
        return np.concatenate((full[-self._lags :], full[: self._lags + 1]))
