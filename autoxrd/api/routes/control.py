"""Control of a job: cancel, pause, resume, retry. To ask twice does no harm."""

from __future__ import annotations

from fastapi import APIRouter

from autoxrd.api.auth import Writer
from autoxrd.api.context import ApiContext, Context
from autoxrd.api.models import JobOut
from autoxrd.api.problems import responses
from autoxrd.store.service.keys import Identity
from autoxrd.store.service.listing import find_job
from autoxrd.store.service.transition import ask

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/jobs/{job_id}", tags=["control"])


@router.post("/cancel", status_code=202, responses=responses(404, 409))
def cancel(job_id: str, context: Context, identity: Writer) -> JobOut:
    """Cancel a job; a step in flight is killed with its engine within seconds."""
    return _ask(context, identity, job_id, "cancel")


@router.post("/pause", status_code=202, responses=responses(404, 409))
def pause(job_id: str, context: Context, identity: Writer) -> JobOut:
    """Let a job wait; a step in flight is finished and recorded first."""
    return _ask(context, identity, job_id, "pause")


@router.post("/resume", status_code=202, responses=responses(404, 409))
def resume(job_id: str, context: Context, identity: Writer) -> JobOut:
    """Let a paused or cancelled job go on from its record."""
    return _ask(context, identity, job_id, "resume")


@router.post("/retry", status_code=202, responses=responses(404, 409))
def retry(job_id: str, context: Context, identity: Writer) -> JobOut:
    """Let a failed or crashed job go on from its record."""
    return _ask(context, identity, job_id, "retry")


def _ask(context: ApiContext, identity: Identity, job_id: str, wish: str) -> JobOut:
    ask(context.database, job_id, identity.owner_id, wish, actor=identity.actor)
    context.nudge()
    return JobOut.of(find_job(context.database, job_id, identity.owner_id))
