"""How do the pages come into the application? Their routers beside REST, and a page for an address that is nowhere."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from autoxrd.jobs.checking import Checker
from autoxrd.web import assets, checks, comparing, job, keys, listing, login, reports, reviewing, series, submitting
from autoxrd.web.rendering import error_page, wants_page

__all__ = ["add_pages"]

ROUTERS = (
    login.router,
    submitting.router,
    checks.router,
    reviewing.router,  # before the job's own: there a name that it does not know is refused
    job.router,
    reports.router,
    comparing.router,
    series.router,
    keys.router,
    listing.router,
    assets.router,
)


def add_pages(app: FastAPI, checker: Checker) -> None:
    """Add the pages to the application of REST.

    Args:
        app: the application.
        checker: looks at files before they are submitted; closed by whoever made it.
    """
    app.state.checker = checker
    app.state.series_rows = series.RowCache()
    for router in ROUTERS:
        app.include_router(router)
    problem = app.exception_handlers[HTTPException]

    async def not_there(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and wants_page(request):
            return error_page(request, error.status_code, "There is nothing at this address.")
        answer = problem(request, error)
        return answer if isinstance(answer, Response) else await answer

    app.add_exception_handler(HTTPException, not_there)
