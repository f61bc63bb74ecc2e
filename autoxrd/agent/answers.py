"""What do the commands that look at a job answer? The JSON that they print, and that the MCP server returns."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from autoxrd.domain.action import Action, Stage
from autoxrd.domain.decision import GateCheck, PredictionOutcome
from autoxrd.domain.state import Feature, Quality, UnexplainedPeak, Violation

__all__ = [
    "Audit",
    "CauseFound",
    "Coded",
    "Diagnosis",
    "Features",
    "Gated",
    "Proposed",
    "Release",
    "StateHead",
    "Stepped",
]


class Answer(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Coded(Answer):
    """A stable code and a sentence, with the figures behind it where there are some."""

    code: str
    text: str
    measured: float | None = None
    limit: float | None = None


class StateHead(Answer):
    """Which state an answer is about."""

    id: str
    stage: Stage
    status: Literal["root", "accepted", "rejected"]
    final: bool
    """The finished job's result."""
    quality: Quality
    """R factors as fractions."""
    released: tuple[str, ...]
    """Selectors that are free."""


class Features(Answer):
    """Every measured feature of a state."""

    state: StateHead
    features: dict[str, Feature]


class CauseFound(Answer):
    """A cause of misfit that the features name; a rival is one that the data cannot tell from the first."""

    cause: str
    feature: str
    chi2: float
    significance: float
    rival: bool


class Release(Answer):
    """What one more release promises: the relative drop of chi-squared that a least-squares step predicts."""

    selector: str
    gain: float
    f_value: float | None
    """Drop of chi-squared per parameter over the reduced chi-squared."""
    parameters: int | None


class Diagnosis(Answer):
    """What the residual of a state speaks for, and how far that can be trusted."""

    state: StateHead
    causes: tuple[CauseFound, ...]
    releases: tuple[Release, ...]
    """Largest gain first."""
    unexplained_peaks: tuple[UnexplainedPeak, ...]
    axis_unit: Literal["deg", "us"]
    """Unit of the peaks' ``two_theta_deg``: microseconds over the time of flight."""
    violations: tuple[Violation, ...]
    cautions: tuple[Coded, ...]


class Audit(Answer):
    """What the final audit would say, or says, of a state."""

    state: StateHead
    verdict: Literal["accepted", "accepted_with_warnings", "abstained"]
    reasons: tuple[Coded, ...]
    warnings: tuple[Coded, ...]
    notes: tuple[Coded, ...] = ()


class Proposed(Answer):
    """What a planner would do next: an action, or the end. Nothing was run or recorded."""

    planner: str
    state: str
    action: Action | None = None
    finish: str | None = None
    notes: tuple[Coded, ...] = ()


class Gated(Answer):
    """What the gate says of an action (preflight), or of a recorded attempt (every rule).

    Args:
        legal: the action may be tried; for a recorded attempt, it passed its preflight.
        accepted: None where nothing was run.
    """

    legal: bool
    accepted: bool | None = None
    reasons: dict[str, str]
    """Code of each rule that failed -> sentence with the values."""
    checks: tuple[GateCheck, ...]
    predictions: tuple[PredictionOutcome, ...] = ()
    policy: str


class Stepped(Answer):
    """What a step gave; it is recorded, accepted or not."""

    attempt: int
    by: str
    accepted: bool
    reasons: dict[str, str]
    predictions: tuple[PredictionOutcome, ...]
    parent: str
    candidate: str | None
    rwp_before: float
    rwp_after: float | None
    current: str
    """Where the job stands now."""
