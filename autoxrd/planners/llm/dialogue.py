"""How is one decision asked for? Question, measurements on request, one repair; then a move or a named failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from autoxrd.domain.action import Action
from autoxrd.gates.policy_model import Policy
from autoxrd.planners.llm.answer import Answer, AnswerFinish, AnswerRequest, Faults, Review, read_answer
from autoxrd.planners.llm.desk import Desk
from autoxrd.planners.llm.legal import legal_from
from autoxrd.planners.llm.moves import check_actions
from autoxrd.planners.llm.observation import labels, observe
from autoxrd.planners.llm.ports import Bench, Exchange
from autoxrd.planners.llm.prompt import (
    Message,
    answered,
    faults_message,
    first_messages,
    measured_message,
    request_for,
)
from autoxrd.planners.llm.schema import ANSWER_NAME, MEASUREMENTS, PLOT, REVIEW_NAME, answer_schema, review_schema
from autoxrd.planners.llm.settings import LlmSettings
from autoxrd.planners.llm.skill import SkillSource, skill_record
from autoxrd.planners.protocol import GraphView, JobContext

__all__ = ["Dialogue", "Told"]

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Told:
    """What a dialogue came to; one of the fields says it.

    Args:
        exchanges: what was asked and answered, in order.
        actions: legal actions in the model's order.
        finish: the model wants to end.
        review: the model's review of a result.
        silent: code of why no answer came (an outage's or a budget's).
        faults: why the last answer cannot be used.
        refused: a well-formed action that preflight refuses.
    """

    exchanges: tuple[Exchange, ...]
    actions: tuple[Action, ...] = ()
    finish: AnswerFinish | None = None
    review: Review | None = None
    silent: str = ""
    faults: Faults | None = None
    refused: Action | None = None


class Dialogue:
    """Asks for one decision.

    Args:
        desk: takes the questions.
        bench: serves the measurements.
        settings: how to ask.
        skills: gives the skill of a stage.
    """

    def __init__(self, desk: Desk, bench: Bench, settings: LlmSettings, skills: SkillSource) -> None:
        self._desk = desk
        self._bench = bench
        self._settings = settings
        self._skills = skills

    def next_move(
        self, view: GraphView, state_id: str, context: JobContext, policy: Policy, *, situation: str = ""
    ) -> Told:
        """Ask what to do from a state."""
        line = {state_id, *(step.parent for step in view.path(state_id))}
        tried = tuple(a.action for a in view.attempts if a.parent in line and not a.accepted)
        legal = legal_from(view.states[state_id], policy, tried)
        skill = self._skills(legal.stage)
        schema = answer_schema(legal, vision=self._settings.vision)
        messages = first_messages(
            "system",
            observe(view, state_id, legal, context, policy),
            skill=skill.text if skill else "",
            situation=situation,
        )
        talk = _Talk(self, state_id, schema, ANSWER_NAME, messages, skill_record(skill))
        return self._converse(talk, view, policy)

    def _converse(self, talk: _Talk, view: GraphView, policy: Policy) -> Told:
        repaired, measured, purpose = False, 0, "step"
        while True:
            exchange = talk.ask(purpose)
            if exchange.reply is None:
                return Told(talk.done, silent=exchange.outcome)
            told = self._judge(read_answer(exchange.reply, ANSWER_NAME, Answer), talk.done, view, policy)
            if isinstance(told, AnswerRequest):
                if measured < self._settings.measurements_per_step:
                    measured, purpose = measured + 1, "measured"
                    talk.say(answered(exchange.reply), self._measured(told, talk.state_id, view))
                    continue
                limit = f"no more than {measured} measurements a step; propose or finish"
                told = Told(talk.done, faults=Faults("measurement_limit", (limit,)))
            if told.faults is None or repaired:
                return told
            repaired, purpose = True, "repair"
            talk.say(answered(exchange.reply), faults_message(told.faults))

    def _judge(
        self, answer: Answer | Faults, done: tuple[Exchange, ...], view: GraphView, policy: Policy
    ) -> Told | AnswerRequest:
        if isinstance(answer, Faults):
            return Told(done, faults=answer)
        if answer.request is not None and answer.move == "request":
            return answer.request
        if answer.finish is not None and answer.move == "finish":
            if answer.finish.state not in labels(view):
                known = ", ".join(list(labels(view))[-12:])
                return Told(done, faults=Faults("unknown_name", (f"there is no such state; states are {known}",)))
            return Told(done, finish=answer.finish)
        checked = check_actions(list(answer.actions or ()), view, policy)
        if checked.legal:
            return Told(done, actions=checked.legal)
        return Told(done, faults=checked.faults, refused=checked.illegal[0] if checked.illegal else None)

    def _measured(self, request: AnswerRequest, state_id: str, view: GraphView) -> Message:
        """Serve a measurement; a name that is not there is told, not guessed."""
        named = labels(view)
        arguments: dict[str, Any] = {}
        state = state_id if request.state is None else named.get(request.state, "")
        if request.other_state is not None:
            arguments["other_state"] = named.get(request.other_state, "")
        for name in ("lower_deg", "upper_deg", "prefix"):
            if getattr(request, name) is not None:
                arguments[name] = getattr(request, name)
        offered = (*MEASUREMENTS, *((PLOT,) if self._settings.vision else ()))
        what = request.what if request.what in offered else "unknown"
        return measured_message(what, self._bench.measure(state, what, arguments))

    def review(self, state_id: str, content: Mapping[str, Any]) -> Told:
        """Ask for the last word on a result."""
        messages = first_messages("review", content)
        talk = _Talk(self, state_id, review_schema(), REVIEW_NAME, messages, {})
        repaired = False
        while True:
            exchange = talk.ask("review")
            if exchange.reply is None:
                return Told(talk.done, silent=exchange.outcome)
            review = read_answer(exchange.reply, REVIEW_NAME, Review)
            if isinstance(review, Review):
                return Told(talk.done, review=review)
            if repaired:
                return Told(talk.done, faults=review)
            repaired = True
            talk.say(answered(exchange.reply), faults_message(review))

    def question(self, talk: _Talk, purpose: str) -> Exchange:
        """Put the question of a talk as it stands."""
        request = request_for(purpose, talk.messages, talk.schema, talk.name, self._settings, self._desk.mode())
        return self._desk.ask(request, state=talk.state_id, skill=talk.skill)


class _Talk:
    """The messages of one dialogue, growing."""

    def __init__(
        self,
        dialogue: Dialogue,
        state_id: str,
        schema: Mapping[str, Any],
        name: str,
        messages: Sequence[Message],
        skill: Mapping[str, str],
    ) -> None:
        self._dialogue = dialogue
        self.state_id = state_id
        self.schema = schema
        self.name = name
        self.messages = list(messages)
        self.skill = skill
        self.done: tuple[Exchange, ...] = ()

    def ask(self, purpose: str) -> Exchange:
        exchange = self._dialogue.question(self, purpose)
        self.done = (*self.done, exchange)
        return exchange

    def say(self, *messages: Message) -> None:
        self.messages += messages
