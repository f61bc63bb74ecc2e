"""Small jobs for the service's tests."""

from __future__ import annotations

from autoxrd.jobs.request import Budgets, JobRequest
from autoxrd.primitives import canonical_json, content_hash
from autoxrd.store.service.database import Database
from autoxrd.store.service.files import NewFile
from autoxrd.store.service.keys import ensure_owner
from autoxrd.store.service.submission import NewJob, submit


def new_job(database: Database, *, owner: str = "ada", title: str = "job", steps: int = 3, priority: int = 0) -> NewJob:
    """A request as the API would queue it."""
    request = JobRequest(title=title, budgets=Budgets(steps=steps), priority=priority)
    data = b"10 100\n11 120\n"
    body = request.model_dump(mode="json")
    return NewJob(
        owner_id=ensure_owner(database, owner),
        title=title,
        engine="rietx",
        planner="rules",
        priority=priority,
        request=canonical_json(body),
        request_hash=content_hash(body),
        queue="light",
        files={"pattern/p.xy": NewFile(database.artifacts.put(data), len(data))},
    )


def queued(database: Database, **choices: object) -> str:
    """Queue a job; return its id."""
    return submit(database, new_job(database, **choices)).job.id  # type: ignore[arg-type]
