"""Is this an answer? From what a model sent to a typed move, or to faults with a name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from autoxrd.planners.llm.fencing import clean_text, safe_unicode
from autoxrd.planners.llm.ports import ModelReply

__all__ = [
    "Answer",
    "AnswerAction",
    "AnswerFinish",
    "AnswerRequest",
    "Faults",
    "Review",
    "answer_text",
    "read_answer",
]

LARGEST_ANSWER = 40_000
"""Characters. Three actions with all that belongs to them take 6 000."""

_Name = Annotated[str, Field(max_length=240)]
_Text = Annotated[str, Field(max_length=4000)]
ModelT = TypeVar("ModelT", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class AnswerEvidence(_Strict):
    """A claim on a recorded figure; the state it is from is the action's."""

    feature: _Name
    value: FiniteFloat
    comparison: Literal[">", "<", ">=", "<=", "abs>"]
    threshold: FiniteFloat


class AnswerPrediction(_Strict):
    """What must change."""

    metric: _Name
    direction: Literal["decrease", "increase", "toward_zero"]
    minimum_effect: FiniteFloat


class AnswerBound(_Strict):
    """Limits of one parameter."""

    selector: _Name
    lower: FiniteFloat
    upper: FiniteFloat


class AnswerAction(_Strict):
    """One action as the model writes it: no ids, no stage, no value of a parameter."""

    kind: _Name
    start: Annotated[_Name, Field(alias="from")]
    parameters: Annotated[list[_Name], Field(max_length=200)] = Field(default_factory=list)
    bounds: Annotated[list[AnswerBound], Field(max_length=200)] = Field(default_factory=list)
    terms: int | None = None
    phase: _Name | None = None
    axis: Annotated[list[int], Field(min_length=3, max_length=3)] | None = None
    equal: bool | None = None
    instead_of: Annotated[list[_Name], Field(max_length=4)] = Field(default_factory=list)
    rationale: _Text
    evidence: Annotated[list[AnswerEvidence], Field(min_length=1, max_length=12)]
    predictions: Annotated[list[AnswerPrediction], Field(min_length=1, max_length=12)]


class AnswerRequest(_Strict):
    """A measurement that the model wants."""

    what: _Name
    state: _Name | None = None
    other_state: _Name | None = None
    lower_deg: FiniteFloat | None = None
    upper_deg: FiniteFloat | None = None
    prefix: _Name | None = None


class AnswerFinish(_Strict):
    """The end, with what the model claims of it; the final audit checks the claim."""

    state: _Name
    claim: Literal["accepted", "abstained"]
    reason: _Text
    caveats: Annotated[list[_Text], Field(max_length=8)] = Field(default_factory=list)


class Answer(_Strict):
    """One move."""

    move: Literal["propose", "request", "finish"]
    actions: Annotated[list[AnswerAction], Field(min_length=1, max_length=3)] | None = None
    request: AnswerRequest | None = None
    finish: AnswerFinish | None = None


class Review(_Strict):
    """The model's last word on a result."""

    abstain: bool
    reason: _Text = ""
    warnings: Annotated[list[_Text], Field(max_length=8)] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Faults:
    """Why an answer cannot be used.

    Args:
        code: ``answer_empty``, ``answer_truncated``, ``answer_refused``, ``answer_oversized``, ``answer_multiple``,
            ``answer_wrong_tool``, ``answer_not_json``, ``answer_schema``, ``unknown_name``, ``action_illegal``,
            ``measurement_limit``.
        texts: what was wrong and what would be legal, in the model's terms.
    """

    code: str
    texts: tuple[str, ...]


def answer_text(reply: ModelReply, tool: str) -> str | Faults:
    """Return the text that should be the answer's JSON, or why there is none."""
    if reply.refusal or reply.finish_reason == "content_filter":
        return Faults("answer_refused", ("You refused. Only a step of a least-squares fit is asked for.",))
    if len(reply.calls) > 1:
        return Faults("answer_multiple", (f"You called {len(reply.calls)} tools; call {tool!r} once.",))
    if reply.calls:
        name, text = reply.calls[0]
        if name != tool:
            return Faults(
                "answer_wrong_tool", (f"There is no tool {clean_text(name, 40)!r}; the only one is {tool!r}.",)
            )
    else:
        text = _unwrapped(reply.content)
    if len(text) > LARGEST_ANSWER:
        return Faults("answer_oversized", (f"The answer has {len(text)} characters; at most {LARGEST_ANSWER}.",))
    if reply.finish_reason == "length":
        return Faults("answer_truncated", ("The answer was cut off at the token limit; answer more briefly.",))
    if not text.strip():
        return Faults("answer_empty", (f"The answer was empty; call {tool!r}.",))
    return text


def _unwrapped(text: str) -> str:
    """Take JSON out of a Markdown code block, which plain models like to add."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```") and len(stripped) > 6:
        return stripped[3:-3].removeprefix("json").strip()
    return stripped


def read_answer(reply: ModelReply, tool: str, model: type[ModelT]) -> ModelT | Faults:
    """Return the typed answer, or its faults."""
    text = answer_text(reply, tool)
    if isinstance(text, Faults):
        return text
    try:
        content = _sound(json.loads(text))
    except (ValueError, RecursionError) as error:
        return Faults("answer_not_json", (f"The answer is no JSON: {clean_text(str(error), 120)}.",))
    try:
        parsed = model.model_validate(content)
    except (ValidationError, RecursionError) as error:
        return Faults("answer_schema", _schema_texts(error))
    if isinstance(parsed, Answer):
        named = {"propose": parsed.actions, "request": parsed.request, "finish": parsed.finish}
        if named[parsed.move] is None:
            field = "actions" if parsed.move == "propose" else parsed.move
            return Faults("answer_schema", (f"The move is {parsed.move!r}, so {field!r} must not be null.",))
    return parsed


def _sound(content: Any) -> Any:
    """Return JSON content whose texts can be stored: an escape may stand for half a character."""
    if isinstance(content, str):
        return safe_unicode(content)
    if isinstance(content, list):
        return [_sound(item) for item in content]
    if isinstance(content, dict):
        return {safe_unicode(name): _sound(value) for name, value in content.items()}
    return content


def _schema_texts(error: Exception) -> tuple[str, ...]:
    if not isinstance(error, ValidationError):
        return ("The answer is nested too deeply.",)
    return tuple(
        f"{clean_text('.'.join(map(str, fault['loc'])), 80)}: {clean_text(_message(fault), 160)}"
        for fault in error.errors(include_url=False, include_context=False, include_input=False)[:6]
    )


def _message(fault: Any) -> str:
    return safe_unicode(str(fault["msg"]))
