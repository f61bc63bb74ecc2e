"""The shape of a policy: every limit, weight and table of judgement, with what each means.

The values and their sources stand in the TOML files beside (``policies/``), never here.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from autoxrd.domain.action import ActionKind, Stage

__all__ = [
    "AuditLimits",
    "CoupledSet",
    "Coupling",
    "EvidenceRules",
    "Group",
    "HighRisk",
    "Limits",
    "ModelClassLimits",
    "Policy",
    "PredictionRules",
    "UtilityRules",
]

Fraction = Annotated[FiniteFloat, Field(ge=0, le=1)]
NonNegative = Annotated[FiniteFloat, Field(ge=0)]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Limits(_Frozen):
    """Hard limits of acceptance (DESIGN section 9 items 3 to 6)."""

    rwp_factor: Annotated[FiniteFloat, Field(ge=1)]
    """Candidate Rwp may be at most this times the parent's on the same points."""
    points_lost: Fraction
    """Share of the parent's points that one step may leave out."""
    unexplained_rise: Fraction
    """The unexplained-peak ratio may rise by at most this."""
    unexplained_rise_esds: NonNegative = 0.0
    """And by this many esds of the difference beyond: a ratio with lines that are not seen is an estimate."""
    new_peak_share: Fraction
    """Summed area share of unexplained peaks that the parent did not have, where the ratio did not fall."""
    new_peak_tolerance_deg: NonNegative
    """Two unexplained peaks closer than this are the same; degrees 2theta."""
    new_peak_tolerance_spacing: NonNegative = 0.003
    """The same over the time of flight, as a share of the spacing."""
    max_correlation: Fraction
    """Largest |r| outside linear background bases."""
    inherited_correlation_slack: NonNegative
    """The pair that held an inherited maximum may rise by this; 0: the maximum must fall."""
    violation_worsening: NonNegative
    """An inherited violation is new when its excess over its limit grows by more than this fraction."""
    soft_violations: Literal["reject", "warn"]
    broadening_moves_fraction: NonNegative = 0.0  # records of before have none
    """Another model of widths may move a weight fraction by at most this many of the standard uncertainties that
    `audit.fraction_error` gives; 0: not asked."""


class EvidenceRules(_Frozen):
    """How evidence is compared with the record."""

    agreement: Fraction
    """Relative difference allowed between the claimed and the recorded value."""


class PredictionRules(_Frozen):
    """When a prediction can fail, and when it is met."""

    tolerance: Fraction
    """Relative to the minimum effect."""
    vacuous_fraction: Fraction
    """A minimum effect at or below this fraction of the metric's size cannot fail."""
    joint_settled_shift: NonNegative
    """A joint cycle's prediction on max_shift_over_esd is met when it ends at or below this; 0: off."""


class UtilityRules(_Frozen):
    """Weights of ``U = -(gof GoF + abs_residual A + unexplained Q + parameter K + correlation max(0, C - knee) + V)``.

    V counts the violations, hard and soft ones each with their weight (DESIGN section 9 item 8).
    """

    gof: NonNegative
    abs_residual: NonNegative
    unexplained: NonNegative
    parameter: NonNegative
    correlation: NonNegative
    correlation_knee: Fraction
    hard_violation: NonNegative
    soft_violation: NonNegative
    minimum_gain: NonNegative
    """U must rise by more than this."""
    joint_slack: NonNegative
    """A joint cycle passes when U falls by no more than this; 0: it must rise like any step."""
    first_step_kinds: tuple[ActionKind, ...]
    """Kinds whose K and C are not charged while the parent has nothing free."""


class Group(_Frozen):
    """One side of a coupled set: families of parameters."""

    any: tuple[str, ...] = ()
    """Satisfied when a free parameter is of one of these families."""
    all: tuple[str, ...] = ()
    """Satisfied when every owner (phase or atom) that has such a parameter has it free."""


