"""What does one request leave behind? An id, one line in the log, and its share in the metrics."""

from __future__ import annotations

import re
import time

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from autoxrd.api.metrics import Metrics
from autoxrd.api.problems import too_large, unexpected
from autoxrd.logs import get_logger
from autoxrd.store.service.database import new_id

__all__ = ["Observing"]

_log = get_logger("http")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


class Observing:
    """ASGI middleware: request id, security headers, access log, metrics.

    Args:
        app: what answers.
        metrics: where requests are counted.
        max_body_bytes: a body that says it is longer is refused before it is read.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, max_body_bytes: int) -> None:
        self._app = app
        self._metrics = metrics
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else new_id()
        scope.setdefault("state", {})["request_id"] = request_id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        began, status, started = time.perf_counter(), 500, False

        async def tagged(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                answer = MutableHeaders(scope=message)
                answer["X-Request-ID"] = request_id
                for name, value in _HEADERS.items():
                    answer.setdefault(name, value)
            await send(message)

        try:
            declared = headers.get("content-length", "0")
            if declared.isdecimal() and int(declared) > self._max_body_bytes:
                await too_large(Request(scope), self._max_body_bytes)(scope, receive, tagged)
            else:
                await self._app(scope, receive, tagged)
        except Exception:
            if started:
                raise  # half an answer is out: the server closes the connection
            await unexpected(Request(scope))(scope, receive, tagged)
        finally:
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "unmatched")
            self._metrics.observe(scope["method"], route, status, seconds)
            _log.info(
                "request",
                method=scope["method"],
                path=scope["path"][:200],
                status=status,
                seconds=round(seconds, 4),
                owner=scope["state"].get("owner"),
            )
