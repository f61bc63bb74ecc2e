"""Where does a job stand? Read off the graph and the log of exchanges, so that a planner needs no memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autoxrd.domain.action import Action, ActionKind
from autoxrd.gates.policy_model import Policy
from autoxrd.gates.utility import utility
from autoxrd.planners.llm.answer import Answer, read_answer
from autoxrd.planners.llm.budget import BUDGET_CODES
from autoxrd.planners.llm.moves import check_actions
from autoxrd.planners.llm.ports import Exchange, Place
from autoxrd.planners.llm.schema import ANSWER_NAME
from autoxrd.planners.llm.settings import LlmSettings
from autoxrd.planners.protocol import GraphView

__all__ = ["Queued", "best_state", "focus_of", "given_up", "last_claim", "place_of", "queued_action"]

OUTAGES_ALLOWED = 2
"""Questions in a row without an answer after which the rules do the rest of the job."""


@dataclass(frozen=True, slots=True)
class Queued:
    """The next action of a ranked list that was given earlier."""

    action: Action
    rank: int
    exchange: Exchange


def place_of(view: GraphView) -> Place:
    """Return where the job stands."""
    return Place(len(view.attempts), view.forfeits)


def focus_of(view: GraphView) -> str:
    """Return the state that is worked on: the last accepted candidate, or the parent of the last refused attempt."""
    if not view.attempts:
        return view.root
    last = view.attempts[-1]
    return last.candidate if last.accepted and last.candidate else last.parent


def given_up(view: GraphView, past: Sequence[Exchange], settings: LlmSettings) -> str:
    """Return why the model is asked no more in this job, empty while it is.

    A budget that is spent stays spent; after `OUTAGES_ALLOWED` questions without an answer the provider counts as out,
    after ``forfeits_allowed`` steps lost in a row the model counts as unusable.
    """
    asked = [exchange for exchange in past if exchange.request.purpose != "review"]
    spent = next((e.outcome for e in asked if e.outcome in BUDGET_CODES), "")
    if spent:
        return spent
    last = asked[-OUTAGES_ALLOWED:]
    if len(last) == OUTAGES_ALLOWED and not any(exchange.answered for exchange in last):
        return "model_unavailable"
    return "model_unusable" if _lost_in_a_row(view, asked) >= settings.forfeits_allowed else ""


def _lost_in_a_row(view: GraphView, asked: Sequence[Exchange]) -> int:
    """Return the longest run of steps that the model lost without one that it used in between.

    Forfeit number f was made at the last place that has f forfeits before it; any other place with as many was a
    step that the model used.
    """
    longest = run = 0
    for forfeit in range(view.forfeits):
        used = len({e.place for e in asked if e.place.forfeits == forfeit}) - 1
        run = 1 if used > 0 else run + 1
        longest = max(longest, run)
    return longest


def queued_action(view: GraphView, past: Sequence[Exchange], policy: Policy) -> Queued | None:
    """Return the next of a ranked list while all before it were refused, None where there is none.

    Read from the last answer on record: the list is checked anew against the graph as it is.
    """
    last = next((e for e in reversed(past) if e.answered and e.request.purpose != "review"), None)
    if last is None or last.place.forfeits != view.forfeits or last.reply is None:
        return None
    since = view.attempts[last.place.attempts :]
    if not since or any(attempt.accepted for attempt in since):
        return None
    answer = read_answer(last.reply, ANSWER_NAME, Answer)
    if not isinstance(answer, Answer) or answer.move != "propose" or not answer.actions:
        return None
    tried = len(since)
    left = answer.actions[tried:]
    if not left or since[-1].parent != since[0].parent:
        return None
    checked = check_actions(list(left), view, policy)
    same = [action for action in checked.legal if action.parent == since[0].parent]
    return Queued(same[0], tried + 1, last) if same else None


def last_claim(view: GraphView, past: Sequence[Exchange]) -> Answer | None:
    """Return the model's ``finish`` if nothing but the closing joint cycle was tried since, else None."""
    last = next((e for e in reversed(past) if e.request.purpose != "review"), None)
    if last is None or last.reply is None:
        return None
    since = view.attempts[last.place.attempts :]
    if not since or last.place.forfeits != view.forfeits:
        return None
    if any(attempt.action.kind is not ActionKind.JOINT for attempt in since):
        return None
    answer = read_answer(last.reply, ANSWER_NAME, Answer)
    return answer if isinstance(answer, Answer) and answer.finish is not None and answer.move == "finish" else None


def best_state(claimed: str, view: GraphView, policy: Policy) -> str:
    """Return the state that stands for the result: the claimed one unless another is worth clearly more.

    A model may prefer one of two equal branches; it cannot make a poor state the result.
    """
    accepted = dict.fromkeys([view.root, *(a.candidate for a in view.attempts if a.accepted and a.candidate)])
    worth = {state: utility(view.states[state], policy=policy) for state in accepted}
    best = max(worth, key=lambda state: worth[state])
    if claimed in worth and worth[best] - worth[claimed] <= policy.utility.joint_slack:
        return claimed
    return best
