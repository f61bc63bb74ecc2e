"""How does a body become a checked request with stored files? Multipart with the files, or JSON that names uploads.

A file is stored by its content; the name that the client gave passes `autoxrd.primitives.safe_name` and then only
serves to recognise its format and to name it in the report. Nothing is parsed here: a worker's process does that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from autoxrd.api.context import ApiContext
from autoxrd.errors import UserInputError
from autoxrd.jobs.choices import check_choices
from autoxrd.jobs.request import MAX_STRUCTURES, JobRequest
from autoxrd.primitives import content_hash, safe_name
from autoxrd.store.service.files import NewFile, upload_of
from autoxrd.store.service.keys import Identity
from autoxrd.store.service.webhooks import has_url

__all__ = ["Body", "Intake", "read_intake", "received", "store_upload"]

_PARTS = frozenset({"request", "pattern", "structures", "candidates", "instrument"})


@dataclass(frozen=True, slots=True)
class Intake:
    """A request as it will be queued.

    Args:
        files: inputs as ``ROLE/NAME``; their bytes are stored.
    """

    request: JobRequest
    files: Mapping[str, NewFile]

    @property
    def fingerprint(self) -> str:
        """One hash over the request and its files: what an Idempotency-Key stands for."""
        digests = {name: file.sha256 for name, file in self.files.items()}
        return content_hash({"request": self.request.model_dump(mode="json"), "files": digests})


@dataclass(frozen=True, slots=True)
class Body:
    """What was sent, not yet looked at: JSON text, or the parts of a form."""

    text: bytes = b""
    form: FormData | None = None


@asynccontextmanager
async def received(http: Request) -> AsyncIterator[Body]:
    """Receive the body of a submission.

    Raises:
        UserInputError: ``media_type``.
    """
    kind = http.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        yield Body(text=await http.body())
    elif kind == "multipart/form-data":
        async with http.form(max_files=MAX_STRUCTURES + 2, max_fields=4, max_part_size=2**18) as form:
            yield Body(form=form)
    else:
        raise UserInputError("media_type", "Send multipart/form-data with the files, or application/json.")


def read_intake(body: Body, context: ApiContext, identity: Identity) -> Intake:
    """Check what was sent and store its files.

    Raises:
        UserInputError: ``part_missing``, ``part_unknown``, ``file_too_large``, ...
        RequestValidationError: the request does not fit its schema.
    """
    if body.form is None:
        request = _parsed(body.text)
        intake = Intake(request, _referenced(request, context, identity))
    else:
        intake = _multipart(body.form, context)
    check_choices(intake.request, context.settings, [name.partition("/")[0] for name in intake.files])
    _check_callback(intake.request, context, identity)
    return intake


def _check_callback(request: JobRequest, context: ApiContext, identity: Identity) -> None:
    if request.callback is not None and not has_url(context.database, identity.owner_id, request.callback):
        raise UserInputError(
            "callback_unregistered",
            "'callback' names no webhook of yours: register it first (POST /api/v1/webhooks).",
        )


def _parsed(text: bytes | str) -> JobRequest:
    try:
        return JobRequest.model_validate_json(text or b"{}")
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False, include_context=False)) from error


def _referenced(request: JobRequest, context: ApiContext, identity: Identity) -> dict[str, NewFile]:
    references = request.references()
    if not references:
        raise UserInputError("part_missing", "'inputs' is missing: name uploaded artifacts, or send the files.")
    files = {}
    for role, reference in references.items():
        stored = upload_of(context.database, identity.owner_id, reference.artifact)
        files[f"{role}/{safe_name(reference.name)}"] = NewFile(stored.sha256, stored.size)
    return files


def _multipart(form: FormData, context: ApiContext) -> Intake:
    unknown = sorted(set(form) - _PARTS)
    if unknown:
        raise UserInputError("part_unknown", f"The part {unknown[0]!r:.60} is not known; parts are {sorted(_PARTS)}.")
    text = form.get("request", "{}")
    request = _parsed(text.file.read() if isinstance(text, UploadFile) else text)
    if request.inputs is not None:
        raise UserInputError("part_unknown", "A multipart request carries its files: leave 'inputs' out.")
    files = {}
    for role, part in _parts(form).items():
        if not isinstance(part, UploadFile):
            raise UserInputError("part_missing", f"The part '{role}' must be a file with a file name.")
        name, file = store_upload(context, part)
        files[f"{role}/{name}"] = file
    return Intake(request, files)


def _parts(form: FormData) -> dict[str, UploadFile | str]:
    """Return the parts that should be files by their role."""
    patterns, instruments = form.getlist("pattern"), form.getlist("instrument")
    structures, candidates = form.getlist("structures"), form.getlist("candidates")
    if len(patterns) != 1:
        raise UserInputError("part_missing", "Send exactly one part 'pattern' with the measured pattern.")
    if not structures and not candidates:
        text = "Send at least one part 'structures' or 'candidates', one CIF in each."
        raise UserInputError("part_missing", text)
    if len(structures) + len(candidates) > MAX_STRUCTURES:
        text = f"Send at most {MAX_STRUCTURES} parts 'structures' and 'candidates' together."
        raise UserInputError("part_missing", text)
    if len(instruments) > 1:
        raise UserInputError("part_unknown", "Send at most one part 'instrument'.")
    parts = {"pattern": patterns[0], **{f"structure.{i}": part for i, part in enumerate(structures, 1)}}
    parts |= {f"candidate.{i}": part for i, part in enumerate(candidates, 1)}
    return parts | ({"instrument": instruments[0]} if instruments else {})


def store_upload(context: ApiContext, part: UploadFile) -> tuple[str, NewFile]:
    """Store a part by its content; return its safe name and what was stored.

    Raises:
        UserInputError: ``file_too_large`` or ``file_empty``.
    """
    name, limit = safe_name(part.filename or ""), context.settings.max_file_bytes
    data = part.file.read(limit + 1)
    if len(data) > limit:
        raise UserInputError("file_too_large", f"{name} has more than {limit} bytes, the largest file that is read.")
    if not data:
        raise UserInputError("file_empty", f"{name} is empty.")
    return name, NewFile(context.database.artifacts.put(data), len(data))
