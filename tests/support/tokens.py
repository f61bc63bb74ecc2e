"""How many tokens has a prompt? Counted with the tokenizers that LiteLLM carries, without a network."""

from __future__ import annotations

import importlib.util
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from autoxrd.planners.llm.ports import ModelRequest

__all__ = ["count", "observation_tokens", "prompt_tokens"]


@cache
def _encodings() -> tuple[Any, ...]:
    spec = importlib.util.find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(spec.origin).parent / "litellm_core_utils" / "tokenizers")
    import tiktoken

    return tuple(tiktoken.get_encoding(name) for name in ("cl100k_base", "o200k_base"))


def count(text: str) -> int:
    """Return the larger count of two current tokenizers."""
    return max(len(encoding.encode(text)) for encoding in _encodings())


def observation_tokens(request: ModelRequest) -> int:
    """Return the tokens of the fenced observation."""
    text = request.messages[1]["content"]
    return count(text[text.index("<data-") :])


def prompt_tokens(request: ModelRequest) -> int:
    """Return the tokens of all messages and of the schema."""
    said = "\n".join(json.dumps(message["content"], ensure_ascii=False) for message in request.messages)
    return count(said) + (0 if request.mode == "json" else count(json.dumps(request.schema)))
