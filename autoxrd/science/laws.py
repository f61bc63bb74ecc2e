"""Which shift does each cause give a reflection? Zero, specimen displacement and isotropic cell, in degrees 2theta.

Bragg-Brentano: displacement s moves a line by -(2 s / R) cos(theta) radians. Debye-Scherrer: a specimen b across the
beam moves it by (b / R) cos(2 theta) (McCusker et al. 1999, eq. 4, doi:10.1107/S0021889898009856); the part along
the beam, -(a / R) sin(2 theta), is not fitted: beside zero and cell no range separates it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.instrument import Geometry
from autoxrd.domain.pattern import FloatArray
from autoxrd.science.inputs import MeasureContext
from autoxrd.science.reflections import PeakMeasures
from autoxrd.science.settings import PositionSettings

__all__ = ["LawFit", "LawProblem", "Shift", "displacement_law", "law_columns", "law_problem", "usable_phases"]

DISPLACEMENT = "displacement"
ZERO = "zero"
CELL = "cell"


@dataclass(frozen=True, slots=True)
class Shift:
    """A shift of the model: amplitudes in degrees 2theta; ``cell`` (per phase index) multiplies tan(theta)."""

    zero: float = 0.0
    displacement: float = 0.0
    cell: tuple[float, ...] = ()
    law: str = "none"
    """Displacement law: ``cos``, ``cos2`` or ``none``."""

    def at(self, two_theta: FloatArray, phase: int | NDArray[np.int64]) -> FloatArray:
        """Return the shift in degrees at positions in degrees 2theta of a phase (or one phase per position)."""
        theta = np.deg2rad(np.clip(two_theta, 1e-3, 179.0)) / 2.0
        shift = np.full(theta.shape, self.zero)
        if self.displacement:
            shift += self.displacement * _displacement(theta, self.law)
        if self.cell:
            shift += np.asarray(self.cell)[phase] * np.tan(theta)
        return shift


@dataclass(frozen=True, slots=True)
class LawFit:
    """A weighted fit of offsets by some of the laws; covariance scaled by ``LawProblem.scale``."""

    names: tuple[str, ...]
    coefficient: FloatArray
    covariance: FloatArray
    chi2: float

    def get(self, name: str) -> tuple[float, float] | None:
        """Return value and esd of one column, None where it was not fitted."""
        if name not in self.names:
            return None
        index = self.names.index(name)
        return float(self.coefficient[index]), float(np.sqrt(max(self.covariance[index, index], 0.0)))

    def correlation(self, first: str, second: str) -> float:
        """Return the correlation coefficient of two fitted columns."""
        i, j = self.names.index(first), self.names.index(second)
        norm = np.sqrt(self.covariance[i, i] * self.covariance[j, j])
        return float(self.covariance[i, j] / norm) if norm > 0 else 0.0


@dataclass(frozen=True, slots=True)
class LawProblem:
    """Offsets of all usable peaks, all laws, ready to be fitted by any subset of them.

    Args:
        names: ``zero``, ``displacement``, ``cell`` (one factor for all phases), ``cell.P`` by phase index.
        scale: reduced chi2 of the fullest fit where that is > 1, else 1: what the laws cannot explain is noise to them.
        used: mask of the peaks that entered, shape (p,).
    """

    names: tuple[str, ...]
    normal: FloatArray
    right: FloatArray
    chi2_null: float
    scale: float
    used: NDArray[np.bool_]

    @property
    def n_used(self) -> int:
        """Number of peaks."""
        return int(self.used.sum())

    def fit(self, names: tuple[str, ...]) -> LawFit:
        """Return the fit by a subset of the laws."""
        at = [self.names.index(name) for name in names]
        if not at:
            return LawFit((), np.zeros(0), np.zeros((0, 0)), self.chi2_null)
        normal, right = self.normal[np.ix_(at, at)], self.right[at]
        diagonal = np.sqrt(np.diag(normal))
        diagonal[diagonal <= 0] = 1.0
        inverse = np.linalg.pinv(normal / np.outer(diagonal, diagonal), rcond=1e-12, hermitian=True)
        inverse /= np.outer(diagonal, diagonal)
        coefficient = inverse @ right
        chi2 = max(self.chi2_null - float(coefficient @ right), 0.0)
        return LawFit(names, coefficient, inverse * self.scale, chi2)


def displacement_law(context: MeasureContext) -> str:
    """Return ``cos`` (Bragg-Brentano), ``cos2`` (Debye-Scherrer of known radius) or ``none``.

    Without a radius a capillary's offset has no unit and no engine refines it; a crystal analyser removes it.
    """
    if context.instrument.geometry is Geometry.BRAGG_BRENTANO:
        return "cos"
    return "cos2" if context.radius_mm else "none"


def _displacement(theta: FloatArray, law: str) -> FloatArray:
    if law == "cos":
        return np.asarray(np.cos(theta))
    if law == "cos2":
        return np.asarray(np.cos(2.0 * theta))
    return np.zeros_like(theta)


def law_columns(
    theta: FloatArray, phase: NDArray[np.int64], law: str, phases: tuple[int, ...]
) -> dict[str, FloatArray]:
    """Return the columns of all laws that exist: of one phase ``cell.P``, of several also the common ``cell``."""
    columns = {ZERO: np.ones_like(theta)}
    if law != "none":
        columns[DISPLACEMENT] = _displacement(theta, law)
    if len(phases) > 1:
        columns[CELL] = np.tan(theta)
    for index in phases:
        columns[f"{CELL}.{index}"] = np.where(phase == index, np.tan(theta), 0.0)
    return columns


def _robust_weights(scaled: FloatArray, target: FloatArray, settings: PositionSettings) -> tuple[FloatArray, float]:
    """Return Huber weights and chi2 of the fit by all columns."""
    weights = np.ones_like(target)
    left = target
    for _ in range(settings.robust_cycles):
        root = np.sqrt(weights)
        coefficient = np.linalg.lstsq(scaled * root[:, None], target * root, rcond=1e-10)[0]
        left = target - scaled @ coefficient
        spread = max(1.0, 1.4826 * float(np.median(np.abs(left))))
        weights = np.minimum(1.0, settings.robust_k * spread / np.maximum(np.abs(left), 1e-12))
    return weights, float(np.dot(weights, left * left))


def usable_phases(measures: PeakMeasures, settings: PositionSettings, n_phases: int) -> tuple[int, ...]:
    """Return the phases with enough shaped peaks of their own for a cell term."""
    own = measures.shaped & (measures.phase_share > settings.own_share)
    counts = np.bincount(measures.phase[own], minlength=n_phases)
    return tuple(int(i) for i in np.flatnonzero(counts >= settings.min_per_phase))


def law_problem(measures: PeakMeasures, context: MeasureContext, n_phases: int) -> LawProblem | None:
    """Set up the fit of the shaped peaks' offsets (degrees 2theta); None where peaks are too few."""
    settings = context.settings.positions
    phases = usable_phases(measures, settings, n_phases)
    used = measures.shaped & ((measures.phase_share > settings.own_share) if n_phases > 1 else True)
    count = int(used.sum())
    if count < settings.min_reflections:
        return None
    theta = np.deg2rad(np.clip(measures.position[used], 1e-3, 179.0)) / 2.0
    columns = law_columns(theta, measures.phase[used], displacement_law(context), phases)
    esds = measures.offset_esd[used]
    scaled = np.stack(list(columns.values()), axis=1) / esds[:, None]
    target = measures.offset[used] / esds
    weights, chi2 = _robust_weights(scaled, target, settings)
    independent = len(columns) - (1 if len(phases) > 1 else 0)
    dof = count - independent
    weighted = scaled * weights[:, None]
    return LawProblem(
        names=tuple(columns),
        normal=weighted.T @ scaled,
        right=weighted.T @ target,
        chi2_null=float(np.dot(weights, target * target)),
        scale=max(1.0, chi2 / dof) if dof > 0 else 1.0,
        used=used,
    )
