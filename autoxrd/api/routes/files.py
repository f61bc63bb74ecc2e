"""Files: reports in their forms, artifacts by digest, uploads for later."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, UploadFile
from starlette.responses import FileResponse, Response

from autoxrd.api.auth import OwnJob, Writer
from autoxrd.api.context import ApiContext, Context
from autoxrd.api.intake import store_upload
from autoxrd.api.models import FileOut
from autoxrd.api.problems import responses
from autoxrd.errors import NotFound
from autoxrd.store.service.budgets import require_room
from autoxrd.store.service.files import StoredFile, add_upload, artifact_of_job, job_file, job_files
from autoxrd.store.service.retention import delete_upload

__all__ = ["router", "send_file"]

router = APIRouter(prefix="/api/v1", tags=["files"])

_REPORTS = {"html": "report.html", "json": "report.json", "zip": "bundle.zip"}
# The report carries its scripts inside. In a sandbox without our origin they can reach nothing of the service.
_REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; frame-ancestors 'self'"
)
_Sha256 = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")]
_Match = Annotated[str | None, Header(alias="If-None-Match", max_length=1000)]


@router.get("/jobs/{job_id}/files", responses=responses(404))
def list_files(job: OwnJob, context: Context) -> list[FileOut]:
    """List the files of a job: its inputs, and its report once there is one."""
    return [FileOut.of(file) for file in job_files(context.database, job.id)]


@router.get("/jobs/{job_id}/files/{name:path}", response_class=Response, responses=responses(404))
def get_file(job: OwnJob, context: Context, name: str, if_none_match: _Match = None) -> Response:
    """Get a file of the report by its name, e.g. `parameters.csv` or `engine/model.inp`."""
    return send_file(context, job_file(context.database, job.id, "report", name), if_none_match)


@router.get("/jobs/{job_id}/report.{form}", response_class=Response, responses=responses(404))
def get_report(
    job: OwnJob,
    context: Context,
    form: Literal["html", "json", "zip", "cif", "csv"],
    phase: Annotated[str | None, Query(max_length=100, description="Phase of the CIF; the first by default.")] = None,
    table: Annotated[Literal["profile", "reflections", "parameters"], Query(description="Which CSV.")] = "profile",
    if_none_match: _Match = None,
) -> Response:
    """Get the report: page, summary, bundle with everything, refined CIF, or a table."""
    files = job_files(context.database, job.id, "report")
    if form == "cif":
        wanted = [f for f in files if f.name.endswith(".cif") and "/" not in f.name]
        found = next((f for f in wanted if phase is None or f.name == f"{phase}.cif"), None)
    else:
        name = f"{table}.csv" if form == "csv" else _REPORTS[form]
        found = next((f for f in files if f.name == name), None)
    if found is None:
        raise NotFound("report_not_found", f"The job is {job.state} and has no such report (yet).")
    return send_file(context, found, if_none_match, inline=form == "html")


@router.get("/jobs/{job_id}/artifacts/{sha256}", response_class=Response, responses=responses(404))
def get_artifact(job: OwnJob, context: Context, sha256: _Sha256, if_none_match: _Match = None) -> Response:
    """Get an artifact that the job's graph or files name."""
    media_type = artifact_of_job(context.database, job.id, sha256)
    size = context.database.artifacts.size(sha256)
    return send_file(context, StoredFile("artifact", sha256, sha256, size, media_type), if_none_match)


@router.post("/artifacts", status_code=201, responses=responses(400, 413, 507))
def upload(context: Context, identity: Writer, file: UploadFile) -> FileOut:
    """Store a file, to be named in requests; the same bytes are stored once."""
    require_room(context.database, identity.owner_id)
    name, stored = store_upload(context, file)
    add_upload(context.database, identity.owner_id, name, stored)
    return FileOut(role="upload", name=name, sha256=stored.sha256, size=stored.size, media_type=stored.media_type)


@router.delete("/artifacts/{sha256}", status_code=204, responses=responses(404))
def delete_artifact(context: Context, identity: Writer, sha256: _Sha256) -> None:
    """Forget an upload; jobs that were made with it keep it."""
    delete_upload(context.database, identity.actor, sha256)


def send_file(context: ApiContext, file: StoredFile, if_none_match: str | None, *, inline: bool = False) -> Response:
    """Answer with a file, which is never run as a page of this service."""
    tag = f'"{file.sha256}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if if_none_match is not None and tag in if_none_match.replace(" ", "").split(","):
        return Response(status_code=304, headers=headers)
    if inline:
        headers["Content-Security-Policy"] = _REPORT_POLICY
    return FileResponse(
        context.database.artifacts.path(file.sha256),
        media_type=file.media_type,
        headers=headers,
        filename=file.name.rpartition("/")[2],
        content_disposition_type="inline" if inline else "attachment",
    )
