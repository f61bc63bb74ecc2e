"""Is the service well? Liveness, readiness and metrics."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from autoxrd import __version__
from autoxrd.api.auth import MetricsReader
from autoxrd.api.context import Context
from autoxrd.api.problems import responses
from autoxrd.store.service.listing import count_states

__all__ = ["router"]

router = APIRouter(tags=["health"])


@router.get("/healthz")
def healthz() -> dict[str, str]:
    """Say that the process lives."""
    return {"status": "ok", "version": __version__}


@router.get("/readyz", responses={503: responses()[503]})
def readyz(context: Context) -> dict[str, str]:
    """Say that requests can be served: the database answers."""
    context.database.ping()
    return {"status": "ok"}


@router.get("/metrics", response_class=Response, responses=responses())
def metrics(context: Context, _: MetricsReader) -> Response:
    """Expose the metrics for Prometheus; the key needs the scope `metrics:read`."""
    text = context.metrics.exposition(count_states(context.database))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
