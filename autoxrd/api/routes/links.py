"""Links: one file of a report, for a short time, without a key."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from autoxrd.api.auth import OwnJob, Writer
from autoxrd.api.context import Context
from autoxrd.api.problems import responses
from autoxrd.api.routes.files import send_file
from autoxrd.store.service import audit
from autoxrd.store.service.files import job_file
from autoxrd.store.service.links import read_link, signed_link
from autoxrd.store.service.listing import find_job

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", tags=["links"])


class LinkRequest(BaseModel):
    """Which file, and for how long."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200)] = "report.html"
    expires_in_seconds: Annotated[int, Field(ge=1, le=7 * 86400)] = 3600


class LinkOut(BaseModel):
    """A link; whoever has it can get the file until then."""

    path: str
    expires_at: str


@router.post("/jobs/{job_id}/links", status_code=201, responses=responses(404))
def create_link(job: OwnJob, context: Context, identity: Writer, wanted: LinkRequest) -> LinkOut:
    """Make a link to one file of the report, for somebody without a key."""
    job_file(context.database, job.id, "report", wanted.name)
    lifetime = timedelta(seconds=wanted.expires_in_seconds)
    token, until = signed_link(context.database, job.id, wanted.name, lifetime)
    told = {"name": wanted.name, "until": until.isoformat()}
    audit.write(context.database, identity.actor, "link.create", job.id, told)
    return LinkOut(path=f"/api/v1/links/{token}", expires_at=until.strftime("%Y-%m-%dT%H:%M:%SZ"))


@router.get("/links/{token}", response_class=Response, responses=responses(404))
def follow_link(context: Context, token: Annotated[str, Path(max_length=1000)]) -> Response:
    """Get the file of a link."""
    grant = read_link(context.database, token)
    find_job(context.database, grant.job_id, None)  # a deleted job takes its links along
    file = job_file(context.database, grant.job_id, "report", grant.name)
    return send_file(context, file, None, inline=grant.name.endswith(".html"))
