"""Events of a job: as JSON, or as a stream that goes on where it was broken off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from autoxrd.api.auth import OwnJob
from autoxrd.api.context import ApiContext, Context
from autoxrd.api.models import EventList, EventOut
from autoxrd.api.problems import responses
from autoxrd.domain.lifecycle import FINAL, JobState
from autoxrd.errors import StorageError
from autoxrd.store.service.feed import FeedEvent, events_after
from autoxrd.store.service.listing import find_job

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/jobs/{job_id}", tags=["events"])

POLL_SECONDS = 0.25
KEEPALIVE_SECONDS = 15.0
_STREAM = {"text/event-stream": {"schema": {"type": "string"}}}


@router.get(
    "/events",
    response_model=EventList,
    responses={
        200: {"content": _STREAM},
        204: {"description": "The job is over, and you have seen all."},
        **responses(404),
    },
)
def get_events(
    request: Request,
    job: OwnJob,
    context: Context,
    accept: Annotated[str, Header(max_length=500)] = "application/json",
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", pattern=r"^\d{1,9}$")] = None,
    after: Annotated[int, Query(ge=0, le=999_999_999)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 500,
) -> EventList | Response:
    """Follow a job.

    With `Accept: text/event-stream` the answer is a stream of server-sent events. Each has its number as id: a
    client that comes back with `Last-Event-ID` gets everything after it, once. Otherwise a list in JSON.
    """
    seen = after if last_event_id is None else int(last_event_id)
    if "text/event-stream" not in accept.lower():
        events = events_after(context.database, job.id, seen, limit=limit)
        last = events[-1].number if events else seen
        return EventList(events=[EventOut.of(event) for event in events], last=last)
    if JobState(job.state) in FINAL and seen >= job.feed_last:
        return Response(status_code=204)  # tells an EventSource to stop asking
    stream = _stream(request, context, job.id, seen)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _stream(request: Request, context: ApiContext, job_id: str, seen: int) -> AsyncIterator[bytes]:
    """Yield events until the job is over and all are sent, or the client goes."""
    context.metrics.streams.inc()
    try:
        idle = 0.0
        while not await request.is_disconnected():
            try:
                events, over = await run_in_threadpool(_news, context, job_id, seen)
            except StorageError:
                events, over = (), False  # the database restarts: the stream waits with it
            for event in events:
                yield _written(event)
                seen = event.number
            if over:
                return
            if not events:
                idle += POLL_SECONDS
                if idle >= KEEPALIVE_SECONDS:
                    idle = 0.0
                    yield KEEPALIVE_COMMENT
                await asyncio.sleep(POLL_SECONDS)
    finally:
        context.metrics.streams.dec()


def _news(context: ApiContext, job_id: str, seen: int) -> tuple[tuple[FeedEvent, ...], bool]:
    job = find_job(context.database, job_id, None)  # before the events: what it has seen by then, they include
    events = tuple(events_after(context.database, job_id, seen))
    last = events[-1].number if events else seen
    return events, JobState(job.state) in FINAL and last >= job.feed_last


def _written(event: FeedEvent) -> bytes:
    data = json.dumps({"number": event.number, "kind": event.kind, "at": event.at, "data": dict(event.data)})
    return format_sse_event(data_str=data, event=event.kind, id=str(event.number))
