"""What does a request leave behind, and how much may it send? Id, headers, log line, metrics, a limit of bytes."""

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


class _TooLarge(Exception):
    """The body has more bytes than are read."""


class _Exchange:
    """One request and its answer, on their way through.

    Args:
        scope: of the request.
        receive: gives its body.
        send: takes its answer.
        limit: bytes of body that are read.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        self.headers = Headers(scope=scope)
        given = self.headers.get("x-request-id", "")
        self.id = given if _REQUEST_ID.fullmatch(given) else new_id()
        self.status: int | None = None
        self.over = False
        self._receive, self._send, self._left = receive, send, limit
        declared = self.headers.get("content-length", "0")
        self.declared_too_much = declared.isdecimal() and int(declared) > limit

    async def receive(self) -> Message:
        """Pass a piece of the body on, as long as there are not too many."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            self.over = True
            raise _TooLarge
        return message

    async def send(self, message: Message) -> None:
        """Pass a piece of the answer on, its head with our headers."""
        if message["type"] == "http.response.start":
            if self.over:
                raise _TooLarge  # whoever parsed the body took our exception for a fault in it: we know better
            self.status = message["status"]
            answer = MutableHeaders(scope=message)
            answer["X-Request-ID"] = self.id
            for name, value in _HEADERS.items():
                answer.setdefault(name, value)
        await self._send(message)


class Observing:
    """ASGI middleware around everything.

    Args:
        app: what answers.
        metrics: where requests are counted.
        max_body_bytes: longest body that is read.
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
        exchange = _Exchange(scope, receive, send, self._max_body_bytes)
        scope.setdefault("state", {})["request_id"] = exchange.id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=exchange.id)
        began = time.perf_counter()
        try:
            await self._answered(scope, exchange)
        finally:
            self._note(scope, exchange.status or 500, time.perf_counter() - began)

    async def _answered(self, scope: Scope, exchange: _Exchange) -> None:
        try:
            if exchange.declared_too_much:
                raise _TooLarge
            await self._app(scope, exchange.receive, exchange.send)
        except Exception:
            if exchange.status is not None:
                raise  # half an answer is out: the server closes the connection
            refused = exchange.over or exchange.declared_too_much
            exchange.over = False
            request = Request(scope)
            answer = too_large(request, self._max_body_bytes) if refused else unexpected(request)
            await answer(scope, exchange.receive, exchange.send)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
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
