"""Logging in with a key, and out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse

from autoxrd.api.auth import SESSION_COOKIE, identify
from autoxrd.api.context import ApiContext, Context
from autoxrd.errors import AccessDenied
from autoxrd.store.service.keys import NewKey
from autoxrd.store.service.sessions import begin_session, end_session
from autoxrd.web.guard import Visitor, believed_form, require_own_page, safe_target
from autoxrd.web.rendering import PageRoute, page

__all__ = ["router"]

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Next = Annotated[str | None, Query(alias="next", max_length=1000)]


@router.get("/")
def home() -> Response:
    """Go to the list of jobs."""
    return RedirectResponse("/jobs", status_code=303)


@router.get("/login")
def show_login(wanted: _Next = None) -> Response:
    """Ask for a key."""
    return page("login.html.j2", None, next=safe_target(wanted), problem="")


@router.post("/login")
async def log_in(request: Request, context: Context) -> Response:
    """Begin a session with a key."""
    require_own_page(request)
    form = await request.form(max_files=0, max_fields=4, max_part_size=4096)
    target = safe_target(str(form.get("next", "")))
    try:
        made = await run_in_threadpool(_begin, context, str(form.get("key", "")).strip())
    except AccessDenied as error:
        return page("login.html.j2", None, status=401, next=target, problem=error.detail)
    answer = RedirectResponse(target, status_code=303)
    # No Max-Age: the cookie goes with the browser, and the key behind it ends by itself.
    answer.set_cookie(
        SESSION_COOKIE, made.token, httponly=True, samesite="strict", secure=request.url.scheme == "https", path="/"
    )
    return answer


@router.post("/logout")
async def log_out(request: Request, context: Context, visit: Visitor) -> Response:
    """End the session."""
    await believed_form(request, visit)
    await run_in_threadpool(end_session, context.database, visit.identity)
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="strict")
    return answer


def _begin(context: ApiContext, key: str) -> NewKey:
    return begin_session(context.database, identify(context, key))
