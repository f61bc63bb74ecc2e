"""How is the REST application put together? Routers, error handlers and middleware around one context."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from autoxrd import __version__
from autoxrd.api import problems
from autoxrd.api.context import ApiContext
from autoxrd.api.observing import Observing
from autoxrd.api.routes import (
    audit,
    catalogue,
    control,
    events,
    files,
    graph,
    health,
    jobs,
    keys,
    links,
    reviews,
    webhooks,
)
from autoxrd.jobs.request import JobRequest

__all__ = ["create_api", "openapi_document"]

ROUTERS = (
    jobs.router,
    control.router,
    events.router,
    reviews.router,
    graph.router,
    files.router,
    catalogue.router,
    keys.router,
    webhooks.router,
    links.router,
    audit.router,
    health.router,
)


def create_api(context: ApiContext, **settings: Any) -> FastAPI:
    """Build the application.

    Args:
        context: what its requests work with.
        settings: passed on to FastAPI (a lifespan, for instance).
    """
    app = FastAPI(
        title="AutoXRD",
        version=__version__,
        summary="Autonomous Rietveld refinement that can show why it did each thing.",
        docs_url=None,  # their pages load scripts from elsewhere, and this service works offline
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        separate_input_output_schemas=False,
        **settings,
    )
    app.state.context = context
    for router in ROUTERS:
        app.include_router(router)
    problems.add_handlers(app)
    app.add_middleware(Observing, metrics=context.metrics, max_body_bytes=context.settings.max_upload_bytes)
    _document(app)
    return app


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with the schemas that routes refer to by name."""
    return app.openapi()


def _document(app: FastAPI) -> None:
    """Add the schemas that no route names as a Python type: the error, and the request inside a multipart body."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for model in (problems.Problem, JobRequest):
            schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(schema.pop("$defs", {}))
            schemas[model.__name__] = schema
        return document

    app.openapi = openapi  # type: ignore[method-assign]
