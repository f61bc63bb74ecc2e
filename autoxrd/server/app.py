"""What answers HTTP? The REST interface, and beside it whatever else is mounted: the one place to add to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from anyio import to_thread
from fastapi import FastAPI

from autoxrd.api.app import create_api
from autoxrd.api.context import ApiContext
from autoxrd.api.limits import RateLimit
from autoxrd.hooks.addresses import Guard
from autoxrd.jobs.checking import Checker
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database
from autoxrd.web.app import add_pages

__all__ = ["THREADS", "build_app"]

THREADS = 8
"""Requests worked on at once, below the connections of the database's pool, so that none waits for one. More threads
of one interpreter only wait for each other; for more requests start more processes."""


def _nothing() -> None:
    pass


def build_app(
    settings: Settings,
    database: Database,
    *,
    nudge: Callable[[], None],
    start: Callable[[], None] = _nothing,
    stop: Callable[[], None] = _nothing,
) -> FastAPI:
    """Build the application of a web process.

    Args:
        settings: of the service.
        database: open and migrated.
        nudge: says that there may be work; returns at once.
        start: called when the server begins.
        stop: called when it ends.
    """
    guard = Guard(allow_loopback=settings.hooks_allow_loopback)
    context = ApiContext(settings, database, nudge, RateLimit(settings.requests_per_second), guard)
    checker = Checker()

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        start()
        try:
            yield
        finally:
            stop()
            checker.close()

    app = create_api(context, lifespan=lifespan)
    add_pages(app, checker)
    return app
