"""Options of the planners that ask a language model. A key is no option: it comes from the environment alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

__all__ = ["Asked", "BaseUrl", "checked_endpoint", "endpoint_of", "settings_of"]

_Model = Annotated[
    str | None, typer.Option("--model", help="Language model, as LiteLLM names it: provider/model.", show_default=False)
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        help="OpenAI-compatible endpoint that serves the model; else AUTOXRD_LLM_BASE_URL, else the model's provider. "
        "Its key: AUTOXRD_LLM_API_KEY.",
        show_default=False,
    ),
]
_LlmBudget = Annotated[
    str | None,
    typer.Option("--llm-budget", help="Limits: calls=200,tokens=2000000,usd=5,seconds=3600.", show_default=False),
]
_LlmAnswer = Annotated[
    str | None,
    typer.Option("--llm-answer", help="Form of answer: auto, schema, tool or json.", show_default="auto"),
]
_OnOutage = Annotated[
    str | None,
    typer.Option("--on-outage", help="Model out of reach: rules go on, or wait (resume later).", show_default="rules"),
]
_Vision = Annotated[bool, typer.Option("--vision", help="The model takes images and may ask for a plot.")]
_Note = Annotated[
    str | None,
    typer.Option("--note", help="What you know of the sample; the model reads it as data.", show_default=False),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed of a language model; None or False where nothing was."""

    model: _Model = None
    base_url: BaseUrl = None
    llm_budget: _LlmBudget = None
    llm_answer: _LlmAnswer = None
    on_outage: _OnOutage = None
    vision: _Vision = False
    note: _Note = None


def settings_of(asked: Asked, planner: str) -> dict[str, Any]:
    """Return the settings of a planner that asks a model; an option without effect is an error.

    Raises:
        UserInputError: ``llm_option_unused``, ``llm_budget_invalid``.
    """
    from autoxrd.errors import UserInputError
    from autoxrd.planners.llm.settings import parse_budget
    from autoxrd.planners.registry import planner_info

    typed = {
        "model": asked.model,
        "answer": asked.llm_answer,
        "on_outage": asked.on_outage,
        "note": asked.note,
        "budget": parse_budget(asked.llm_budget).model_dump() if asked.llm_budget else None,
        "vision": asked.vision or None,
    }
    settings = {name: value for name, value in typed.items() if value is not None}
    if (settings or asked.base_url) and not planner_info(planner).needs_model:
        raise UserInputError(
            "llm_option_unused", f"The planner {planner!r} asks no language model: add --planner llm or hybrid."
        )
    return settings


def checked_endpoint(base_url: str | None) -> str | None:
    """Return the endpoint that was typed or stands in the environment, if it may be used.

    Raises:
        UserInputError: ``base_url_invalid``.
    """
    from autoxrd.agent.planning import check_endpoint

    return check_endpoint(base_url)


def endpoint_of(asked: Asked, planner: str) -> str | None:
    """Return the endpoint for a planner that asks a model, None for one that does not."""
    from autoxrd.planners.registry import planner_info

    return checked_endpoint(asked.base_url) if planner_info(planner).needs_model else None
