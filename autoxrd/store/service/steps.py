"""What does the graph of a job look like, page by page? From the short form of its steps, without the large rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from autoxrd.store.models import EdgeRow
from autoxrd.store.service.database import Database
from autoxrd.store.service.models import StepRow

__all__ = ["StepPage", "StepView", "list_steps", "released_by"]


@dataclass(frozen=True, slots=True)
class StepView:
    """An attempt in short; ordinal 0 is the root.

    Args:
        parent: state it started from; None for the root.
        state: state that came out; None where the preflight refused or the engine failed.
        status: ``root``, ``accepted`` or ``rejected``.
        rwp, gof, n_free: figures of the candidate (Rwp as a fraction).
        seconds: wall time.
    """

    ordinal: int
    parent: str | None
    state: str | None
    status: str
    kind: str
    stage: str
    planner: str
    rationale: str
    reasons: Sequence[str]
    rwp: float | None
    gof: float | None
    n_free: int | None
    seconds: float | None
    at: str


@dataclass(frozen=True, slots=True)
class StepPage:
    """A page of steps in order; ``next_cursor`` is the ordinal to go on after, None at the end."""

    steps: Sequence[StepView]
    next_cursor: int | None


def list_steps(database: Database, job_id: str, *, after: int = -1, limit: int = 200) -> StepPage:
    """Return the steps of a job after an ordinal, at most ``limit``, in order."""
    query = select(StepRow).where(StepRow.job_id == job_id, StepRow.ordinal > after).order_by(StepRow.ordinal)
    with database.reading() as session:
        rows = session.scalars(query.limit(limit + 1)).all()
    steps = [_view(row) for row in rows[:limit]]
    return StepPage(steps, steps[-1].ordinal if len(rows) > limit else None)


def released_by(database: Database, job_id: str, *, after: int) -> Mapping[int, tuple[str, ...]]:
    """Return, by ordinal, the parameters that each attempt after an ordinal frees."""
    query = select(EdgeRow.ordinal, EdgeRow.content).where(EdgeRow.job_id == job_id, EdgeRow.ordinal > after)
    with database.reading() as session:
        return {n: tuple(json.loads(content)["action"]["parameters"]) for n, content in session.execute(query)}


def _view(row: StepRow) -> StepView:
    return StepView(
        ordinal=row.ordinal,
        parent=row.parent_id,
        state=row.candidate_id,
        status=row.status,
        kind=row.kind,
        stage=row.stage,
        planner=row.planner,
        rationale=row.rationale,
        reasons=json.loads(row.reasons),
        rwp=row.rwp,
        gof=row.gof,
        n_free=row.n_free,
        seconds=row.seconds,
        at=row.at,
    )
