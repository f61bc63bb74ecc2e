"""May this request still be sent? What was spent, what it may cost, and what the job allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from autoxrd.planners.llm.ports import Exchange, Price
from autoxrd.planners.llm.settings import LlmBudget

__all__ = ["BUDGET_CODES", "Spent", "over_budget", "spent_on"]

BUDGET_CODES = ("budget_calls", "budget_tokens", "budget_usd", "budget_usd_unknown", "budget_seconds")
"""Outcomes of a request that was not sent because the budget forbade it."""

_MAY_BE_BILLED = frozenset({"timeout", "answer_cut", "answer_not_http_json"})
"""Failures after which the provider may have worked, and may send a bill."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What the model has cost so far.

    Args:
        tokens: as the provider counts, else the upper bound that was reckoned before the request.
        usd: sum of the known costs.
        calls_of_unknown_cost: requests that are not in ``usd``: it is then a lower bound.
        seconds: time waited.
    """

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    calls_of_unknown_cost: int = 0
    seconds: float = 0.0


def spent_on(past: Iterable[Exchange]) -> Spent:
    """Sum up the exchanges of a job."""
    calls = tokens = unknown = 0
    usd = seconds = 0.0
    for exchange in past:
        calls += len(exchange.tries)
        seconds += exchange.seconds
        bound = exchange.token_bound
        billed = sum(code in _MAY_BE_BILLED for code in exchange.tries)
        tokens += bound * billed
        unknown += billed
        reply = exchange.reply
        if reply is None:
            continue
        known = reply.prompt_tokens is not None and reply.answer_tokens is not None
        tokens += (reply.prompt_tokens or 0) + (reply.answer_tokens or 0) if known else bound
        if reply.usd is None:
            unknown += 1
        else:
            usd += reply.usd
    return Spent(calls, tokens, usd, unknown, seconds)


def over_budget(
    budget: LlmBudget, spent: Spent, *, prompt_tokens: int, answer_tokens: int, price: Price | None
) -> str | None:
    """Return the code of the limit that one more request could pass, None where there is room.

    Args:
        budget: the limits.
        spent: so far.
        prompt_tokens: of the request, an upper bound.
        answer_tokens: the most that the answer may have.
        price: None where it is not known; a limit on money then lets nothing through.
    """
    if spent.calls >= budget.calls:
        return "budget_calls"
    if spent.tokens + prompt_tokens + answer_tokens > budget.tokens:
        return "budget_tokens"
    if spent.seconds >= budget.seconds:
        return "budget_seconds"
    if budget.usd is None:
        return None
    if price is None or spent.calls_of_unknown_cost:
        return "budget_usd_unknown"
    cost = prompt_tokens * price.prompt_usd + answer_tokens * price.answer_usd
    return "budget_usd" if spent.usd + cost > budget.usd else None