class CoupledSet(_Frozen):
    """A combination that the data cannot determine together."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    scope: Literal["job", "phase", "site"]
    when: Literal["always", "inseparable", "narrow_range"]
    causes: tuple[Literal["zero", "displacement", "cell"], ...] = ()
    """For ``inseparable``: the two position laws that the range must be able to tell apart."""
    groups: Annotated[tuple[Group, ...], Field(min_length=2)]
    why: str
    enabled: bool = True

    @model_validator(mode="after")
    def _two_causes(self) -> Self:
        if self.when == "inseparable" and len(set(self.causes)) != 2:
            raise ValueError("a rule with when = 'inseparable' names its two causes")
        return self


class Coupling(_Frozen):
    """What to do where the record cannot say whether a set is coupled."""

    unknown_separability: Literal["refuse", "allow"]
    narrow_s2_span: NonNegative
    """Range of (sin(theta)/lambda)^2 below which a pattern is narrow; angstrom^-2."""


class AuditLimits(_Frozen):
    """When a final state is a success, a success with warnings, or none."""

    unexplained_warn: Fraction
    unexplained_abstain: Fraction
    missing_warn: Fraction
    missing_abstain: Fraction
    misfit_warn: NonNegative
    """On Rwp_nb * sqrt(1 - 1/GoF^2): the background-corrected misfit that noise does not explain; fraction."""
    misfit_abstain: NonNegative
    r_bragg_warn: NonNegative
    r_bragg_abstain: NonNegative
    r_bragg_share: Fraction
    """R_Bragg is judged only for phases with at least this share of the calculated intensity."""
    gof_warn: NonNegative
    shift_warn: NonNegative
    shift_abstain: NonNegative
    phase_significance: NonNegative
    """A weight fraction below this many esds is called not significant."""
    fraction_error: Fraction
    """Standard uncertainty of a weight fraction that no esd of a fit covers: texture, microabsorption, profile."""
    external_error: Fraction = 0.025  # records of before have none
    """Relative standard uncertainty of what an external standard gives that no esd of a fit covers: packing,
    roughness, the mass absorption, and the scale factor's dependence on displacement parameters and texture."""
    grain_diameter_um: NonNegative
    """Size of the grains for which microabsorption is estimated where nobody states one."""
    grain_range_um: tuple[NonNegative, NonNegative]
    """Sizes of the grains between which weight fractions are told where microabsorption matters."""
    microabsorption_warn: Fraction
    """Change of a weight fraction by such grains from which the reader is told."""
    unknown: Literal["warn", "abstain"]
    """When a measure of the audit is not available."""
    no_joint: Literal["warn", "abstain"]
    """When the last step was not a joint cycle."""


class ModelClassLimits(_Frozen):
    """When a residual says that the model is of the wrong kind."""

    strongest_unexplained: NonNegative
    """An unexplained line with more than this share of the strongest calculated line's intensity."""
    structure_misfit: Fraction
    """Misfit of intensities alone (fraction of the signal, background off) from which the structure is doubted."""
    structure_misfit_alone: Fraction
    """The same, from which it is not accepted even where nothing else speaks against it."""
    cell_moved: Fraction
    """Relative change of a cell length that speaks, beside a misfit of intensities, for another structure."""
    uiso_doubtful: NonNegative
    """Refined Uiso, angstrom^2, that does."""


class HighRisk(_Frozen):
    """Kinds that must carry bounds for each of their parameters."""

    kinds: tuple[ActionKind, ...]


class MeasureRules(_Frozen):
    """Which side measurements are made; they cost engine time and change nothing."""

    reachable_rwp_after: tuple[ActionKind, ...]
    """After steps of these kinds, the Rwp of a profile match from the same state is measured too."""


class Policy(_Frozen):
    """All rules of judgement. Two policies with equal content have equal hashes."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.\-]{1,60}$")]
    version: Annotated[str, Field(min_length=1, max_length=40)]
    limits: Limits
    evidence: EvidenceRules
    predictions: PredictionRules
    utility: UtilityRules
    coupling: Coupling
    audit: AuditLimits
    model_class: ModelClassLimits
    measures: MeasureRules
    plausibility: dict[str, FiniteFloat | tuple[FiniteFloat, ...]]
    """Every limit of the physical checks, by the names of `autoxrd.science.settings.Limits`."""
    stages: dict[Stage, tuple[ActionKind, ...]]
    releases: dict[ActionKind, tuple[str, ...]]
    mechanisms: dict[ActionKind, tuple[str, ...]]
    high_risk: HighRisk
    coupled: tuple[CoupledSet, ...]
    sources: dict[str, str]
    """Dotted key -> where the value comes from."""
    deviations: dict[str, str] = Field(default_factory=dict)
    """Dotted key -> why it differs from the policy that was extended."""
