"""What happens during a job, told as it happens to whoever listens (terminal, service)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.domain.state import FitState

__all__ = ["JobEvent", "Listener", "Prepared", "StepDone", "StepLost", "StepStarted"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """The root state stands."""

    state_id: str
    state: FitState


@dataclass(frozen=True, slots=True)
class StepStarted:
    """An action was proposed and passes to the engine."""

    ordinal: int
    action: Action
    parent: FitState


@dataclass(frozen=True, slots=True)
class StepDone:
    """An attempt was judged and recorded.

    Args:
        seconds: wall time of the step; ``engine_seconds`` of it inside the engine.
    """

    ordinal: int
    action: Action
    parent: FitState
    candidate: FitState | None
    decision: Decision
    seconds: float
    engine_seconds: float


@dataclass(frozen=True, slots=True)
class StepLost:
    """A step brought no action.

    Args:
        ordinal: which step of the budget.
        code: why.
        text: one sentence.
    """

    ordinal: int
    code: str
    text: str


JobEvent = Prepared | StepStarted | StepDone | StepLost
Listener = Callable[[JobEvent], None]


def nobody(_: JobEvent) -> None:
    """Listen to nothing."""
