"""How is a question put? Rules first, then the skill, then the observation as fenced data."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from autoxrd.planners.llm.answer import Faults
from autoxrd.planners.llm.fencing import FENCE_RULE, clean_text, fence, safe_unicode
from autoxrd.planners.llm.ports import Measurement, ModelReply, ModelRequest
from autoxrd.planners.llm.settings import LlmSettings

__all__ = ["PROMPT_VERSION", "answered", "faults_message", "first_messages", "measured_message", "request_for"]

PROMPT_VERSION = "1"
"""Changed with every change of ``prompts/``: a replay needs the same words."""

_ECHO = 2_000
"""Characters of the model's own answer that it is shown again."""

_LONGEST_MEASUREMENT = 5_000
_LONGEST_SKILL = 8_000

Message = Mapping[str, Any]


@cache
def _words(name: str) -> str:
    return (Path(__file__).parent / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


def first_messages(words: str, content: Mapping[str, Any], *, skill: str = "", situation: str = "") -> list[Message]:
    """Return the system's and the first user's message.

    Args:
        words: name of the prompt, ``system`` or ``review``.
        content: what is observed; goes into a fence.
        skill: text of the skill that fits the stage.
        situation: one sentence of ours on why the model is asked.
    """
    system = f"{_words(words)}\n\n{FENCE_RULE}"
    parts = [f"Procedure for this stage:\n{skill[:_LONGEST_SKILL]}"] if skill else []
    parts += [situation] if situation else []
    parts.append(fence(content))
    return [{"role": "system", "content": system}, {"role": "user", "content": "\n\n".join(parts)}]


def answered(reply: ModelReply) -> Message:
    """Return the model's own answer as it is shown again: cut, and as plain text for every provider."""
    text = reply.calls[0][1] if reply.calls else reply.content
    return {"role": "assistant", "content": safe_unicode(text[:_ECHO]) or "(empty)"}


def faults_message(faults: Faults) -> Message:
    """Return what was wrong; the model has one more try."""
    told = "\n".join(f"- {text}" for text in faults.texts)[:3_000]
    return {
        "role": "user",
        "content": f"Your answer cannot be used ({faults.code}):\n{told}\nAnswer once more; this is the last try.",
    }


def measured_message(what: str, measurement: Measurement) -> Message:
    """Return a measurement as fenced data, with its image where it has one."""
    content = dict(measurement.content)
    if len(json.dumps(content)) > _LONGEST_MEASUREMENT:
        content = {"error": "the measurement is too long to be shown; ask for a smaller region"}
    text = f"Measurement {clean_text(what, 20)}:\n{fence(content)}"
    if measurement.png is None:
        return {"role": "user", "content": text}
    url = "data:image/png;base64," + base64.b64encode(measurement.png).decode()
    return {
        "role": "user",
        "content": [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}],
    }


def request_for(
    purpose: str, messages: Sequence[Message], schema: Mapping[str, Any], name: str, settings: LlmSettings, mode: str
) -> ModelRequest:
    """Return the request; in plain JSON mode the schema is part of the words."""
    said = list(messages)
    if mode == "json":
        words = f"\n\nAnswer with one JSON object of this schema and nothing else:\n{json.dumps(schema)}"
        said[0] = {**said[0], "content": said[0]["content"] + words}
    return ModelRequest(
        purpose=purpose,
        model=settings.model,
        messages=tuple(said),
        schema=schema,
        schema_name=name,
        mode=mode,
        temperature=settings.temperature,
        seed=settings.seed,
        max_tokens=settings.max_answer_tokens,
    )
