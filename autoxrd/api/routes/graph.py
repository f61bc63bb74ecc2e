"""The decision graph of a job: steps in pages, and single states whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from autoxrd.api.auth import OwnJob
from autoxrd.api.context import Context
from autoxrd.api.models import StepList, StepOut
from autoxrd.api.problems import responses
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.steps import list_steps

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/jobs/{job_id}", tags=["graph"])


class StateOut(BaseModel):
    """A state whole: figures, features, violations, parameters, phases, artifacts."""

    id: str
    ordinal: int
    parent: str | None
    status: str
    content_hash: str
    chain_hash: str
    state: Mapping[str, Any]


@router.get("/graph", responses=responses(404))
def get_graph(
    job: OwnJob,
    context: Context,
    after: Annotated[int, Query(ge=-1, le=999_999_999, description="Ordinal of the last step seen.")] = -1,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> StepList:
    """List the steps of a job in the order of recording; nodes are their `state`, edges lead there from `parent`."""
    page = list_steps(context.database, job.id, after=after, limit=limit)
    return StepList(steps=[StepOut.model_validate(step) for step in page.steps], next_cursor=page.next_cursor)


@router.get("/states/{state_id}", responses=responses(404))
def get_state(job: OwnJob, context: Context, state_id: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]) -> StateOut:
    """Look at one state."""
    node = JobGraph.open(context.database, job.id).node(state_id)
    return StateOut(
        id=node.id,
        ordinal=node.ordinal,
        parent=node.parent,
        status=node.status.value,
        content_hash=node.content_hash,
        chain_hash=node.chain_hash,
        state=node.state.model_dump(mode="json"),
    )
