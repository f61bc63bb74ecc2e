"""What does a recorded row change beside the graph? The job's figures, its feed and the short form of the step.

Called inside the transaction that records the row: the graph, the feed and the list can never tell different things.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from autoxrd.primitives import canonical_json
from autoxrd.store.models import EdgeRow, EventRow, Row, StateRow
from autoxrd.store.records import EventKind
from autoxrd.store.service import feed
from autoxrd.store.service.database import now_text
from autoxrd.store.service.models import OwnerRow, ServiceJobRow, StepRow
from autoxrd.store.service.transition import touch

__all__ = ["book"]


def book(session: Session, job: ServiceJobRow, row: Row) -> None:
    """Keep the books for a row just added to the job's graph."""
    if isinstance(row, StateRow) and row.parent_id is None:
        _root(session, job, row)
    elif isinstance(row, EdgeRow):
        _attempt(session, job, row)
    elif isinstance(row, EventRow) and row.kind == EventKind.FINISHED:
        _finish(session, job, row)
    elif isinstance(row, EventRow) and row.kind == EventKind.FORFEIT:
        feed.append(session, job, "step.lost", json.loads(row.content)["data"])
    touch(job)


def _root(session: Session, job: ServiceJobRow, row: StateRow) -> None:
    state = json.loads(row.content)
    step = StepRow(
        job_id=job.id,
        ordinal=0,
        candidate_id=row.id,
        status="root",
        kind="prepare",
        stage=row.stage,
        planner="",
        rationale="",
        reasons="[]",
        seconds=_spend(session, job, row, steps=0),
        at=now_text(),
        **_figures(state),
    )
    session.add(step)
    _stand(job, step)
    feed.append(session, job, "step.recorded", _told(step))


def _attempt(session: Session, job: ServiceJobRow, row: EdgeRow) -> None:
    content = json.loads(row.content)
    state = session.get(StateRow, (row.job_id, row.candidate_id)) if row.candidate_id else None
    step = StepRow(
        job_id=job.id,
        ordinal=row.ordinal,
        parent_id=row.parent_id,
        candidate_id=row.candidate_id,
        status=row.status,
        kind=row.kind,
        stage=content["action"]["stage"],
        planner=row.planner,
        rationale=content["action"]["rationale"],
        reasons=canonical_json(content["decision"]["reasons"]),
        seconds=_spend(session, job, row, steps=1),
        at=now_text(),
        **_figures(json.loads(state.content) if state else None),
    )
    session.add(step)
    if row.status == "accepted":
        _stand(job, step)
    feed.append(session, job, "step.recorded", _told(step))


def _finish(session: Session, job: ServiceJobRow, row: EventRow) -> None:
    data = json.loads(row.content)["data"]
    job.verdict = data["verdict"].get("verdict")
    job.current_state = data["final_state"]
    feed.append(session, job, "job.concluded", {"final_state": data["final_state"], "verdict": job.verdict})


def _spend(session: Session, job: ServiceJobRow, row: StateRow | EdgeRow, *, steps: int) -> float | None:
    """Count a step against the budgets of the job and of its owner; return its wall time, s."""
    telemetry = json.loads(row.telemetry)
    engine_seconds = float(telemetry.get("engine_seconds") or 0.0)
    job.losses = 0
    job.steps_used += steps
    job.engine_seconds_used += engine_seconds
    query = update(OwnerRow).where(OwnerRow.id == job.owner_id)
    session.execute(
        query.values(
            steps_used=OwnerRow.steps_used + steps, engine_seconds_used=OwnerRow.engine_seconds_used + engine_seconds
        ),
        execution_options={"synchronize_session": False},
    )
    seconds = telemetry.get("seconds")
    return None if seconds is None else float(seconds)


def _figures(state: dict[str, Any] | None) -> dict[str, Any]:
    if state is None:
        return {"rwp": None, "gof": None, "n_free": None}
    return {
        "rwp": state["quality"]["rwp"],
        "gof": state["quality"]["gof"],
        "n_free": state["complexity"]["n_free"],
    }


def _stand(job: ServiceJobRow, step: StepRow) -> None:
    job.rwp, job.gof, job.current_state = step.rwp, step.gof, step.candidate_id


def _told(step: StepRow) -> dict[str, Any]:
    return {
        "ordinal": step.ordinal,
        "kind": step.kind,
        "stage": step.stage,
        "status": step.status,
        "parent": step.parent_id,
        "state": step.candidate_id,
        "reasons": json.loads(step.reasons),
        "rwp": step.rwp,
        "gof": step.gof,
        "seconds": step.seconds,
    }
