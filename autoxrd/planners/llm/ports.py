"""What does the planner need from outside? A model to ask, a log to keep, a bench to measure on: three ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from autoxrd.errors import PlannerError

__all__ = [
    "Bench",
    "Exchange",
    "ExchangeLog",
    "Measurement",
    "ModelClient",
    "ModelFailure",
    "ModelReply",
    "ModelRequest",
    "Place",
    "Price",
]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to the model, complete: equal requests have equal hashes.

    Args:
        purpose: ``step``, ``repair``, ``measured`` or ``review``.
        messages: chat messages in the OpenAI form.
        schema: JSON schema of the answer; ``schema_name`` is also the name of the forced tool.
        mode: ``schema``, ``tool`` or ``json``.
    """

    purpose: str
    model: str
    messages: tuple[Mapping[str, Any], ...]
    schema: Mapping[str, Any]
    schema_name: str
    mode: str
    temperature: float
    seed: int
    max_tokens: int

    def as_dict(self) -> dict[str, Any]:
        """Return JSON content, the form that is hashed and stored."""
        return {
            "purpose": self.purpose,
            "model": self.model,
            "messages": [dict(message) for message in self.messages],
            "schema": dict(self.schema),
            "schema_name": self.schema_name,
            "mode": self.mode,
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
        }


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What came back, before anybody believed it.

    Args:
        model: the model that says it answered.
        content: plain text, empty where there is none.
        calls: (tool name, arguments as text) in order.
        finish_reason: as the provider says: ``stop``, ``tool_calls``, ``length``, ``content_filter`` ...
        refusal: the provider's refusal text.
        prompt_tokens, answer_tokens: None where the provider does not count.
        usd: cost; None where the price is not known.
    """

    model: str = ""
    content: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish_reason: str = ""
    refusal: str = ""
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    usd: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return JSON content."""
        return {
            "model": self.model,
            "content": self.content,
            "calls": [list(call) for call in self.calls],
            "finish_reason": self.finish_reason,
            "refusal": self.refusal,
            "prompt_tokens": self.prompt_tokens,
            "answer_tokens": self.answer_tokens,
            "usd": self.usd,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ModelReply:
        """Read what :meth:`as_dict` gave."""
        return cls(**{**content, "calls": tuple((str(name), str(text)) for name, text in content["calls"])})


class ModelFailure(PlannerError):
    """A request that brought no answer.

    ``code``: ``rate_limited``, ``server_error``, ``timeout``, ``connection_failed``, ``answer_cut``,
    ``answer_not_http_json``, ``request_refused`` (bad key, unknown model, prompt too long).
    """

    def __init__(self, code: str, detail: str, *, again: bool, retry_after_seconds: float | None = None) -> None:
        super().__init__(code, detail)
        self.again = again
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for one token of the prompt and of the answer."""

    prompt_usd: float
    answer_usd: float


class ModelClient(Protocol):
    """The model behind whatever wire."""

    def mode(self) -> str:
        """Return the strictest form of answer that the provider has: ``schema``, ``tool`` or ``json``."""
        ...

    def price(self) -> Price | None:
        """Return the price, None where it is not known (never zero for want of knowledge)."""
        ...

    def count_tokens(self, request: ModelRequest) -> int:
        """Return the number of prompt tokens, or an upper bound."""
        ...

    def send(self, request: ModelRequest, timeout_seconds: float) -> ModelReply:
        """Send one request once.

        Raises:
            ModelFailure: no answer came.
        """
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a job a question is asked: after so many attempts and so many steps lost."""

    attempts: int
    forfeits: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question with what became of it, as recorded.

    Args:
        place: where it was asked.
        state: id of the state it was about.
        outcome: ``answered``, a failure's code, or a budget's code (then nothing was sent).
        tries: code of each request that was sent, the last one last.
        token_bound: prompt and answer tokens at most, reckoned before the request.
        artifact: id of the stored content.
        seconds: time waited; not part of the content.
    """

    place: Place
    state: str
    request: ModelRequest
    prompt_hash: str
    outcome: str
    reply: ModelReply | None = None
    tries: tuple[str, ...] = ()
    skill: Mapping[str, str] = field(default_factory=dict)
    token_bound: int = 0
    artifact: str = ""
    seconds: float = 0.0

    @property
    def answered(self) -> bool:
        """Whether a model's answer came."""
        return self.reply is not None


class ExchangeLog(Protocol):
    """Where exchanges are kept: the graph of the job."""

    def past(self) -> Sequence[Exchange]:
        """Return all exchanges of the job, in order."""
        ...

    def add(self, exchange: Exchange) -> Exchange:
        """Record one; return it with the id of its artifact. When this returns it is on the disk."""
        ...


@dataclass(frozen=True, slots=True)
class Measurement:
    """The answer of deterministic code to a request: JSON content of bounded size, and an image where one was made."""

    content: Mapping[str, Any]
    png: bytes | None = None


class Bench(Protocol):
    """Measures on recorded states."""

    def measure(self, state_id: str, what: str, arguments: Mapping[str, Any]) -> Measurement:
        """Return a measurement; a request that cannot be served gives ``{"error": ...}``."""
        ...
