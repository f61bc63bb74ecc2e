"""What may a request use? One object, made by whoever starts the application and passed in; nothing global."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import Depends, Request

from autoxrd.api.limits import RateLimit
from autoxrd.api.metrics import Metrics
from autoxrd.hooks.addresses import Guard
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database

__all__ = ["ApiContext", "Context", "context_of"]


@dataclass(frozen=True, slots=True)
class ApiContext:
    """What the application works with.

    Args:
        settings: of the service.
        database: the service's database.
        nudge: says that there may be work; it must return at once and never raise.
        rate: rate limit by key.
        guard: decides where events may be sent.
        metrics: counters of this process.
        submitting: how many submissions are worked on at once. More threads of one interpreter take turns and all end
            late: with eight, one submission in a hundred took four times the median, with two 1.4 times.
    """

    settings: Settings
    database: Database
    nudge: Callable[[], None]
    rate: RateLimit
    guard: Guard = field(default_factory=Guard)
    metrics: Metrics = field(default_factory=Metrics)
    submitting: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(2))


def context_of(request: Request) -> ApiContext:
    """Return the application's context."""
    context: ApiContext = request.app.state.context
    return context


async def _context(request: Request) -> ApiContext:  # async: a thread for this would cost more than the rest of it
    return context_of(request)


Context = Annotated[ApiContext, Depends(_context)]
