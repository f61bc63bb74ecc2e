"""A graph of 10 000 nodes is shown in pages, each in less than 50 ms, on both databases."""

from __future__ import annotations

import statistics
import time

from sqlalchemy import insert

from autoxrd.store.service.database import Database
from autoxrd.store.service.models import StepRow
from autoxrd.store.service.steps import list_steps
from tests.support.pace import Pace

from .factory import queued

N_NODES = 10_000
PAGE_SECONDS = 0.05


def test_pages_of_a_large_graph(database: Database) -> None:
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
    seen, used, cursor, pace = 0, [], -1, Pace()
    while True:
        # Processor time where the database is in this process; beside a server only the wall tells, best of three.
        best = 1e9
        for _ in range(3):
            began = time.process_time() if database.dialect == "sqlite" else time.perf_counter()
            page = list_steps(database, job, after=cursor, limit=200)
            now = time.process_time() if database.dialect == "sqlite" else time.perf_counter()
            best = min(best, now - began)
        used.append(best)
        pace.sample()
        assert [step.ordinal for step in page.steps] == list(range(cursor + 1, cursor + 1 + len(page.steps)))
        seen += len(page.steps)
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
    assert seen == N_NODES
    # The first and the last pages cost the same; of a server's wall time the quickest, as others use its processor too.
    cost = statistics.median if database.dialect == "sqlite" else min
    assert max(cost(used[:10]), cost(used[-10:])) < PAGE_SECONDS * pace.factor
