"""A person's word in a job: yes or no to what the planner asks, or a step of one's own, through the same gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse

from autoxrd.api.context import ApiContext, Context
from autoxrd.domain.action import Action
from autoxrd.domain.lifecycle import FINAL, JobState
from autoxrd.errors import NotFound, UserInputError
from autoxrd.report.words import kind_words
from autoxrd.store.service.database import Database
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.keys import Identity, Scope
from autoxrd.store.service.listing import JobView
from autoxrd.store.service.reviews import Answer, Decision, ReviewView, answer, list_reviews
from autoxrd.web.guard import OwnJob, Visitor, believed_form
from autoxrd.web.rendering import PageRoute

if TYPE_CHECKING:
    from autoxrd.agent.drafting import Idea

__all__ = ["Review", "asked_of", "router"]

router = APIRouter(prefix="/jobs/{job_id}", route_class=PageRoute, include_in_schema=False)

MOST_NOTE = 1000
MOST_IDEAS = 40


@dataclass(frozen=True, slots=True)
class Review:
    """What a person can say of a job now.

    Args:
        question: the action that the planner asks about, with its title; None where it asks nothing.
        ideas: what could be freed in the current state, with the title of its kind.
        latest: what became of the last thing that somebody said.
    """

    question: tuple[str, Action] | None
    ideas: tuple[tuple[str, Idea], ...]
    latest: ReviewView | None


def asked_of(database: Database, job: JobView) -> Review | None:
    """Return what a person can say of a job; None where it is over or has no state yet."""
    if JobState(job.state) in FINAL or job.state == JobState.CANCELLING or job.current_state is None:
        return None
    from autoxrd.agent.drafting import ideas  # the rules and their science: only for a job that is under way

    said = list_reviews(database, job.id)
    asked = next((review for review in reversed(said) if review.status == "asked"), None)
    question = None
    if asked is not None:
        action = Action.model_validate(dict(asked.action))
        question = (kind_words(action.kind), action)
    found = ideas(JobGraph.open(database, job.id).state(job.current_state))[:MOST_IDEAS]
    latest = next((review for review in reversed(said) if review.status in {"answered", "done", "refused"}), None)
    return Review(question, tuple((kind_words(idea.kind), idea) for idea in found), latest)


@router.post("/review")
async def say(job: OwnJob, request: Request, context: Context, visit: Visitor) -> Response:
    """Accept or reject what the planner asks, or add a step."""
    visit.require(Scope.WRITE)
    form = await believed_form(request, visit)
    await run_in_threadpool(_said, job, form, context, visit.identity)
    context.nudge()
    return RedirectResponse(f"/jobs/{job.id}", status_code=303)


def _said(job: JobView, form: FormData, context: ApiContext, identity: Identity) -> None:
    note = str(form.get("note", "")).strip()[:MOST_NOTE]
    if not all(char.isprintable() or char in "\n\r\t" for char in note):
        raise UserInputError("note_invalid", "The note is printable text.")
    decision = str(form.get("decision", ""))
    if decision not in set(Decision):
        raise UserInputError("decision_unknown", "Accept, reject, or add a step.")
    action = None
    if decision == Decision.ADD:
        action = _drafted(context.database, job, [str(text) for text in form.getlist("selectors")], note)
    answer(context.database, job.id, identity.owner_id, Answer(Decision(decision), action, note), actor=identity.actor)


def _drafted(database: Database, job: JobView, selectors: list[str], why: str) -> dict[str, object]:
    """Write the action that frees what was ticked; evidence and predictions come from the record, as a planner's do."""
    from autoxrd.agent.drafting import draft_from, ideas

    if job.current_state is None:
        raise NotFound("root_missing", "The job has no state yet: wait for its first fit.")
    graph = JobGraph.open(database, job.id)
    known = {idea.selector: idea.kind for idea in ideas(graph.state(job.current_state))}
    kinds = {known.get(selector) for selector in selectors}
    if not selectors or None in kinds:
        raise UserInputError("draft_impossible", "Tick what the step shall free; the list is of the current state.")
    if len(kinds) > 1:
        raise UserInputError("draft_impossible", "A step frees things of one kind: take the others in the next one.")
    (kind,) = kinds
    drafted = draft_from(graph, str(kind), selectors, why=why or "Chosen by hand", state=job.current_state)
    assert drafted.action is not None
    return drafted.action.model_dump(mode="json")
