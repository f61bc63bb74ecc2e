"""What the measures read: the arrays of a fit, whichever engine made them.

Structural types, so that ``science`` stays below ``engines``: ``EngineResult`` satisfies :class:`FitArrays`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.instrument import Instrument
from autoxrd.domain.pattern import AxisKind, FloatArray, SigmaOrigin
from autoxrd.domain.state import (
    Complexity,
    Convergence,
    Feature,
    MeasuredValue,
    ParameterValue,
    PhaseSummary,
    Quality,
    UnexplainedPeak,
    Violation,
)
from autoxrd.domain.structure import CrystalStructure
from autoxrd.science.settings import Limits, MeasureSettings

__all__ = ["FitArrays", "MeasureContext", "Measures", "PhaseOutcome", "ReflectionArrays", "ScaledFit", "WeighedPhase"]

IntArray = NDArray[np.int64]


class ReflectionArrays(Protocol):
    """All lines of all reflections, arrays of equal length m (``engines.protocol.ReflectionTable``)."""

    @property
    def phase(self) -> IntArray:
        """Index into the phases, shape (m,)."""

    @property
    def line(self) -> IntArray:
        """Index of the emission line, shape (m,)."""

    @property
    def hkl(self) -> IntArray:
        """Miller indices, shape (m, 3)."""

    @property
    def d_angstrom(self) -> FloatArray:
        """Lattice spacing, shape (m,)."""

    @property
    def position(self) -> FloatArray:
        """Calculated position on the pattern's axis, shape (m,)."""

    @property
    def fwhm(self) -> FloatArray:
        """Full width at half maximum on the pattern's axis, shape (m,)."""

    @property
    def eta(self) -> FloatArray:
        """Lorentzian fraction, shape (m,)."""

    @property
    def intensity(self) -> FloatArray:
        """Calculated area of the line, shape (m,)."""

    @property
    def multiplicity(self) -> IntArray:
        """Multiplicity, shape (m,)."""


class WeighedPhase(Protocol):
    """A phase with its share."""

    @property
    def name(self) -> str:
        """Name within the job."""

    @property
    def weight_fraction(self) -> MeasuredValue | None:
        """Weight fraction among the crystalline phases."""


class ScaledFit(Protocol):
    """What of a fit tells how much of each phase there is; a result of an engine, or a recorded state."""

    @property
    def phases(self) -> Sequence[WeighedPhase]:
        """The phases."""

    @property
    def parameters(self) -> Sequence[ParameterValue]:
        """Every parameter."""

    @property
    def covariance_names(self) -> Sequence[str]:
        """Names of the free parameters, length k."""

    @property
    def covariance(self) -> FloatArray:
        """Shape (k, k)."""


class PhaseOutcome(WeighedPhase, Protocol):
    """A phase as refined (``engines.protocol.PhaseResult``)."""

    @property
    def space_group(self) -> str:
        """Hermann-Mauguin symbol."""

    @property
    def cell(self) -> Mapping[str, MeasuredValue]:
        """Keys a b c alpha beta gamma volume."""

    @property
    def structure(self) -> CrystalStructure:
        """The refined structure."""


class FitArrays(ScaledFit, Protocol):
    """A fit (``engines.protocol.EngineResult``); pattern arrays have shape (n,)."""

    @property
    def x(self) -> FloatArray:
        """Abscissa, increasing."""

    @property
    def y_obs(self) -> FloatArray:
        """Observed intensity."""

    @property
    def sigma(self) -> FloatArray:
        """Standard uncertainty of ``y_obs``, > 0."""

    @property
    def y_calc(self) -> FloatArray:
        """Calculated intensity, background included."""

    @property
    def background(self) -> FloatArray:
        """Calculated background."""

    @property
    def phase_patterns(self) -> FloatArray:
        """Bragg contribution per phase, shape (n_phases, n)."""

    @property
    def reflections(self) -> ReflectionArrays:
        """All lines of all reflections."""

    @property
    def phases(self) -> Sequence[PhaseOutcome]:
        """The phases, in the order of ``phase_patterns``."""

    @property
    def convergence(self) -> Convergence:
        """How the least squares ended."""

    @property
    def engine_r(self) -> Mapping[str, float]:
        """The engine's own R factors."""

    @property
    def gains(self) -> Mapping[str, float]:
        """Predicted drop of chi2 by selector."""

    @property
    def gain_counts(self) -> Mapping[str, int]:
        """Parameters that each gain would add."""


@dataclass(frozen=True, slots=True)
class MeasureContext:
    """What the measures must know beside the fit itself.

    Args:
        instrument: radiation, lines and specimen geometry.
        initial: structures as they were read, by phase name; the reference of ``cell_far``.
        axis: kind of abscissa; position features exist for 2theta and for the time of flight of a calibrated bank.
        sigma_origin: decides how the variance of a local projection is smoothed.
        goniometer_radius_mm: overrides the instrument's; None to take that.
        limits: limits of the plausibility checks.
        settings: thresholds of the measures.
        matched: number of free intensities of a profile match; None of a structure.
    """

    instrument: Instrument
    initial: Mapping[str, CrystalStructure] = field(default_factory=dict)
    axis: AxisKind = AxisKind.TWO_THETA
    sigma_origin: SigmaOrigin = SigmaOrigin.COUNTING
    goniometer_radius_mm: float | None = None
    limits: Limits = field(default_factory=Limits)
    settings: MeasureSettings = field(default_factory=MeasureSettings)
    matched: int | None = None

    @property
    def timed(self) -> bool:
        """True over the time of flight of a calibrated bank, where shifts have laws of their own."""
        return self.axis is AxisKind.TOF and self.instrument.flight is not None

    @property
    def radius_mm(self) -> float | None:
        """Goniometer radius, mm, None where unknown."""
        return self.goniometer_radius_mm or self.instrument.goniometer_radius_mm


@dataclass(frozen=True, slots=True)
class Measures:
    """All that is measured on one fit."""

    quality: Quality
    features: dict[str, Feature]
    violations: tuple[Violation, ...]
    complexity: Complexity
    unexplained_peaks: tuple[UnexplainedPeak, ...]
    phases: tuple[PhaseSummary, ...]
    notices: tuple[tuple[str, str], ...] = ()
    """(code, text): what a person should know and no gate asks."""
