"""How does a person's word become a step? Through the controller and its gates, marked as a person's in the graph."""

from __future__ import annotations

import json

from autoxrd.agent.controller import Controller, Stopped
from autoxrd.agent.stepping import read_action
from autoxrd.domain.action import Action
from autoxrd.errors import NotFound, PolicyError, UserInputError
from autoxrd.planners.dictated import Dictated
from autoxrd.planners.protocol import Proposal
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.reviews import Decision, ReviewView

__all__ = ["ask_first", "take_answer"]

REJECTED = "rejected_by_person"


def ask_first(graph: JobGraph, controller: Controller, planner: str) -> Stopped | bool:
    """Let the planner propose, and put its action before a person.

    Args:
        graph: the job's graph, leased.
        controller: of the job.
        planner: who proposes, for the record.

    Returns:
        The end of the job where the planner sees one; True where a person was asked, False where the step was lost.
    """
    wanted = controller.proposed()
    if isinstance(wanted, Proposal):
        source = {**wanted.source, "proposed_by": planner}
        graph.ask_review(wanted.action.model_dump(mode="json"), source=source, files=wanted.files)
        return True
    return False if wanted is None else wanted


def take_answer(graph: JobGraph, controller: Controller, said: ReviewView) -> Stopped | None:
    """Do what a person said, as one step of the job.

    An action that does not fit the graph any more is refused, and the job goes on; what the gates say against one is
    recorded like any other rejection.
    """
    over = controller.over_budget()
    if over is not None:
        graph.refuse_review(said.id, over.code)
        return over
    try:
        action = read_action(json.dumps(dict(said.action)), graph)
        if graph.node(action.parent).status.value == "rejected":
            raise PolicyError("parent_rejected", f"State {action.parent} was rejected.")
    except (UserInputError, NotFound, PolicyError) as error:
        graph.refuse_review(said.id, f"{error.code}: {error.detail}")
        return None
    with graph.settling(said.id):
        _taken(controller, said, action)
    return None


def _taken(controller: Controller, said: ReviewView, action: Action) -> None:
    source = {**said.source, "review": said.decision}
    proposal = Proposal(action, source=source, files=said.files)
    author = Dictated(action, "person")
    if said.decision == Decision.REJECT:
        controller.decline(proposal, author, code=REJECTED, text=said.note or "A person rejected this step.")
    else:
        controller.take(proposal, author)
