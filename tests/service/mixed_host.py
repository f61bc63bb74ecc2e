"""A host that refines for jobs whose title says so, and does the stub's steps for all others: one flow with both."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from autoxrd.jobs.host import Advancer, run
from autoxrd.jobs.sessions import SessionCache
from autoxrd.jobs.work import Advance, Workshop
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database
from autoxrd.store.service.leases import Lease
from autoxrd.store.service.listing import find_job
from benchmarks.service.stub_host import Stub

REAL = "a real refinement"


def mixed(database: Database, sessions: SessionCache, settings: Settings) -> Advancer:
    workshop, stub = Workshop(database, sessions, settings), Stub(database)

    def advance(lease: Lease) -> Advance:
        real = find_job(database, lease.job_id, None).title == REAL
        return workshop.advance(lease) if real else stub.advance(lease)

    return advance


if __name__ == "__main__":
    run(mixed)
