"""Which files do the pages load? A fixed list, read from the package once; no name from outside becomes a path."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache
from importlib import resources

from fastapi import APIRouter, Request, Response

from autoxrd.errors import NotFound
from autoxrd.primitives import sha256_hex

__all__ = ["asset_url", "router"]

router = APIRouter(include_in_schema=False)

_OF_REPORT = ("plotly-basic.min.js", "plot.js", "trends.js", "report.css")
"""The report's own; the pages look and plot as it does."""
_OURS = ("web.css", "web.js", "submit.js", "job.js", "compare.js", "icon.svg")
_TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
_YEAR = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _Asset:
    data: bytes
    packed: bytes
    sha256: str


@cache
def _asset(name: str) -> _Asset:
    if name in _OF_REPORT:
        data = (resources.files("autoxrd.report") / "assets" / name).read_bytes()
    elif name in _OURS:
        data = (resources.files("autoxrd.web") / "static" / name).read_bytes()
    else:
        raise NotFound("not_found", f"There is no file {name!r:.60} of the pages.")
    return _Asset(data, gzip.compress(data, mtime=0), sha256_hex(data))


def asset_url(name: str) -> str:
    """Return the address of a file; it changes with the content, so that browsers may keep it."""
    return f"/static/{name}?v={_asset(name).sha256[:12]}"


@router.get("/static/{name}")
def get_asset(name: str, request: Request) -> Response:
    """Send a file of the pages; it tells nothing of anybody, so no key is asked for."""
    asset = _asset(name)
    headers = {"Cache-Control": _YEAR, "Vary": "Accept-Encoding", "ETag": f'"{asset.sha256}"'}
    packed = "gzip" in request.headers.get("accept-encoding", "")
    if packed:
        headers["Content-Encoding"] = "gzip"
    kind = _TYPES[name.rpartition(".")[2]]
    return Response(asset.packed if packed else asset.data, media_type=kind, headers=headers)
