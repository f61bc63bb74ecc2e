"""What does a recorded row change beside the graph? The job's figures, its feed and the short form of the step.

Called inside the transaction that records the row: the graph, the feed and the list can never tell different things.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, insert, update
from sqlalchemy.orm import Session

from autoxrd.domain.state import FitState
from autoxrd.primitives import canonical_json
from autoxrd.store.models import EdgeRow, EventRow, Row, StateRow, table_of
from autoxrd.store.records import Attempt, EventKind
from autoxrd.store.service import feed
from autoxrd.store.service.database import now_text
from autoxrd.store.service.models import OwnerRow, ServiceJobRow, StepRow
from autoxrd.store.service.transition import touch

__all__ = ["book", "store"]


# Built once, and of tables: a statement that names mapped classes makes the session look through all it holds first.
_OWNERS = table_of(OwnerRow)
_SPEND = (
    update(_OWNERS)
    .where(_OWNERS.c.id == bindparam("owner"))
    .values(
        steps_used=_OWNERS.c.steps_used + bindparam("steps"),
        engine_seconds_used=_OWNERS.c.engine_seconds_used + bindparam("engine_seconds"),
        stored_bytes=_OWNERS.c.stored_bytes + bindparam("size"),
        tokens_used=_OWNERS.c.tokens_used + bindparam("tokens"),
        money_used=_OWNERS.c.money_used + bindparam("money"),
    )
)
_INSERT = insert(table_of(StepRow))


def book(
    session: Session,
    job: ServiceJobRow,
    row: Row,
    stored: int = 0,
    *,
    attempt: Attempt | None = None,
    state: FitState | None = None,
) -> None:
    """Keep the books for a row just added to the job's graph.

    Args:
        session: the transaction that added it.
        job: the job's row, locked.
        row: of the graph.
        stored: bytes that it names.
        attempt: what an edge says.
        state: the root, or the edge's candidate.
    """
    if isinstance(row, StateRow):
        _root(session, job, row, state, stored)
    elif isinstance(row, EdgeRow):
        assert attempt is not None
        _attempt(session, job, attempt, state, stored)
    elif isinstance(row, EventRow) and row.kind == EventKind.FINISHED:
        _finish(session, job, row)
    elif isinstance(row, EventRow) and row.kind == EventKind.EXCHANGE:
        _exchange(session, job, json.loads(row.content)["data"], stored)
    elif isinstance(row, EventRow) and row.kind == EventKind.FORFEIT:
        feed.append(session, job, "step.lost", json.loads(row.content)["data"])
    touch(job)


def store(session: Session, job: ServiceJobRow, size: int) -> None:
    """Count bytes that a job names, for it and its owner; equal contents count each time."""
    _charge(session, job, steps=0, engine_seconds=0.0, size=size)


def _root(session: Session, job: ServiceJobRow, row: StateRow, state: FitState | None, stored: int) -> None:
    telemetry = json.loads(row.telemetry)
    _spend(session, job, telemetry, steps=0, size=stored)
    step = {"ordinal": 0, "parent_id": None, "candidate_id": row.id, "status": "root", "kind": "prepare"}
    told: dict[str, Any] = {
        "stage": row.stage,
        "planner": "",
        "rationale": "",
        "reasons": [],
        "seconds": _seconds(telemetry),
    }
    _note(session, job, {**step, **told, **_figures(state)})


def _attempt(session: Session, job: ServiceJobRow, attempt: Attempt, state: FitState | None, stored: int) -> None:
    _spend(session, job, attempt.telemetry, steps=1, size=stored)
    step = {
        "ordinal": attempt.ordinal,
        "parent_id": attempt.parent,
        "candidate_id": attempt.candidate,
        "status": "accepted" if attempt.accepted else "rejected",
        "kind": attempt.action.kind.value,
        "stage": attempt.action.stage.value,
        "planner": str(attempt.planner.get("name", "")),
        "rationale": attempt.action.rationale,
        "reasons": list(attempt.decision.reasons),
        "seconds": _seconds(attempt.telemetry),
    }
    _note(session, job, {**step, **_figures(state)})


def _note(session: Session, job: ServiceJobRow, step: Mapping[str, Any]) -> None:
    """Write the short form of a step, let the job stand where it led to, and tell its feed."""
    stored = {**step, "reasons": canonical_json(step["reasons"]), "job_id": job.id, "at": now_text()}
    session.execute(_INSERT, stored)
    if step["status"] != "rejected":
        job.rwp, job.gof, job.current_state = step["rwp"], step["gof"], step["candidate_id"]
    told = {name: step[name] for name in ("ordinal", "kind", "stage", "status", "reasons", "rwp", "gof", "seconds")}
    told |= {"parent": step["parent_id"], "state": step["candidate_id"]}
    feed.append(session, job, "step.recorded", told)


def _finish(session: Session, job: ServiceJobRow, row: EventRow) -> None:
    data = json.loads(row.content)["data"]
    job.verdict = data["verdict"].get("verdict")
    job.current_state = data["final_state"]
    feed.append(session, job, "job.concluded", {"final_state": data["final_state"], "verdict": job.verdict})


def _exchange(session: Session, job: ServiceJobRow, data: Mapping[str, Any], stored: int) -> None:
    """Count what the provider counted. What it did not is held by the job's own budget, which reckons with a bound."""
    tokens = int(data["prompt_tokens"] or 0) + int(data["answer_tokens"] or 0)
    money = float(data["usd"] or 0.0)
    job.tokens_used += tokens
    job.money_used += money
    _charge(session, job, steps=0, engine_seconds=0.0, size=stored, tokens=tokens, money=money)
    told = {name: data[name] for name in ("purpose", "outcome", "model", "prompt_tokens", "answer_tokens", "usd")}
    feed.append(session, job, "model.asked", told)


def _spend(session: Session, job: ServiceJobRow, telemetry: Mapping[str, Any], *, steps: int, size: int) -> None:
    """Count a step against the budgets of the job and of its owner."""
    job.losses = 0
    _charge(session, job, steps=steps, engine_seconds=float(telemetry.get("engine_seconds") or 0.0), size=size)


def _charge(
    session: Session,
    job: ServiceJobRow,
    *,
    steps: int,
    engine_seconds: float,
    size: int,
    tokens: int = 0,
    money: float = 0.0,
) -> None:
    job.steps_used += steps
    job.engine_seconds_used += engine_seconds
    job.stored_bytes += size
    used = {"steps": steps, "engine_seconds": engine_seconds, "size": size, "tokens": tokens, "money": money}
    session.execute(_SPEND, {"owner": job.owner_id, **used})


def _seconds(telemetry: Mapping[str, Any]) -> float | None:
    """Return the wall time of a step, s."""
    seconds = telemetry.get("seconds")
    return None if seconds is None else float(seconds)


def _figures(state: FitState | None) -> dict[str, float | int | None]:
    if state is None:
        return {"rwp": None, "gof": None, "n_free": None}
    rwp, gof = (v if math.isfinite(v) else None for v in (state.quality.rwp, state.quality.gof))
    return {"rwp": rwp, "gof": gof, "n_free": state.complexity.n_free}
