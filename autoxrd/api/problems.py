"""How does an error look over HTTP? Always RFC 9457 problem+json, with our stable code as its type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from autoxrd.errors import (
    AccessDenied,
    AutoxrdError,
    Conflict,
    EngineError,
    LimitExceeded,
    NotFound,
    PolicyError,
    StorageError,
    UserInputError,
)
from autoxrd.logs import get_logger

__all__ = ["PROBLEM_TYPE", "Problem", "add_handlers", "problem_response", "responses", "too_large", "unexpected"]

PROBLEM_TYPE = "application/problem+json"

_STATUS: tuple[tuple[type[AutoxrdError], int], ...] = (
    (NotFound, 404),
    (AccessDenied, 403),
    (Conflict, 409),
    (UserInputError, 422),
    (PolicyError, 422),
    (LimitExceeded, 429),
    (StorageError, 500),
    (EngineError, 500),
)
_STATUS_OF_CODE = {
    "key_invalid": 401,
    "key_missing": 401,
    "scope_missing": 403,
    "body_too_large": 413,
    "media_type": 415,
    "idempotency_key_reused": 422,
    "database_unreachable": 503,
    "artifact_not_written": 507,
}
_CODES_OF_HTTP = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large", 400: "bad_request"}

_log = get_logger("api")


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str
    """``urn:autoxrd:problem:CODE``."""
    title: str
    status: int
    detail: str
    """One sentence that says what to do next."""
    code: str
    """Stable, for programs."""
    instance: str | None = None
    """Id of the request, as in the log."""
    errors: list[dict[str, Any]] = Field(default_factory=list)
    """Where the request is wrong, field by field."""


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of the error answers that a route can give, those of every route included."""
    every = {400, 401, 403, 413, 422, 429, 500, 503, *statuses}
    content = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {s: {"description": HTTPStatus(s).phrase, "content": content} for s in sorted(every)}


def problem_response(
    request: Request,
    status: int,
    code: str,
    detail: str,
    *,
    errors: list[dict[str, Any]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Build the answer."""
    problem = Problem(
        type=f"urn:autoxrd:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        instance=getattr(request.state, "request_id", None),
        errors=errors or [],
    )
    return JSONResponse(problem.model_dump(), status, dict(headers or {}), PROBLEM_TYPE)


def status_of(error: AutoxrdError) -> int:
    """Return the HTTP status of one of our errors."""
    if error.code in _STATUS_OF_CODE:
        return _STATUS_OF_CODE[error.code]
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def add_handlers(app: FastAPI) -> None:
    """Let every error of an application become a problem."""
    app.add_exception_handler(AutoxrdError, _ours)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(RequestValidationError, _of_validation)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, AutoxrdError)
    status = status_of(error)
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, LimitExceeded):
        wait = error.context.get("retry_after_seconds")
        headers["Retry-After"] = str(math.ceil(wait) if isinstance(wait, float) else 60)
    if status == 503:
        headers["Retry-After"] = "5"
    if status >= 500:
        _log.error("request_failed", code=error.code, detail=error.detail)
        if status == 500:
            return problem_response(request, 500, error.code, "The service failed; its log tells more.")
    return problem_response(request, status, error.code, error.detail, headers=headers)


async def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES_OF_HTTP.get(error.status_code, f"http_{error.status_code}")
    detail = str(error.detail)
    if error.status_code == 404:
        detail = f"There is nothing at {request.url.path!r:.200}."
    return problem_response(request, error.status_code, code, detail, headers=error.headers)


async def _of_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = [
        {"where": ".".join(map(str, e["loc"])), "what": str(e["msg"])[:300], "kind": e["type"]} for e in error.errors()
    ]
    first = found[0] if found else {"where": "body", "what": "it cannot be read"}
    detail = f"The request does not fit: {first['where'] or 'body'}: {first['what']}."
    return problem_response(request, 422, "request_invalid", detail, errors=found[:50])


def too_large(request: Request, limit: int) -> Response:
    """Return the answer to a body that is longer than what is read."""
    return problem_response(request, 413, "body_too_large", f"At most {limit} bytes are read: send less at once.")


def unexpected(request: Request) -> Response:
    """Return the answer for an error that nobody foresaw; the log has the traceback."""
    _log.exception("request_broke")
    return problem_response(request, 500, "internal_error", "The service failed; its log tells more.")


def require_scope_error(scope: str) -> AccessDenied:
    """Return the error of a key that may not do this."""
    return AccessDenied("scope_missing", f"This key lacks the scope {scope}: use one that has it.")
