"""What can be asked for here? Engines, profiles and schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from autoxrd.api.auth import Reader
from autoxrd.api.context import Context
from autoxrd.api.problems import responses
from autoxrd.domain.action import Action
from autoxrd.domain.state import FitState
from autoxrd.engines.registry import engine_names, get_engine
from autoxrd.errors import NotFound
from autoxrd.gates.policy import load_policy, policy_hash, shipped_policies
from autoxrd.jobs.modelling import planners_here
from autoxrd.jobs.request import JobRequest

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", tags=["catalogue"])


class EngineOut(BaseModel):
    """An engine; ``reason`` says why it cannot be used where it cannot."""

    name: str
    usable: bool
    version: str | None
    reason: str | None
    radiations: tuple[str, ...] = ()
    selectors: tuple[str, ...] = ()


class PolicyOut(BaseModel):
    """A policy that the service ships."""

    name: str
    sha256: str
    content: Mapping[str, Any]


class Profiles(BaseModel):
    """What a request may name."""

    policies: list[PolicyOut]
    planners: tuple[str, ...]


@router.get("/engines", responses=responses())
def get_engines(_: Reader) -> list[EngineOut]:
    """List the engines."""
    found = []
    for name in engine_names():
        engine = get_engine(name)
        usable, text = engine.available()
        what = engine.capabilities() if usable else None
        found.append(
            EngineOut(
                name=name,
                usable=usable,
                version=text if usable else None,
                reason=None if usable else text,
                radiations=tuple(what.radiations) if what else (),
                selectors=tuple(what.selectors) if what else (),
            )
        )
    return found


@router.get("/profiles", responses=responses())
def get_profiles(_: Reader, context: Context) -> Profiles:
    """List policies and planners."""
    policies = [load_policy(name) for name in shipped_policies()]
    return Profiles(
        policies=[PolicyOut(name=p.name, sha256=policy_hash(p), content=p.model_dump(mode="json")) for p in policies],
        planners=planners_here(context.settings),
    )


@router.get("/schemas", responses=responses())
def get_schemas(_: Reader) -> dict[str, str]:
    """List the JSON schemas."""
    return {name: f"/api/v1/schemas/{name}" for name in _SCHEMAS}


@router.get("/schemas/{name}", responses=responses(404))
def get_schema(_: Reader, name: str) -> dict[str, Any]:
    """Get a JSON schema."""
    if name not in _SCHEMAS:
        raise NotFound("schema_unknown", f"There is no schema {name!r:.60}; known are {', '.join(_SCHEMAS)}.")
    return _SCHEMAS[name]()


def _report() -> dict[str, Any]:
    from autoxrd.report.schema import schema_text  # renders the report's models: only when somebody asks

    schema: dict[str, Any] = json.loads(schema_text())
    return schema


def _graph() -> dict[str, Any]:
    from autoxrd.store.document import GraphDocument

    return GraphDocument.model_json_schema()


_SCHEMAS = {
    "request": JobRequest.model_json_schema,
    "action": Action.model_json_schema,
    "state": FitState.model_json_schema,
    "graph": _graph,
    "report": _report,
}
