"""Who answers a question: the record, where it holds the answer already; else the model, within its budget.

A question has a place: after so many attempts and lost steps, and the how-manieth there. A job that goes on after an
interruption finds its last answers in its own log; a replay finds all of them in the log of the job it repeats.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from autoxrd.errors import PlannerError
from autoxrd.planners.llm.budget import BUDGET_CODES, over_budget, spent_on
from autoxrd.planners.llm.ports import (
    Exchange,
    ExchangeLog,
    ModelClient,
    ModelFailure,
    ModelReply,
    ModelRequest,
    Place,
    Price,
)
from autoxrd.planners.llm.settings import LlmSettings
from autoxrd.primitives import content_hash

__all__ = ["Desk", "Waits"]


@dataclass(frozen=True, slots=True)
class Waits:
    """Clock, sleep and chance, so that a test can do without them."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


class Desk:
    """Takes questions and keeps every exchange.

    Args:
        log: the job's own log.
        settings: how to ask.
        client: the model; None in a replay.
        source: the exchanges of the job that is replayed, None for a live job.
        waits: clock and sleep.
    """

    def __init__(
        self,
        log: ExchangeLog,
        settings: LlmSettings,
        client: ModelClient | None,
        *,
        source: Sequence[Exchange] | None = None,
        waits: Waits | None = None,
    ) -> None:
        self._log = log
        self._settings = settings
        self._client = client
        self._source = source
        self._waits = waits or Waits()
        self._place = Place(0, 0)
        self._asked = 0

    def past(self) -> Sequence[Exchange]:
        """Return the exchanges of this job so far."""
        return self._log.past()

    def at(self, place: Place) -> None:
        """Say where the next questions are asked; the first of them is looked for in the record first."""
        self._place = place
        self._asked = 0

    def mode(self) -> str:
        """Return the form of answer: as set, as recorded in this job, or the strictest that the provider has."""
        if self._settings.answer != "auto":
            return self._settings.answer
        for exchange in (*self._log.past(), *(self._source or ())):
            return exchange.request.mode
        return self._live().mode()

    def ask(self, request: ModelRequest, *, state: str, skill: Mapping[str, str]) -> Exchange:
        """Return the recorded exchange of this place, or make one.

        Raises:
            PlannerError: ``replay_prompt_differs``, ``replay_exhausted``.
        """
        own = self._recorded(self._log.past())
        number = self._asked
        self._asked += 1
        if number < len(own):
            return _same(own[number], request)
        if self._source is not None:
            recorded = self._recorded(self._source)
            if number >= len(recorded):
                raise PlannerError(
                    "replay_exhausted",
                    f"The record holds no answer for question {number + 1} after {self._place.attempts} attempts: "
                    "the job was interrupted there, or its input, engine or rules were others.",
                )
            return self._log.add(_same(recorded[number], request))
        return self._log.add(self._live_exchange(request, state, skill))

    def _recorded(self, log: Sequence[Exchange]) -> list[Exchange]:
        here = [exchange for exchange in log if exchange.place == self._place]
        if self._settings.on_outage == "wait":  # an outage is waited for, so it is no answer
            return [e for e in here if e.answered or e.outcome in BUDGET_CODES]
        return here

    def _live(self) -> ModelClient:
        if self._client is None:
            raise PlannerError("model_missing", "No language model is connected; give --model, or replay a record.")
        return self._client

    def _live_exchange(self, request: ModelRequest, state: str, skill: Mapping[str, str]) -> Exchange:
        client = self._live()
        prompt_tokens, price = client.count_tokens(request), client.price()
        bound = prompt_tokens + request.max_tokens
        exchange = Exchange(
            place=self._place,
            state=state,
            request=request,
            prompt_hash=content_hash(request.as_dict()),
            outcome="",
            skill=skill,
            token_bound=bound,
        )
        began = self._waits.clock()
        outcome, reply, tries = self._tries(client, request, prompt_tokens, price, exchange)
        seconds = self._waits.clock() - began
        return replace(exchange, outcome=outcome, reply=reply, tries=tuple(tries), seconds=seconds)

    def _tries(
        self, client: ModelClient, request: ModelRequest, prompt_tokens: int, price: Price | None, exchange: Exchange
    ) -> tuple[str, ModelReply | None, list[str]]:
        """Send until an answer comes, the failure is final, or the budget or the tries are spent.

        A loop of our own: a repetition must be counted, budgeted and recorded, which no retry library does.
        """
        tries: list[str] = []
        began = self._waits.clock()
        for number in range(self._settings.tries):
            so_far = replace(exchange, tries=tuple(tries), seconds=self._waits.clock() - began)
            spent = spent_on((*self._log.past(), so_far))
            budget = self._settings.budget
            code = over_budget(
                budget, spent, prompt_tokens=prompt_tokens, answer_tokens=request.max_tokens, price=price
            )
            if code is not None:
                return code, None, tries
            try:
                room = min(self._settings.timeout_seconds, budget.seconds - spent.seconds)
                reply = client.send(request, room)
            except ModelFailure as failure:
                tries.append(failure.code)
                if not failure.again or number + 1 == self._settings.tries:
                    return failure.code, None, tries
                self._waits.sleep(self._pause(number, failure.retry_after_seconds, budget.seconds - spent.seconds))
            else:
                return "answered", reply, [*tries, "answered"]
        return "unreachable", None, tries  # pragma: no cover  # tries >= 1

    def _pause(self, number: int, asked_for: float | None, left: float) -> float:
        """Return the pause before the next try: as the server asks, else doubling, with jitter, and bounded."""
        pause = self._settings.first_pause_seconds * 2.0**number * (0.5 + self._waits.chance())
        if asked_for is not None:
            pause = max(asked_for, 0.0) + 0.1 * self._waits.chance()
        return max(0.0, min(pause, self._settings.longest_pause_seconds, left))


def _same(recorded: Exchange, request: ModelRequest) -> Exchange:
    """Return a recorded exchange if it answers this very question."""
    if recorded.prompt_hash != content_hash(request.as_dict()):
        raise PlannerError(
            "replay_prompt_differs",
            f"The question after {recorded.place.attempts} attempts is not the one on record (prompt "
            f"{recorded.prompt_hash[:12]}): the input, the engine, the skills or this program changed. Refine anew.",
        )
    return recorded
