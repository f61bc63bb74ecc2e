"""What is recorded of a fit: quality, features, violations, complexity, parameters, phases."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from autoxrd.domain.action import Bound, Stage

__all__ = [
    "Complexity",
    "Convergence",
    "Correlation",
    "Feature",
    "FitState",
    "MeasuredValue",
    "ParameterValue",
    "PhaseSummary",
    "Quality",
    "UnexplainedPeak",
    "Violation",
]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MeasuredValue(_Frozen):
    """A number with its standard uncertainty, None where it has none."""

    value: float
    esd: float | None = None


class Quality(_Frozen):
    """R factors as fractions (not percent); definitions in DESIGN section 7."""

    rp: float
    rwp: float
    rexp: float
    gof: float
    chi2: float
    """Sum of w e^2 (not reduced)."""
    rwp_no_background: float
    n_points: int
    n_parameters: int
    abs_residual: float
    r_bragg: dict[str, float | None] = Field(default_factory=dict)
    """By phase name; fraction; None where it cannot be told."""


class Feature(_Frozen):
    """A measured residual feature; ``available`` False means "cannot tell", with the reason."""

    value: float | None
    esd: float | None = None
    significance: float | None = None
    """|value| / esd, or the feature's own significance."""
    n_used: int | None = None
    available: bool = True
    reason: str = ""
    unit: str = ""


class UnexplainedPeak(_Frozen):
    """A residual peak that no calculated reflection explains."""

    two_theta_deg: float
    """Where it is on the pattern's axis: degrees 2theta, or microseconds over the time of flight."""
    d_angstrom: float
    area: float
    area_share: float
    significance: float
    histogram: str = Field(default="", exclude_if=lambda name: not name)
    """Which of several histograms has it; empty, and not written, where there is one: records keep their hashes."""


class Violation(_Frozen):
    """A physical or statistical check that failed, with the values that tripped it."""

    code: str
    subject: str
    """What it concerns: a selector, phase or atom."""
    value: float | None = None
    limit: float | None = None
    text: str = ""
    severity: Literal["hard", "soft"] = "hard"

    @property
    def key(self) -> tuple[str, str]:
        """What makes two violations the same one."""
        return (self.code, self.subject)


class Correlation(_Frozen):
    """A pair of parameters and their correlation coefficient."""

    first: str
    second: str
    value: float


class Complexity(_Frozen):
    """Size and conditioning of the least-squares problem."""

    n_free: int
    """Free parameters, and those that an estimated background stands for."""
    n_points: int
    max_correlation: float | None = None
    """Largest |r| outside linear background bases."""
    max_correlation_pair: tuple[str, str] | None = None
    high_correlations: tuple[Correlation, ...] = ()
    background_max_correlation: float | None = None
    condition_number: float | None = None
    n_estimated: int = Field(default=0, exclude_if=lambda number: not number)
    """Effective parameters of curves that were estimated from the data and are held: part of ``n_free``. Not written
    where there are none: records keep their hashes."""


class Convergence(_Frozen):
    """How the engine's least squares ended."""

    converged: bool
    cycles: int
    max_shift_over_esd: float | None = None
    status: str = ""
    dropped: tuple[str, ...] = ()
    """Parameters the engine held as singular or unsupported."""


class ParameterValue(_Frozen):
    """One parameter or derived quantity, in its own unit."""

    name: str
    """Dotted name, DESIGN section 5, e.g. ``phase.corundum.cell.a``."""
    value: float
    esd: float | None = None
    released: bool = False
    lower: float | None = None
    upper: float | None = None
    unit: str = ""
    derived: bool = False


class PhaseSummary(_Frozen):
    """One phase of a state."""

    name: str
    space_group: str
    weight_fraction: MeasuredValue | None
    cell: dict[str, MeasuredValue]
    """Keys a b c alpha beta gamma volume; angstrom, degrees, angstrom^3."""
    r_bragg: float | None = None
    intensity_share: float | None = None
    """Share of the calculated Bragg intensity."""


class FitState(_Frozen):
    """A node of the decision graph. Its id is derived from its content by the store."""

    stage: Stage
    engine: str
    engine_version: str
    snapshot: str
    """Artifact id of the engine snapshot."""
    arrays: str
    """Artifact id of the result arrays (npz)."""
    quality: Quality
    features: dict[str, Feature]
    violations: tuple[Violation, ...]
    complexity: Complexity
    convergence: Convergence
    parameters: tuple[ParameterValue, ...]
    phases: tuple[PhaseSummary, ...]
    unexplained_peaks: tuple[UnexplainedPeak, ...] = ()
    released: tuple[str, ...] = ()
    """Selectors that are free, cumulative."""
    bounds: tuple[Bound, ...] = ()
    notices: tuple[tuple[str, str], ...] = ()
    """(code, text) from the engine."""
    files: dict[str, str] = Field(default_factory=dict)
    """Further artifacts by name."""
