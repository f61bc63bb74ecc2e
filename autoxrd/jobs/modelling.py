"""Which language model does a job get, and what may it cost? The server says; a request can only ask for less.

No model, address or key is ever taken from a request. Keys stand in the environment of the workers alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autoxrd.errors import UserInputError
from autoxrd.jobs.request import JobRequest, ModelWishes
from autoxrd.planners.llm.settings import LlmBudget, parse_budget, settings_from
from autoxrd.planners.registry import planner_info, planner_names
from autoxrd.settings import Settings

__all__ = ["check_model", "model_settings", "planners_here"]


def planners_here(settings: Settings) -> tuple[str, ...]:
    """Return the planners that a request may name."""
    return tuple(n for n in planner_names() if settings.llm_model is not None or not planner_info(n).needs_model)


def check_model(request: JobRequest, settings: Settings) -> None:
    """Refuse a planner that has no model here, and wishes of a model where none is asked.

    Raises:
        UserInputError: ``model_not_set_up``, ``llm_option_unused``, ``llm_budget_invalid``, ``llm_settings_invalid``.
    """
    if planner_info(request.planner).needs_model:
        model_settings(request, settings)
        return
    if request.model != ModelWishes() or any(value is not None for value in _limits(request).values()):
        raise UserInputError(
            "llm_option_unused", f"The planner {request.planner!r} asks no language model: name 'llm' or 'hybrid'."
        )


def model_settings(request: JobRequest, settings: Settings) -> Mapping[str, Any]:
    """Return how a job's planner asks its model, as the graph records it; empty for a planner that asks none.

    Raises:
        UserInputError: ``model_not_set_up``, ``llm_budget_invalid``, ``llm_settings_invalid``.
    """
    if not planner_info(request.planner).needs_model:
        return {}
    if settings.llm_model is None:
        raise UserInputError(
            "model_not_set_up",
            f"The planner {request.planner!r} needs a language model, and this service has none: whoever runs it sets "
            "AUTOXRD_LLM_MODEL (provider/name) for its API and its workers, and the model's key for its workers.",
        )
    content = {
        "model": settings.llm_model,
        "answer": settings.llm_answer,
        "on_outage": request.model.on_outage,
        "note": request.model.note,
        "budget": _budget(request, settings).model_dump(),
    }
    settings_from(content)
    return content


def _budget(request: JobRequest, settings: Settings) -> LlmBudget:
    """Return the smaller of what the service allows a job and what the job asks for, limit by limit."""
    most = parse_budget(settings.llm_budget)
    allowed = {name: getattr(most, name) for name in ("calls", "tokens", "usd")}
    asked = {name: value for name, value in _limits(request).items() if value is not None}
    less = {name: value if allowed[name] is None else min(value, allowed[name]) for name, value in asked.items()}
    return most.model_copy(update=less)


def _limits(request: JobRequest) -> dict[str, float | None]:
    budgets = request.budgets
    return {"calls": budgets.model_calls, "tokens": budgets.model_tokens, "usd": budgets.money_usd}
