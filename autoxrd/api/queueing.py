"""How does a checked request become a queued job? The same way, whether a program sent it or a page did."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import to_thread

from autoxrd.api.context import ApiContext
from autoxrd.api.intake import Intake
from autoxrd.errors import UserInputError
from autoxrd.jobs.standard import check_standard
from autoxrd.primitives import canonical_json
from autoxrd.store.service.keys import Identity
from autoxrd.store.service.submission import NewJob, Submitted, repeated, submit

__all__ = ["in_turn", "queue_job"]

Made = TypeVar("Made")


async def in_turn(context: ApiContext, work: Callable[[], Made]) -> Made:
    """Do a submission in a thread when its turn comes, first come, first served: whoever sent it, by REST or a page."""
    return await to_thread.run_sync(work, limiter=context.submitting)


def queue_job(context: ApiContext, identity: Identity, intake: Intake, *, idempotency_key: str | None) -> Submitted:
    """Queue a job, or find the one that the same key made.

    Raises:
        Conflict: ``idempotency_key_reused``.
        LimitExceeded: ``jobs_open``, ``budget_spent``.
        UserInputError: ``external_standard_missing`` and others, see `check_standard`.
    """
    request = intake.request
    job = NewJob(
        owner_id=identity.owner_id,
        title=request.title or next(iter(intake.files)).partition("/")[2],
        engine=request.engine,
        planner=request.planner,
        priority=request.priority,
        request=canonical_json(request.model_dump(mode="json")),
        request_hash=intake.fingerprint,
        queue="light",
        files=intake.files,
        actor=identity.actor,
        series=None if request.series is None else request.series.name,
    )
    try:
        check_standard(request, context.database, identity.owner_id)
    except UserInputError:  # a standard may be deleted as soon as the job that named it has begun
        done = repeated(context.database, job, idempotency_key)
        if done is None:
            raise
        return done
    done = submit(context.database, job, idempotency_key=idempotency_key)
    if not done.repeated:
        context.metrics.submitted.inc()
        context.nudge()
    return done
