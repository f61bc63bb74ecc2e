"""Which shift does each cause give a reflection? Zero, specimen displacement and isotropic cell, on the axis.

Bragg-Brentano: displacement s moves a line by -(2 s / R) cos(theta) radians. Debye-Scherrer: a specimen b across and
a along the beam moves it by (b cos(2 theta) - a sin(2 theta)) / R (McCusker et al. 1999, eq. 4,
doi:10.1107/S0021889898009856). Over the time of flight a line moves with the cell in proportion to
its time; the specimen's place does the same, and is no cause of its own there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.instrument import Geometry
from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import bragg_angle, cell_slope, small_inverse, sum_by
from autoxrd.science.frame import Frame
from autoxrd.science.inputs import FitArrays, MeasureContext
from autoxrd.science.metric import cell_strains
from autoxrd.science.reflections import PeakMeasures
from autoxrd.science.trend import robust_fit

__all__ = ["LawFit", "LawProblem", "Shift", "Strains", "displacement_law", "law_problem", "strains_of"]

_RIDGE = 1e-10
DISPLACEMENT = "displacement"
ALONG = "displacement.along"
_MIN_ALONG = 6
ZERO = "zero"
TIME = "time"
CELL = "cell"


@dataclass(frozen=True, slots=True)
class Shift:
    """A shift of the model: amplitudes in degrees 2theta; ``cell`` (per phase index) multiplies tan(theta).

    Over the time of flight microseconds, and ``cell`` is relative.
    """

    zero: float = 0.0
    displacement: float = 0.0
    cell: tuple[float, ...] = ()
    law: str = "cos"
    """Displacement law: ``cos`` or ``cos2``; ``time`` over the time of flight."""
    along: float = 0.0
    """Amplitude of -sin(2 theta)."""
    strain: tuple[tuple[float, ...], ...] = ()
    """Per phase, amplitudes of the other cell changes; they act on single reflections, not on the whole pattern."""

    def at(self, two_theta: FloatArray, phase: int | NDArray[np.int64]) -> FloatArray:
        """Return the shift in degrees at positions in degrees 2theta of a phase (or one phase per position)."""
        if self.law == TIME:
            stretch = np.asarray(self.cell)[phase] if self.cell else 0.0
            return np.asarray(self.zero + two_theta * stretch + np.zeros_like(two_theta))
        theta = bragg_angle(two_theta)
        shift = np.full(theta.shape, self.zero)
        if self.displacement:
            shift += self.displacement * _displacement(theta, self.law)
        if self.along:
            shift -= self.along * np.sin(2.0 * theta)
        if self.cell:
            # exactly: ln(sin theta) changes by half the amplitude in radians
            stretched = np.exp(np.deg2rad(np.asarray(self.cell)[phase]) / 2.0) * np.sin(theta)
            shift += np.rad2deg(2.0 * (np.arcsin(np.minimum(stretched, 1.0)) - theta))
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
        names: ``zero``, ``displacement``, ``cell`` (one factor for all phases), ``cell.P`` by phase index (isotropic),
            ``cell.P.k`` (what else the symmetry allows).
        unlikely: columns that this kind of measurement hardly has.
        columns: shape (n, c), degrees per unit amplitude.
        scale: reduced chi2 of the fullest fit where that is > 1, else 1: what the laws cannot explain is noise to them.
        used: mask of the peaks that entered, shape (p,).
    """

    names: tuple[str, ...]
    unlikely: frozenset[str]
    columns: FloatArray
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
        if not names:
            return LawFit((), np.zeros(0), np.zeros((0, 0)), self.chi2_null)
        at = np.array([self.names.index(name) for name in names])
        normal, right = self.normal[at[:, None], at], self.right[at]
        inverse = small_inverse(normal)
        coefficient = inverse @ right
        chi2 = max(self.chi2_null - float(coefficient @ right), 0.0)
        return LawFit(names, coefficient, inverse * self.scale, chi2)

    def _unit(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the scale of the columns, and normal matrix and right-hand side of scaled columns."""
        diagonal = np.sqrt(self.normal.diagonal())
        diagonal[diagonal <= 0] = 1.0
        return diagonal, self.normal / (diagonal[:, None] * diagonal), self.right / diagonal

    def least(self) -> float:
        """Return chi2 (not scaled) of the fit by all laws."""
        _, scaled, right = self._unit()
        scaled.flat[:: right.size + 1] += _RIDGE
        return max(self.chi2_null - float(np.linalg.solve(scaled, right) @ right), 0.0)

    def fit_many(self, mask: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return, of many subsets at once, chi2 (not scaled) and how far their causes cancel, shape (subsets,).

        The latter is the largest rms of one cause's contribution over the rms of all together.

        Args:
            mask: 1 for each column that a subset has, else 0, shape (subsets, c).
        """
        diagonal, scaled, right = self._unit()
        batch = (scaled * mask[:, None, :]) * mask[:, :, None]
        np.einsum("sii->si", batch)[...] += 1.0 - mask + _RIDGE
        masked = right * mask
        solved = np.linalg.solve(batch, masked[:, :, None])[:, :, 0]
        chi2 = np.maximum(self.chi2_null - np.einsum("si,si->s", solved, masked), 0.0)
        amplitude = solved / diagonal
        squares = self.columns.T @ self.columns / len(self.columns)
        single = np.abs(amplitude) * np.sqrt(squares.diagonal())
        together = np.sqrt(np.maximum(np.einsum("si,si->s", amplitude @ squares, amplitude), 0.0))
        return chi2, single.max(axis=1) / np.maximum(together, 1e-300)


@dataclass(frozen=True, slots=True)
class Strains:
    """What each phase's cell changes do to each reflection and peak: relative change of 1/d^2 per unit.

    Args:
        reflection: per phase, shape (n_P, r), zero for other phases' reflections.
        peak: per phase, shape (n_P, p), area-weighted over a peak's members.
    """

    reflection: tuple[FloatArray, ...]
    peak: tuple[FloatArray, ...]


def strains_of(result: FitArrays, frame: Frame) -> Strains:
    """Return the cell changes of all phases."""
    table = frame.reflections
    grouped, area = table.peak >= 0, np.maximum(table.area, 1e-300)
    count = int(frame.peaks.position.size)
    by_reflection, by_peak = [], []
    for index, phase in enumerate(result.phases):
        own = np.flatnonzero(table.phase == index)
        rows = cell_strains(table.hkl[own], phase.structure.cell, phase.structure.operations)
        full = np.zeros((rows.shape[0], table.phase.size))
        full[:, own] = rows
        own = own[grouped[own]]
        owner, share = table.peak[own], area[own]
        weight = sum_by(owner, share, count)
        weight[weight <= 0] = 1.0
        by_reflection.append(full)
        by_peak.append(np.array([sum_by(owner, share * row[own], count) / weight for row in full]))
    return Strains(tuple(by_reflection), tuple(by_peak))


def displacement_law(context: MeasureContext) -> str:
    """Return ``cos`` (Bragg-Brentano) or ``cos2`` (Debye-Scherrer); ``time`` where there is none of its own."""
    if context.timed:
        return TIME
    return "cos" if context.instrument.geometry is Geometry.BRAGG_BRENTANO else "cos2"


def _analyser(context: MeasureContext) -> bool:
    """A capillary of unknown radius: most often a synchrotron's, where analyser crystals remove the offset."""
    return displacement_law(context) == "cos2" and not context.radius_mm


def _displacement(theta: FloatArray, law: str) -> FloatArray:
    if law == "cos":
        return np.asarray(np.cos(theta))
    return np.asarray(np.cos(2.0 * theta))


def _columns(
    middle: FloatArray, law: str, strains: Strains, used: NDArray[np.bool_], own: NDArray[np.int64], minimum: int
) -> dict[str, FloatArray]:
    """Return the columns of all laws that the peaks can speak of."""
    columns, theta = {ZERO: np.ones_like(middle)}, bragg_angle(middle)
    if law != TIME:
        columns[DISPLACEMENT] = _displacement(theta, law)
    if law == "cos2" and theta.size > _MIN_ALONG:
        columns[ALONG] = -np.sin(2.0 * theta)
    phases, tangent = [i for i, count in enumerate(own) if count >= minimum], cell_slope(middle, timed=law == TIME)
    if len(phases) > 1:
        columns[CELL] = tangent
    for index in phases:
        rows = strains.peak[index][:, used] * tangent
        columns[f"{CELL}.{index}"] = rows[0]
        if own[index] > rows.shape[0]:
            columns |= {f"{CELL}.{index}.{k}": row for k, row in enumerate(rows[1:], start=1)}
    return columns


def law_problem(measures: PeakMeasures, context: MeasureContext, strains: Strains) -> LawProblem | None:
    """Set up the fit of the shaped peaks' offsets (degrees 2theta); None where peaks are too few.

    Args:
        measures: peaks of a frame.
        context: geometry and settings.
        strains: cell changes of the phases.
    """
    settings = context.settings.positions
    n_phases = len(strains.peak)
    used = measures.shaped & ((measures.phase_share > settings.own_share) if n_phases > 1 else True)
    count = int(used.sum())
    if count < settings.min_reflections:
        return None
    # half way between calculated and observed the linear law of the cell is right to third order
    middle = measures.position[used] + 0.5 * measures.offset[used]
    own = np.bincount(measures.phase[used], minlength=n_phases).astype(np.int64)
    columns = _columns(middle, displacement_law(context), strains, used, own, settings.min_per_phase)
    esds = measures.offset_esd[used]
    matrix = np.array(list(columns.values())).T.copy()
    scaled = matrix / esds[:, None]
    target = measures.offset[used] / esds
    # a common cell factor beside one for each phase is one too many
    independent = [i for i, name in enumerate(columns) if name != CELL]
    fit = robust_fit(matrix[:, independent], measures.offset[used], esds)
    weighted = scaled * fit.weights[:, None]
    return LawProblem(
        names=tuple(columns),
        unlikely=frozenset((DISPLACEMENT, ALONG)) if _analyser(context) else frozenset(),
        columns=matrix,
        normal=weighted.T @ scaled,
        right=weighted.T @ target,
        chi2_null=float(np.dot(fit.weights, target * target)),
        scale=max(1.0, fit.chi2_reduced),
        used=used,
    )
