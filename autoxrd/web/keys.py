"""API keys of an owner: which there are, a new one, and the end of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse

from autoxrd.api.context import ApiContext, Context
from autoxrd.api.routes.keys import KeyRequest, create_key
from autoxrd.errors import UserInputError
from autoxrd.store.service.database import now_text
from autoxrd.store.service.keys import KeyView, Scope, list_keys, revoke, session_name
from autoxrd.web.guard import Visit, Visitor, believed_form
from autoxrd.web.rendering import PageRoute, page

__all__ = ["router"]

router = APIRouter(prefix="/keys", route_class=PageRoute, include_in_schema=False)

_LIFETIMES = {"1": "1 day", "30": "30 days", "90": "90 days", "365": "1 year", "": "without end"}
_SCOPES = {
    Scope.READ: "look at jobs and reports",
    Scope.WRITE: "submit, pause, cancel and resume jobs",
    Scope.KEYS: "make and revoke keys",
    Scope.WEBHOOKS: "tell other programs by webhooks",
    Scope.METRICS: "read the metrics",
    Scope.ADMIN: "everything",
}
_SESSION = session_name("")


@dataclass(frozen=True, slots=True)
class Shown:
    """A key in the list.

    Args:
        standing: ``valid``, ``expired`` or ``revoked``.
        begun_with: name of the key with which a browser session was begun, empty for any other key.
        is_this: whether this page is looked at with it.
    """

    key: KeyView
    standing: str
    begun_with: str
    is_this: bool


@router.get("")
def show_keys(context: Context, visit: Visitor) -> Response:
    """Show the keys."""
    return _keys_page(context, visit)


@router.post("")
async def make_key(request: Request, context: Context, visit: Visitor) -> Response:
    """Make a key and show it, this once."""
    visit.require(Scope.KEYS)
    form = await believed_form(request, visit)
    try:
        made = await run_in_threadpool(create_key, context, visit.identity, _wanted(form))
    except UserInputError as error:
        return await run_in_threadpool(_keys_page, context, visit, problem=error.detail)
    return await run_in_threadpool(_keys_page, context, visit, token=made.token)


@router.post("/{key_id}/revoke")
async def revoke_key(
    request: Request, context: Context, visit: Visitor, key_id: Annotated[str, Path(pattern=r"^[0-9a-f-]{36}$")]
) -> Response:
    """Revoke a key at once, and the browser sessions that were begun with it."""
    visit.require(Scope.KEYS)
    await believed_form(request, visit)
    identity = visit.identity
    await run_in_threadpool(revoke, context.database, identity.owner_id, key_id, actor=identity.actor)
    return RedirectResponse("/keys", status_code=303)


def _wanted(form: FormData) -> KeyRequest:
    name, days = str(form.get("name", "")).strip(), str(form.get("days", "90"))
    scopes = [scope for scope in Scope if scope.value in form.getlist("scopes")]
    if not 1 <= len(name) <= 100 or not name.isprintable():
        raise UserInputError("name_invalid", "Say in up to 100 letters what the key is for.")
    if not scopes:
        raise UserInputError("scope_missing", "Choose what the key may be used for.")
    if days not in _LIFETIMES:
        raise UserInputError("lifetime_unknown", "Choose how long the key is valid from the list.")
    return KeyRequest(name=name, scopes=scopes, expires_in_days=float(days) if days else None)


def _keys_page(context: ApiContext, visit: Visit, *, token: str = "", problem: str = "") -> Response:
    visit.require(Scope.KEYS)
    keys = list_keys(context.database, visit.identity.owner_id)
    names = {session_name(key.id): key.name for key in keys}
    now = now_text()
    shown = [
        Shown(key, _standing(key, now), names.get(key.name, ""), key.id == visit.identity.key_id)
        for key in keys
        if not _long_over(key)
    ]
    return page(
        "keys.html.j2",
        visit,
        status=422 if problem else 200,
        keys=[s for s in shown if not s.key.name.startswith(_SESSION)],
        sessions=[s for s in shown if s.key.name.startswith(_SESSION) and s.standing == "valid"],
        scopes=[(scope.value, text) for scope, text in _SCOPES.items() if visit.may(scope)],
        lifetimes=list(_LIFETIMES.items()),
        token=token,
        problem=problem,
    )


def _standing(key: KeyView, now: str) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= now else "valid"


def _long_over(key: KeyView) -> bool:
    """Whether a key ended a month ago or earlier: the list is for those that matter."""
    ended = key.revoked_at or key.expires_at
    return ended is not None and datetime.fromisoformat(ended) < datetime.now(UTC) - timedelta(days=30)
