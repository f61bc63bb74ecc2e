"""Where is the service, and with which key is it asked? From arguments, else from the environment."""

from __future__ import annotations

import os
from typing import Any

import httpx

from autoxrd.errors import AccessDenied, UserInputError

__all__ = ["connection"]

DEFAULT_URL = "http://127.0.0.1:8417"


def connection(url: str | None, key: str | None, timeout_seconds: float) -> dict[str, Any]:
    """Return what an httpx client is made with.

    Raises:
        UserInputError: ``service_url``.
        AccessDenied: ``key_missing``.
    """
    where = (url or os.environ.get("AUTOXRD_URL") or DEFAULT_URL).rstrip("/")
    secret = key or os.environ.get("AUTOXRD_API_KEY", "")
    try:
        parsed = httpx.URL(where)
    except httpx.InvalidURL as error:
        raise UserInputError("service_url", f"{where!r:.100} is no address: give http(s)://host:port.") from error
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise UserInputError("service_url", f"{where!r:.100} is no address: give http(s)://host:port.")
    if not secret or not secret.isascii() or not secret.isprintable():
        raise AccessDenied("key_missing", "Set AUTOXRD_API_KEY to a key of the service: `autoxrd serve` prints one.")
    headers = {"Authorization": f"Bearer {secret}", "Accept": "application/json", "User-Agent": "autoxrd-client"}
    # No redirect is followed: the key goes to the address that was given and nowhere else.
    return {"base_url": f"{where}/api/v1", "headers": headers, "timeout": timeout_seconds, "follow_redirects": False}
