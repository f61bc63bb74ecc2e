"""Who is asking, and may they? A bearer key, its scopes and its rate; jobs of other owners are not there (404).

A browser that is logged in (`autoxrd.web`) shows its session's key as a cookie. Here it opens what only reads: a page
of somebody else can make a browser send a request, and what changes something asks for a proof that ours made the form.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from autoxrd.api.context import ApiContext, Context
from autoxrd.api.problems import require_scope_error
from autoxrd.errors import AccessDenied
from autoxrd.store.service.keys import Identity, Scope, authenticate
from autoxrd.store.service.listing import JobView, find_job

__all__ = [
    "SESSION_COOKIE",
    "Admin",
    "HookManager",
    "KeyManager",
    "MetricsReader",
    "OwnJob",
    "Reader",
    "Writer",
    "identify",
]

SESSION_COOKIE = "autoxrd_session"
_READING = frozenset({"GET", "HEAD"})

_bearer = HTTPBearer(auto_error=False, description="An API key: `Authorization: Bearer axr_...`.")
_Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def identify(context: ApiContext, token: str) -> Identity:
    """Return who a token belongs to, and count the request.

    Raises:
        AccessDenied: ``key_invalid``.
        LimitExceeded: ``rate``.
    """
    identity = authenticate(context.database, token)
    context.rate.take(identity.key_id)
    return identity


def _identity(request: Request, context: Context, credentials: _Credentials) -> Identity:
    token = request.cookies.get(SESSION_COOKIE) if request.method in _READING else None
    if credentials is not None:
        token = credentials.credentials
    if token is None:
        raise AccessDenied("key_missing", "Send an API key: 'Authorization: Bearer axr_...'.")
    identity = identify(context, token)
    request.state.owner = identity.owner_id
    return replace(identity, request_id=request.state.request_id)


_Identified = Annotated[Identity, Depends(_identity)]


class _Needs:
    """Dependency: an identity with one scope; ``service:admin`` has them all."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def __call__(self, identity: _Identified) -> Identity:
        if not identity.scopes & {self._scope.value, Scope.ADMIN.value}:
            raise require_scope_error(self._scope.value)
        return identity


Reader = Annotated[Identity, Depends(_Needs(Scope.READ))]
Writer = Annotated[Identity, Depends(_Needs(Scope.WRITE))]
KeyManager = Annotated[Identity, Depends(_Needs(Scope.KEYS))]
HookManager = Annotated[Identity, Depends(_Needs(Scope.WEBHOOKS))]
MetricsReader = Annotated[Identity, Depends(_Needs(Scope.METRICS))]
Admin = Annotated[Identity, Depends(_Needs(Scope.ADMIN))]


def _own_job(job_id: str, context: Context, identity: Reader) -> JobView:
    return find_job(context.database, job_id, identity.owner_id)


OwnJob = Annotated[JobView, Depends(_own_job)]
"""The job named in the path; not there where it belongs to somebody else."""
