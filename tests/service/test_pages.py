"""A graph of 10 000 nodes is shown in pages, the last as cheaply as the first, on both databases."""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine, event, insert, text

from autoxrd.store.service.database import Database
from autoxrd.store.service.models import StepRow
from autoxrd.store.service.steps import list_steps
from tests.support.calls import counted
from tests.support.pace import Pace

from .factory import queued

N_NODES = 10_000
PAGE_SECONDS = 0.05


def large_graph(database: Database) -> str:
    """Record a job of 10 000 steps and return its id."""
    job = queued(database)
    rows = [
        {
            "job_id": job,
            "ordinal": i,
            "parent_id": None if i == 0 else f"{i - 1:016x}",
            "candidate_id": f"{i:016x}",
            "status": "root" if i == 0 else "accepted",
            "kind": "zero",
            "stage": "instrument",
            "planner": "rules",
            "rationale": "Calculated lines stand off the observed ones by a constant. " * 4,
            "reasons": "[]",
            "rwp": 0.1,
            "gof": 1.5,
            "n_free": 12,
            "seconds": 1.0,
            "at": "2026-01-01T00:00:00.000000Z",
        }
        for i in range(N_NODES)
    ]
    with database.writing() as session:
        session.execute(insert(StepRow), rows)
    return job


def test_pages_of_a_large_graph(database: Database) -> None:
    job, calls, seen, cursor = large_graph(database), [], 0, -1
    while True:
        page, n_calls = counted(partial(list_steps, database, job, after=cursor, limit=200))
        calls.append(n_calls)
        assert [step.ordinal for step in page.steps] == list(range(cursor + 1, cursor + 1 + len(page.steps)))
        seen += len(page.steps)
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
    assert seen == N_NODES
    full = calls[1 : N_NODES // 200]  # the first one fills caches; a wait for a server's answer costs a call or more
    assert statistics.median(full[-10:]) <= 1.05 * statistics.median(full[:10])


def test_a_page_is_found_by_an_index(database: Database) -> None:
    job, asked = large_graph(database), []

    def heard(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        asked.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", heard)
    try:
        list_steps(database, job, after=9000, limit=200)
    finally:
        event.remove(Engine, "before_cursor_execute", heard)
    explain = "EXPLAIN " if database.dialect == "postgresql" else "EXPLAIN QUERY PLAN "
    plans = []
    with database.writing() as session:
        if database.dialect == "postgresql":
            session.execute(text("ANALYZE"))
        for statement, parameters in asked:
            if "FROM steps" in statement:
                rows = session.connection().exec_driver_sql(explain + statement, parameters)
                plans.append(" ".join(str(row) for row in rows))
    assert plans
    for plan in plans:
        assert "INDEX" in plan.upper(), plan
        assert "Seq Scan" not in plan, plan


@pytest.mark.slow
def test_each_page_takes_less_than_the_limit(database: Database) -> None:
    job, used, pace = large_graph(database), [], Pace()
    # Processor time where the database is in this process; beside a server only the wall tells, best of three.
    clock = time.process_time if database.dialect == "sqlite" else time.perf_counter
    for cursor in range(-1, N_NODES - 1, 200):
        best = 1e9
        for _ in range(3):
            began = clock()
            list_steps(database, job, after=cursor, limit=200)
            best = min(best, clock() - began)
        used.append(best)
        pace.sample()
    # Of a server's wall time the quickest, as others use its processor too.
    cost = statistics.median if database.dialect == "sqlite" else min
    assert max(cost(used[:10]), cost(used[-10:])) < PAGE_SECONDS * pace.factor
