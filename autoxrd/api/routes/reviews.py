"""Review: a person accepts or rejects the step that a planner asked about, or adds an action of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from autoxrd.api.auth import OwnJob, Writer
from autoxrd.api.context import Context
from autoxrd.api.problems import responses
from autoxrd.domain.action import Action
from autoxrd.store.service.reviews import Answer, Decision, answer, list_reviews

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/jobs/{job_id}", tags=["review"])

_Note = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]


class Verdict(BaseModel):
    """Yes or no to the step that the planner asked about."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["accept", "reject"]
    note: _Note = ""


class Addition(BaseModel):
    """An action of a person's own.

    `action` is as `GET /api/v1/schemas/action` says; `parent` and the evidence's `source` may be `root` or `current`.
    """

    model_config = ConfigDict(extra="forbid")

    decision: Literal["add"]
    action: dict[str, Any]
    note: _Note = ""


class ReviewOut(BaseModel):
    """A question or an answer; `attempt` is the ordinal of the step that it became, `reason` why it was refused."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    status: Literal["asked", "answered", "done", "refused", "withdrawn"]
    decision: str | None
    action: Mapping[str, Any]
    note: str
    attempt: int | None
    reason: str | None
    created_at: str
    answered_at: str | None


@router.get("/reviews", responses=responses(404))
def get_reviews(job: OwnJob, context: Context) -> list[ReviewOut]:
    """List what was asked about the steps of a job, and what was said."""
    return [ReviewOut.model_validate(review) for review in list_reviews(context.database, job.id)]


@router.post("/review", status_code=202, responses=responses(404, 409))
def review(
    job_id: str,
    context: Context,
    identity: Writer,
    said: Annotated[Verdict | Addition, Field(discriminator="decision")],
) -> ReviewOut:
    """Accept or reject the step that the planner asked about, or add an action.

    It becomes the job's next step, through the same gates as a planner's, and is marked as a person's in the graph. A
    job that waited for it goes on; one that a person paused takes it when it is resumed.
    """
    action = _checked(said.action) if isinstance(said, Addition) else None
    wanted = Answer(Decision(said.decision), action, said.note)
    found = answer(context.database, job_id, identity.owner_id, wanted, actor=identity.actor)
    context.nudge()
    return ReviewOut.model_validate(found)


def _checked(action: dict[str, Any]) -> dict[str, Any]:
    """Say at once what is wrong with the form; whether the states are there is looked up when it is taken."""
    anywhere = "0" * 16
    placed = {**action, "parent": anywhere}
    if isinstance(action.get("evidence"), list):
        placed["evidence"] = [{**c, "source": anywhere} if isinstance(c, dict) else c for c in action["evidence"]]
    try:
        Action.model_validate(placed)
    except ValidationError as error:
        found = [{**e, "loc": ("body", "action", *e["loc"])} for e in error.errors(include_url=False)]
        raise RequestValidationError(found) from error
    return {"parent": "current", **action}
