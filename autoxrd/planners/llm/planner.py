"""How does a language model plan a job? It is asked at each step; everything it says passes the same gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autoxrd.domain.action import Action, ActionKind
from autoxrd.errors import PlannerError
from autoxrd.gates.policy import load_policy
from autoxrd.gates.policy_model import Policy
from autoxrd.planners.llm.answer import AnswerFinish
from autoxrd.planners.llm.desk import Desk
from autoxrd.planners.llm.dialogue import Dialogue, Told
from autoxrd.planners.llm.fencing import clean_text
from autoxrd.planners.llm.observation import label_of, labels
from autoxrd.planners.llm.ports import Bench, Exchange
from autoxrd.planners.llm.prompt import PROMPT_VERSION
from autoxrd.planners.llm.reviewing import reviewed
from autoxrd.planners.llm.settings import LlmSettings
from autoxrd.planners.llm.skill import SkillSource, no_skill
from autoxrd.planners.llm.standing import (
    best_state,
    focus_of,
    given_up,
    last_claim,
    place_of,
    queued_action,
)
from autoxrd.planners.protocol import Finish, Forfeit, GraphView, JobContext, Planner, Proposal
from autoxrd.planners.rules import RulesPlanner
from autoxrd.planners.rules.rivals import rival_note
from autoxrd.planners.rules.thresholds import Thresholds
from autoxrd.planners.rules.writing import joint_action

__all__ = ["LlmPlanner", "ModelDesk", "sourced"]


@dataclass(frozen=True, slots=True)
class ModelDesk:
    """What a planner that asks a model is given: the ports, and how to ask.

    Args:
        desk: takes the questions, keeps the exchanges.
        bench: serves measurements.
        settings: how to ask.
        skills: gives the skill of a stage.
    """

    desk: Desk
    bench: Bench
    settings: LlmSettings
    skills: SkillSource = no_skill

    def dialogue(self) -> Dialogue:
        """Return a dialogue on these ports."""
        return Dialogue(self.desk, self.bench, self.settings, self.skills)


class LlmPlanner:
    """Asks the model at every step, and the rules where the model cannot be had.

    It keeps nothing between two calls: what was asked and answered stands in the log.
    """

    name = "llm"
    version = PROMPT_VERSION

    def __init__(self, model: ModelDesk, rules: Planner | None = None) -> None:
        self._model = model
        self._rules = rules or RulesPlanner()

    def propose(self, view: GraphView, context: JobContext) -> Proposal | Finish | Forfeit:
        """Return the model's next move, checked; or the rules' where the model is out of reach or out of budget.

        Raises:
            PlannerError: ``model_unavailable``, the job asked to wait for the model; ``replay_prompt_differs``.
        """
        policy = context.policy or load_policy("default")
        self._model.desk.at(place_of(view))
        past = self._model.desk.past()
        gone = given_up(view, past, self._model.settings)
        if gone:
            return self._by_rules(view, context, gone)
        claim = last_claim(view, past)
        if claim is not None and claim.finish is not None:
            return self._finish(claim.finish, view, context, policy, ())
        queued = queued_action(view, past, policy)
        if queued is not None:
            return Proposal(queued.action, *sourced((queued.exchange,), rank=queued.rank))
        told = self._model.dialogue().next_move(view, focus_of(view), context, policy)
        return self._moved(told, view, context, policy)

    def _moved(self, told: Told, view: GraphView, context: JobContext, policy: Policy) -> Proposal | Finish | Forfeit:
        if told.actions:
            return Proposal(told.actions[0], *sourced(told.exchanges, rank=1))
        if told.finish is not None:
            return self._finish(told.finish, view, context, policy, told.exchanges)
        if told.silent:
            return self._silent(told, view, context)
        if told.refused is not None:  # it costs a step, with the reasons of the preflight on record
            return Proposal(told.refused, *sourced(told.exchanges, rank=1))
        faults = told.faults
        code = faults.code if faults else "answer_empty"
        text = "; ".join(faults.texts)[:400] if faults else "no answer"
        return Forfeit(code, f"The model's answer could not be used twice: {text}")

    def _silent(self, told: Told, view: GraphView, context: JobContext) -> Proposal | Finish | Forfeit:
        if self._model.settings.on_outage == "wait" and not told.silent.startswith("budget_"):
            raise PlannerError(
                "model_unavailable",
                f"The language model cannot be reached ({told.silent}); the job waits as it was told: "
                "resume it when the model is back.",
            )
        return self._by_rules(view, context, told.silent, told.exchanges)

    def _by_rules(
        self, view: GraphView, context: JobContext, why: str, exchanges: Sequence[Exchange] = ()
    ) -> Proposal | Finish | Forfeit:
        """Let the rules go on, and record that they did and why."""
        answer = self._rules.propose(view, context)
        if isinstance(answer, Proposal):
            source, files = sourced(exchanges, by=self._rules.name, why=why)
            return Proposal(answer.action, source, files)
        if isinstance(answer, Finish):
            note = ("planned_by_rules", f"The language model was not asked to the end ({why}); the rules went on.")
            return Finish(answer.state, answer.reason, (*answer.notes, note), answer.warnings, answer.objections)
        return answer

    def _finish(
        self,
        finish: AnswerFinish,
        view: GraphView,
        context: JobContext,
        policy: Policy,
        exchanges: Sequence[Exchange],
    ) -> Proposal | Finish | Forfeit:
        """Close with a joint cycle, then with the final review."""
        claimed = labels(view).get(finish.state, view.root)
        state = best_state(claimed, view, policy)
        closing = closing_joint(state, view)
        if closing is not None:
            return Proposal(closing, *sourced(exchanges, why="closing_joint"))
        state = _after_joint(state, view)
        notes = [("planner_reason", clean_text(finish.reason, 400))]
        notes += [("planner_caveat", clean_text(text, 300)) for text in finish.caveats[:5]]
        if claimed not in (state, _before_joint(state, view)):
            shown = label_of(state, view)
            notes.append(("claim_overruled", f"The model named {finish.state}; {shown} is worth more by the policy."))
        rivals = rival_note(state, view, Thresholds())
        notes += [rivals] if rivals else []  # what the data cannot tell apart is told whoever planned
        ended = Finish(state, "The language model ended the job.", tuple(notes))
        return reviewed(ended, view, context, policy, self._model.dialogue(), claim=finish.claim)


def closing_joint(state: str, view: GraphView) -> Action | None:
    """Return the joint cycle that ends a job, None where it was tried or nothing is free."""
    path = view.path(state)
    if path and path[-1].action.kind is ActionKind.JOINT:
        return None
    if any(a.action.kind is ActionKind.JOINT for a in view.children(state)) or not view.states[state].released:
        return None
    return joint_action(view.states[state], state, view.states[state].released)


def _after_joint(state: str, view: GraphView) -> str:
    """Return the accepted joint cycle's state that follows a state, else the state."""
    joints = [a.candidate for a in view.children(state) if a.accepted and a.action.kind is ActionKind.JOINT]
    return next((candidate for candidate in joints if candidate), state)


def _before_joint(state: str, view: GraphView) -> str:
    """Return the state that a closing joint cycle started from, else the state."""
    path = view.path(state)
    return path[-1].parent if path and path[-1].action.kind is ActionKind.JOINT else state


def sourced(
    exchanges: Sequence[Exchange], *, by: str = "model", why: str = "", rank: int = 0
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return what an edge says of where its action came from, and the artifacts of the exchanges behind it."""
    source: dict[str, Any] = {"proposed_by": by}
    if why:
        source["why"] = why
    if rank:
        source["rank"] = rank
    if exchanges:
        last = exchanges[-1]
        source["model"] = last.reply.model if last.reply else last.request.model
        source["prompt"] = last.prompt_hash
        if last.skill:
            source["skill"] = dict(last.skill)
    return source, {f"exchange.{number}": e.artifact for number, e in enumerate(exchanges, start=1)}
