"""What a gate says about a candidate, and why."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from autoxrd.domain.action import Prediction

__all__ = ["Decision", "GateCheck", "PredictionOutcome"]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PredictionOutcome(_Frozen):
    """A prediction and what was measured."""

    prediction: Prediction
    before: float | None
    after: float | None
    effect: float | None
    """Measured change in the predicted direction; None when it could not be measured."""
    met: bool
    of_mechanism: bool
    """True when the metric is one that the action's mechanism can move."""


class GateCheck(_Frozen):
    """One rule of the gate (DESIGN section 9) with the numbers it compared."""

    rule: str
    passed: bool
    codes: tuple[str, ...] = ()
    measured: float | None = None
    limit: float | None = None
    text: str = ""


class Decision(_Frozen):
    """The verdict on one attempt: three separate answers, all reasons, the policy that judged."""

    accepted: bool
    numerically_better: bool | None
    mechanism_supported: bool | None
    admissible: bool | None
    """None where the question could not be asked (no candidate came out)."""
    reasons: tuple[str, ...] = ()
    """Every failing reason code, not only the first."""
    checks: tuple[GateCheck, ...] = ()
    predictions: tuple[PredictionOutcome, ...] = ()
    utility_before: float | None = None
    utility_after: float | None = None
    policy_name: str
    policy_hash: str
    details: dict[str, str] = Field(default_factory=dict)
    """Reason code -> sentence with the values."""
