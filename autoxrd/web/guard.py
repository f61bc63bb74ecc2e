"""Who is looking at a page, and was a form made by us? The session's cookie, and a proof for what changes something.

A form is believed when the browser says that it comes from our own pages (``Sec-Fetch-Site``, or ``Origin`` where it
does not know that), and when it carries the token that only a page made for this session contains. The cookie is
``SameSite=Strict`` besides: no other site's form brings it along.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import FormData

from autoxrd.api.auth import SESSION_COOKIE, identify
from autoxrd.api.context import Context, context_of
from autoxrd.api.problems import require_scope_error
from autoxrd.errors import AccessDenied
from autoxrd.primitives import sha256_hex
from autoxrd.store.service.keys import Identity, Scope
from autoxrd.store.service.listing import JobView, find_job

__all__ = ["OwnJob", "Visit", "Visitor", "believed_form", "require_own_page", "safe_target"]

MAX_FIELDS = 200


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody who is logged in.

    Args:
        identity: who, by the key of the session.
        csrf: what a form of this session carries.
    """

    identity: Identity
    csrf: str

    def may(self, scope: Scope) -> bool:
        """Return whether the session has a scope."""
        return bool(self.identity.scopes & {scope.value, Scope.ADMIN.value})

    def require(self, scope: Scope) -> None:
        """Refuse who lacks a scope.

        Raises:
            AccessDenied: ``scope_missing``.
        """
        if not self.may(scope):
            raise require_scope_error(scope.value)


def _visitor(request: Request, context: Context) -> Visit:
    token = request.cookies.get(SESSION_COOKIE)
    if not token:
        raise AccessDenied("key_missing", "Log in first.")
    identity = identify(context, token)
    request.state.owner = identity.owner_id
    identity = replace(identity, request_id=request.state.request_id)
    return Visit(identity, sha256_hex(f"form of {token}".encode()))


Visitor = Annotated[Visit, Depends(_visitor)]


def _own_job(job_id: str, request: Request, visit: Visitor) -> JobView:
    visit.require(Scope.READ)
    return find_job(context_of(request).database, job_id, visit.identity.owner_id)


OwnJob = Annotated[JobView, Depends(_own_job)]
"""The job named in the path; not there where it belongs to somebody else."""


def require_own_page(request: Request) -> None:
    """Refuse a request that another site's page made.

    Raises:
        AccessDenied: ``form_foreign``.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        own = site in {"same-origin", "none"}
    else:
        own = origin is not None and urlsplit(origin).netloc == request.headers.get("host")
    if not own:
        raise AccessDenied("form_foreign", "This form was not sent from a page of this service: open it again here.")


async def believed_form(request: Request, visit: Visit, *, max_files: int = 0) -> FormData:
    """Read a form that a page of this session made.

    Raises:
        AccessDenied: ``form_foreign``.
    """
    require_own_page(request)
    form = await request.form(max_files=max_files, max_fields=MAX_FIELDS, max_part_size=2**18)
    given = form.get("csrf")
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), visit.csrf.encode()):
        raise AccessDenied("form_foreign", "This form belongs to another session: load the page again and repeat.")
    return form


def safe_target(wanted: str | None) -> str:
    """Return a path of this service to go on to; anything else becomes the list of jobs."""
    if wanted and wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable():
        return wanted
    return "/jobs"
