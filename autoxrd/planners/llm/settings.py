"""What does a job ask of its language model? Model, budget and behaviour, as the graph records them.

No key and no address stands here: the key comes from the environment, the endpoint from the command or the
environment, so that a record can travel.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from autoxrd.errors import UserInputError

__all__ = ["LlmBudget", "LlmSettings", "parse_budget", "settings_from"]

AnswerMode = Literal["schema", "tool", "json"]
OutageAction = Literal["rules", "wait"]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LlmBudget(_Frozen):
    """What the model may cost in one job; each limit is checked before a request is sent."""

    calls: Annotated[int, Field(ge=0)] = 200
    """Requests sent, repeated ones counted."""
    tokens: Annotated[int, Field(ge=0)] = 2_000_000
    """Prompt and answer together. 200 calls of 8 000 + 2 000 tokens."""
    usd: Annotated[FiniteFloat, Field(ge=0)] | None = None
    """Money; None: not limited. A limit needs a model whose price is known."""
    seconds: Annotated[FiniteFloat, Field(gt=0)] = 3600.0
    """Time spent waiting for the model."""


class LlmSettings(_Frozen):
    """How the model is asked. Equal settings and equal answers give equal decisions."""

    model: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9._:/@+\-]+$")]
    """LiteLLM's name of the model, e.g. ``openai/gpt-4.1-mini``."""
    answer: AnswerMode | Literal["auto"] = "auto"
    """``schema``: strict JSON schema; ``tool``: one forced tool; ``json``: plain JSON; ``auto``: the first that the
    provider has."""
    temperature: Annotated[FiniteFloat, Field(ge=0, le=2)] = 0.0
    seed: int = 1
    max_answer_tokens: Annotated[int, Field(ge=64)] = 2000
    timeout_seconds: Annotated[FiniteFloat, Field(gt=0)] = 120.0
    """For the whole answer, not only for its first byte."""
    tries: Annotated[int, Field(ge=1, le=10)] = 4
    """Requests for one answer: the first and its repetitions after an outage."""
    first_pause_seconds: Annotated[FiniteFloat, Field(ge=0)] = 2.0
    longest_pause_seconds: Annotated[FiniteFloat, Field(ge=0)] = 60.0
    """Longest pause between two tries, also where the server asks for a longer one."""
    measurements_per_step: Annotated[int, Field(ge=0)] = 3
    forfeits_allowed: Annotated[int, Field(ge=1)] = 3
    """Steps in a row that the model may lose by unusable answers before the rules take over."""
    on_outage: OutageAction = "rules"
    vision: bool = False
    """The model takes images, so it may ask for a plot."""
    note: Annotated[str, Field(max_length=2000)] = ""
    """What the user says of the sample: data for the model, never an instruction."""
    budget: LlmBudget = LlmBudget()


_BUDGET_FIELDS = ("calls", "tokens", "usd", "seconds")


def parse_budget(text: str) -> LlmBudget:
    """Read ``calls=100,tokens=500000,usd=2,seconds=1800``; what is not named keeps its default.

    Raises:
        UserInputError: ``llm_budget_invalid``.
    """
    content: dict[str, str] = {}
    for part in filter(None, re.split(r"[,\s]+", text)):
        name, equals, value = part.partition("=")
        if not equals or name not in _BUDGET_FIELDS:
            known = ", ".join(f"{field}=..." for field in _BUDGET_FIELDS)
            raise UserInputError(
                "llm_budget_invalid", f"{part[:40]!r} is no limit of the model's budget; known: {known}."
            )
        content[name] = value
    return LlmBudget.model_validate(_checked(LlmBudget, content, "llm_budget_invalid", "the model's budget"))


def settings_from(content: dict[str, Any]) -> LlmSettings:
    """Build settings from options or from a record.

    Raises:
        UserInputError: ``llm_settings_invalid``, naming the option.
    """
    return LlmSettings.model_validate(_checked(LlmSettings, content, "llm_settings_invalid", "the language model"))


def _checked(model: type[BaseModel], content: dict[str, Any], code: str, what: str) -> dict[str, Any]:
    try:
        model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise UserInputError(code, f"The settings of {what} are not valid: {where}: {first['msg']}.") from error
    return content
