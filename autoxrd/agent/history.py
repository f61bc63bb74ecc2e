"""How does a recorded attempt read? As the report and the pages of the service show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autoxrd.domain.state import FitState
from autoxrd.report.model import StepRecord
from autoxrd.store.records import Attempt

__all__ = ["step_records"]


def step_records(attempts: Sequence[Attempt], states: Mapping[str, FitState]) -> tuple[StepRecord, ...]:
    """Return attempts with what came of them.

    Args:
        attempts: in order.
        states: by id, at least their parents and candidates.
    """
    steps = []
    for attempt in attempts:
        after = states.get(attempt.candidate) if attempt.candidate else None
        steps.append(
            StepRecord(
                ordinal=attempt.ordinal,
                action=attempt.action,
                decision=attempt.decision,
                parent_state=attempt.parent,
                candidate_state=attempt.candidate,
                quality_before=states[attempt.parent].quality,
                quality_after=after.quality if after else None,
                violations=after.violations if after else (),
                planner=str(attempt.planner.get("name", "")),
                error=str(attempt.error.get("detail", "")) if attempt.error else "",
                seconds=float(attempt.telemetry.get("engine_seconds") or 0.0),
            )
        )
    return tuple(steps)
