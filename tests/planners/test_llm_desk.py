"""Who answers, how often it is tried, what it may cost, and what is left of it in the record."""

from __future__ import annotations

from typing import Any

import pytest

from autoxrd.errors import PlannerError, UserInputError
from autoxrd.planners.llm.budget import over_budget, spent_on
from autoxrd.planners.llm.desk import Desk, Waits
from autoxrd.planners.llm.ports import Exchange, ModelFailure, ModelReply, ModelRequest, Place, Price
from autoxrd.planners.llm.settings import LlmBudget, LlmSettings, parse_budget, settings_from
from tests.support.llm_desk import MemoryLog, Reply, ScriptedClient, no_waits

LIMITED = ModelFailure("rate_limited", "wait", again=True, retry_after_seconds=7.0)
DOWN = ModelFailure("server_error", "down", again=True)
REFUSED = ModelFailure("request_refused", "no", again=False)


def _settings(**changes: Any) -> LlmSettings:
    return settings_from({"model": "openai/stub", "answer": "tool", **changes})


def _request(text: str = "x") -> ModelRequest:
    return ModelRequest("step", "openai/stub", ({"role": "user", "content": text},), {}, "answer", "tool", 0.0, 1, 500)


def _desk(replies: list[Reply], pauses: list[float] | None = None, **settings: Any) -> tuple[Desk, MemoryLog]:
    log, left = MemoryLog(), list(replies)
    client = ScriptedClient(lambda _: left.pop(0), settings.pop("usd_per_token", None))
    return Desk(log, _settings(**settings), client, waits=no_waits(pauses)), log


def _ask(desk: Desk, text: str = "x") -> Exchange:
    return desk.ask(_request(text), state="s", skill={})


def test_an_outage_is_tried_again_with_growing_pauses_and_jitter() -> None:
    pauses: list[float] = []
    desk, log = _desk([DOWN, DOWN, {"move": "x"}], pauses)
    exchange = _ask(desk)
    assert exchange.tries == ("server_error", "server_error", "answered")
    assert pauses == [2.0, 4.0]  # first pause times 0.5 + chance, chance = 0.5
    assert log.exchanges == [exchange]


def test_a_server_that_asks_for_a_pause_gets_it_up_to_a_limit() -> None:
    pauses: list[float] = []
    desk, _ = _desk([LIMITED, ModelFailure("rate_limited", "", again=True, retry_after_seconds=9000.0), "{}"], pauses)
    assert _ask(desk).outcome == "answered"
    assert pauses == [pytest.approx(7.05), 60.0]


def test_a_refusal_is_final_and_tries_are_limited() -> None:
    desk, _ = _desk([REFUSED])
    assert _ask(desk).tries == ("request_refused",)
    desk, _ = _desk([DOWN] * 9)
    assert _ask(desk).tries == ("server_error",) * 4


@pytest.mark.parametrize(
    ("budget", "code"),
    [
        ({"calls": 1}, "budget_calls"),
        ({"tokens": 2500}, "budget_tokens"),
        ({"usd": 0.002}, "budget_usd"),
        ({"seconds": 1.0}, "budget_seconds"),
    ],
)
def test_each_limit_is_checked_before_the_request(budget: dict[str, float], code: str) -> None:
    pauses: list[float] = []
    log = MemoryLog()

    def slow(_: ModelRequest) -> Reply:
        pauses.append(1.5)
        return {"move": "x"}

    client = ScriptedClient(slow, 1e-6)
    desk = Desk(log, _settings(budget=budget), client, waits=no_waits(pauses))
    assert _ask(desk).outcome == "answered"
    desk.at(Place(1, 0))
    assert _ask(desk, "y").outcome == code
    assert len(client.sent) == 1


def test_a_retry_is_budgeted_too() -> None:
    desk, _ = _desk([DOWN] * 9, budget={"calls": 2})
    exchange = _ask(desk)
    assert (exchange.outcome, exchange.tries) == ("budget_calls", ("server_error",) * 2)


def test_an_unknown_price_lets_nothing_through_a_limit_on_money() -> None:
    desk, log = _desk([{"move": "x"}], budget={"usd": 100.0})
    assert _ask(desk).outcome == "budget_usd_unknown"
    assert spent_on(log.past()).calls == 0


def test_an_unknown_cost_is_counted_and_never_taken_for_zero() -> None:
    reply = ModelReply(content="{}", prompt_tokens=None, answer_tokens=None)
    desk, log = _desk([reply])
    _ask(desk)
    spent = spent_on(log.past())
    assert (spent.calls, spent.calls_of_unknown_cost, spent.usd) == (1, 1, 0.0)
    assert spent.tokens == 1500  # what it can have cost at most: 1000 of prompt, 500 of answer
    price = Price(1e-6, 1e-6)
    assert over_budget(LlmBudget(usd=1.0), spent, prompt_tokens=1, answer_tokens=1, price=price) == "budget_usd_unknown"


def test_a_timeout_may_be_billed() -> None:
    desk, log = _desk([ModelFailure("timeout", "", again=True), {"move": "x"}])
    _ask(desk)
    assert spent_on(log.past()).tokens == 1500 + 1100


def test_what_is_on_record_is_not_asked_again() -> None:
    desk, log = _desk([{"move": "1"}, {"move": "2"}])
    first, second = _ask(desk), _ask(desk, "y")
    again = Desk(log, _settings(), None)
    again.at(Place(0, 0))
    assert (_ask(again), _ask(again, "y")) == (first, second)
    with pytest.raises(PlannerError, match="No language model"):
        _ask(again, "z")


def test_another_question_than_the_recorded_one_is_an_error() -> None:
    desk, log = _desk([{"move": "1"}])
    _ask(desk)
    desk.at(Place(0, 0))
    with pytest.raises(PlannerError) as caught:
        _ask(desk, "another")
    assert caught.value.code == "replay_prompt_differs"
    replay = Desk(MemoryLog(), _settings(), None, source=log.past())
    assert _ask(replay).reply == log.exchanges[0].reply
    with pytest.raises(PlannerError) as caught:
        _ask(replay, "more")
    assert caught.value.code == "replay_exhausted"


def test_an_outage_that_is_waited_for_is_no_answer() -> None:
    desk, log = _desk([REFUSED, {"move": "1"}], on_outage="wait")
    assert not _ask(desk).answered
    desk.at(Place(0, 0))
    assert _ask(desk).answered
    assert [e.outcome for e in log.exchanges] == ["request_refused", "answered"]


def test_budgets_are_read_from_words() -> None:
    assert parse_budget("calls=3, usd=2.5") == LlmBudget(calls=3, usd=2.5)
    for bad in ("calls", "money=3", "calls=-1", "usd=nan", "seconds=0"):
        with pytest.raises(UserInputError):
            parse_budget(bad)
    for name in ("a b", "", "x" * 300, "model\n"):
        with pytest.raises(UserInputError):
            settings_from({"model": name})


def test_waits_are_real_by_default() -> None:
    waits = Waits()
    assert 0.0 <= waits.chance() < 1.0
    assert waits.clock() > 0.0
