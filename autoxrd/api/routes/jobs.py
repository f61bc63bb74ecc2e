"""Jobs: submit, list, look at."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from autoxrd.api.auth import OwnJob, Reader, Writer
from autoxrd.api.context import ApiContext, Context
from autoxrd.api.intake import Body, read_intake, received
from autoxrd.api.models import JobList, JobOut
from autoxrd.api.problems import responses
from autoxrd.api.queueing import in_turn, queue_job
from autoxrd.domain.lifecycle import JobState
from autoxrd.store.service.keys import Identity
from autoxrd.store.service.listing import Filters, list_jobs
from autoxrd.store.service.retention import delete_job
from autoxrd.store.service.submission import Submitted

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", tags=["jobs"])

_FILE = {"type": "string", "format": "binary"}
_FILES = {"type": "array", "items": _FILE}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["pattern"],
                    "properties": {
                        "request": {"type": "string", "description": "JobRequest as JSON, without `inputs`."},
                        "pattern": _FILE,
                        "structures": {**_FILES, "description": "Phases believed to be there, one CIF in each."},
                        "candidates": {**_FILES, "description": "Phases that may be there, one CIF in each."},
                        "instrument": _FILE,
                    },
                }
            },
            "application/json": {"schema": {"$ref": "#/components/schemas/JobRequest"}},
        },
    }
}
_Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[!-~]+$")]
_Time = Annotated[str | None, Query(max_length=32, pattern=r"^\d{4}-\d\d-\d\d(T[0-9:.]+Z)?$")]
_Cursor = Annotated[str | None, Query(pattern=r"^[0-9a-f-]{36}$")]


@router.post("/jobs", status_code=201, openapi_extra=_BODY, responses=responses(400, 404, 409, 413, 415, 507))
async def create_job(
    http: Request, response: Response, context: Context, identity: Writer, idempotency_key: _Key = None
) -> JobOut:
    """Queue a refinement.

    With an `Idempotency-Key` the same request, sent again or in parallel, makes one job; the answer is the same and
    carries `Idempotent-Replayed: true`.
    """
    async with received(http) as body:
        # all at once in one thread: each change of threads waits for the others that work
        done = await in_turn(context, partial(_created, body, context, identity, idempotency_key))
    response.headers["Location"] = f"/api/v1/jobs/{done.job.id}"
    response.headers["ETag"] = _tag(done.job.version)
    if done.repeated:
        response.headers["Idempotent-Replayed"] = "true"
    return JobOut.of(done.job)


def _created(body: Body, context: ApiContext, identity: Identity, key: str | None) -> Submitted:
    return queue_job(context, identity, read_intake(body, context, identity), idempotency_key=key)


@router.get("/jobs", responses=responses())
def get_jobs(
    context: Context,
    identity: Reader,
    state: Annotated[list[JobState] | None, Query()] = None,
    engine: Annotated[str | None, Query(max_length=64)] = None,
    planner: Annotated[str | None, Query(max_length=64)] = None,
    verdict: Annotated[str | None, Query(max_length=32)] = None,
    q: Annotated[str | None, Query(max_length=200, description="Part of the title.")] = None,
    series: Annotated[str | None, Query(max_length=100, description="Name of the series.")] = None,
    created_after: _Time = None,
    created_before: _Time = None,
    cursor: _Cursor = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> JobList:
    """List your jobs, newest first."""
    filters = Filters(
        states=[s.value for s in state or ()],
        engine=engine,
        planner=planner,
        verdict=verdict,
        text=q,
        series=series,
        created_after=created_after,
        created_before=created_before,
    )
    page = list_jobs(context.database, identity.owner_id, filters, cursor=cursor, limit=limit)
    return JobList(jobs=[JobOut.of(job) for job in page.jobs], next_cursor=page.next_cursor)


@router.delete("/jobs/{job_id}", status_code=204, responses=responses(404, 409))
def delete(job_id: str, context: Context, identity: Writer) -> None:
    """Delete a job that is over: its files and its request. The audit log keeps that it was and what was done."""
    delete_job(context.database, job_id, identity.actor)


@router.get("/jobs/{job_id}", response_model=JobOut, responses={304: {"description": "Not Modified"}, **responses(404)})
async def get_job(
    job: OwnJob, response: Response, if_none_match: Annotated[str | None, Header(max_length=1000)] = None
) -> JobOut | Response:
    """Look at a job. `ETag` and `If-None-Match` make asking again cheap."""
    tag = _tag(job.version)
    if if_none_match is not None and (if_none_match.strip() == "*" or tag in if_none_match.replace(" ", "").split(",")):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return JobOut.of(job)


def _tag(version: int) -> str:
    return f'W/"{version}"'
