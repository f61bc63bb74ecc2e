"""How does a template become an answer? Escaped, with a strict policy, and errors as pages that say what to do next."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import jinja2
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse

from autoxrd.api.problems import status_of
from autoxrd.errors import AutoxrdError
from autoxrd.logs import get_logger
from autoxrd.report.format import fixed
from autoxrd.report.page import json_for_html
from autoxrd.report.words import humanised, sentence
from autoxrd.web import words
from autoxrd.web.assets import asset_url
from autoxrd.web.guard import Visit

__all__ = ["PageRoute", "error_page", "fragment", "page", "wants_page"]

_log = get_logger("web")

POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    # Plotly sets styles from its script; no script and no handler of a page may be inline.
    "style-src 'self' 'unsafe-inline'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_PAGES = frozenset({"/jobs", "/jobs/new", "/series", "/compare", "/keys"})
"""Pages that the bar at the top leads to."""
_UNHANDLED = {401: "Log in to see this page.", 404: "There is nothing here."}


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [
                jinja2.PackageLoader("autoxrd.web", "templates"),
                jinja2.PrefixLoader({"report": jinja2.PackageLoader("autoxrd.report", "templates")}),
            ]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"pages": _PAGES, "asset": asset_url, "standing": words.standing, "data_of": json_for_html}
    environment.filters |= {
        "duration": words.duration,
        "fixed": fixed,
        "humanised": humanised,
        "instant": words.instant,
        "percent": words.percent,
        "sentence": sentence,
        "sized": words.sized,
    }
    return environment


def fragment(template: str, **names: Any) -> str:
    """Render a piece of a page, for a script that puts it into its place."""
    return _environment().get_template(template).render(**names)


def page(template: str, visit: Visit | None, *, status: int = 200, **names: Any) -> Response:
    """Render a whole page."""
    text = fragment(template, visit=visit, **names)
    # Without a referrer of its own pages a browser would not say where a form comes from either (Origin: null).
    return HTMLResponse(text, status, headers={"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"})


def error_page(request: Request, status: int, detail: str) -> Response:
    """Render an error for a person."""
    title = HTTPStatus(status).phrase
    return page("error.html.j2", None, status=status, title=title, detail=detail, back=request.url.path)


def wants_page(request: Request) -> bool:
    """Return whether the client is a person's browser asking for a page, not a script asking for data."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")


class PageRoute(APIRoute):
    """A route whose errors are pages; who is not logged in is sent to do so and comes back."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the route's handler."""
        handler = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handler(request)
            except AutoxrdError as error:
                if not wants_page(request):
                    raise
                return _of_ours(request, error)
            except (RequestValidationError, HTTPException) as error:
                if not wants_page(request):
                    raise
                status = error.status_code if isinstance(error, HTTPException) else 422
                return error_page(request, status, _UNHANDLED.get(status, "The address or the form does not fit."))
            finally:
                await request.close()  # the files of a form, which else lie open until the collector comes by

        return handled


def _of_ours(request: Request, error: AutoxrdError) -> Response:
    status = status_of(error)
    if status == 401:
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        back = f"?next={quote(wanted)}" if request.method == "GET" and wanted != "/jobs" else ""
        return RedirectResponse(f"/login{back}", status_code=303)
    if status >= 500:
        _log.error("page_failed", code=error.code, detail=error.detail)
        return error_page(request, status, "The service failed; its log tells more. Try again in a moment.")
    return error_page(request, status, error.detail)
