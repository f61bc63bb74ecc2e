"""How is a model reached? Through LiteLLM, and only here: any provider, any OpenAI-compatible endpoint.

LiteLLM is loaded at the first question and never at import: it takes seconds and 200 MB, and would fetch a price list
from the network unless told not to. Its own repetitions are switched off (its default sends three requests), its
default timeout (6 000 s) is replaced, and its answers are taken as text: it does not raise on a broken schema.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import threading
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from autoxrd.errors import PlannerError
from autoxrd.planners.llm.fencing import safe_unicode
from autoxrd.planners.llm.ports import ModelFailure, ModelReply, ModelRequest, Price
from autoxrd.planners.llm.settings import LlmSettings

__all__ = ["KEY_VARIABLE", "LiteLlmClient", "litellm_available"]

KEY_VARIABLE = "AUTOXRD_LLM_API_KEY"
"""Key for an endpoint of one's own. A provider's own variable (``OPENAI_API_KEY``) is read by LiteLLM, and is never
sent to an address that the user gave."""

LARGEST_TEXT = 300_000
"""Characters of an answer that are kept at all; what is longer is cut before anybody parses it."""

_NO_KEY = "none"

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else the import fetches a price list
    "LITELLM_MODE": "PRODUCTION",  # else the import reads .env files of the working directory
    "LITELLM_LOG": "ERROR",
}


def litellm_available() -> tuple[bool, str]:
    """Return whether LiteLLM is installed (it is not loaded), and what to do where it is not."""
    if importlib.util.find_spec("litellm") is None:
        return False, "litellm is not installed; install AutoXRD with the extra 'llm'"
    return True, "litellm is installed"


@cache
def _litellm() -> Any:
    """Load LiteLLM quietly.

    Raises:
        PlannerError: ``llm_extra_missing``.
    """
    usable, text = litellm_available()
    if not usable:
        raise PlannerError("llm_extra_missing", f"A language model needs an extra: {text}.")
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = True  # a provider without seed or temperature gets the request without them
    litellm.num_retries = 0
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    return litellm


class LiteLlmClient:
    """A model behind LiteLLM.

    Args:
        settings: which model.
        base_url: address of an OpenAI-compatible endpoint; None asks the model's own provider.
    """

    def __init__(self, settings: LlmSettings, base_url: str | None = None) -> None:
        self._model = settings.model
        self._base_url = base_url

    def mode(self) -> str:
        """Return the strictest form of answer that LiteLLM knows the provider to have."""
        litellm, target = _litellm(), self._target()
        try:
            if litellm.supports_response_schema(**target):
                return "schema"
            offered = litellm.get_supported_openai_params(**target) or []
        except Exception as error:
            raise _unknown_model(self._model, error) from error
        return "tool" if "tools" in offered and "tool_choice" in offered else "json"

    def price(self) -> Price | None:
        """Return LiteLLM's price, None where it has none; an endpoint of one's own has no known price."""
        if self._base_url is not None:
            return None
        try:
            known = _litellm().get_model_info(self._model)
        except Exception:  # LiteLLM raises plain Exception for a model that it does not know
            return None
        prices = known.get("input_cost_per_token"), known.get("output_cost_per_token")
        if prices[0] is None or prices[1] is None or prices == (0, 0):
            return None
        return Price(float(prices[0]), float(prices[1]))

    def count_tokens(self, request: ModelRequest) -> int:
        """Return the number of prompt tokens by LiteLLM's packaged tokenizer, schema included, a tenth added."""
        said = [{"role": m["role"], "content": _text_of(m["content"])} for m in request.messages]
        tokens = int(_litellm().token_counter(model="gpt-4o", messages=said))
        schema = (
            0 if request.mode == "json" else int(_litellm().token_counter(model="gpt-4o", text=str(request.schema)))
        )
        images = sum(1 for m in request.messages if not isinstance(m["content"], str))
        return int(1.1 * (tokens + schema)) + 1_600 * images + 50

    def send(self, request: ModelRequest, timeout_seconds: float) -> ModelReply:
        """Send one request once.

        Raises:
            ModelFailure: no answer came in time, or none at all.
        """
        arguments = self._arguments(request, timeout_seconds)
        litellm = _litellm()
        try:
            response = _within(timeout_seconds, lambda: litellm.completion(**arguments))
        except ModelFailure:
            raise
        except Exception as error:
            raise self._failure(error) from None  # its text may hold the key or the address
        return self._reply(response)

    def _target(self) -> dict[str, Any]:
        if self._base_url is None:
            return {"model": self._model}
        return {"model": self._model.removeprefix("openai/"), "custom_llm_provider": "openai"}

    def _arguments(self, request: ModelRequest, timeout_seconds: float) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            **self._target(),
            "messages": [dict(message) for message in request.messages],
            "temperature": request.temperature,
            "seed": request.seed,
            "max_tokens": request.max_tokens,
            "timeout": timeout_seconds,
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": True,
        }
        if self._base_url is not None:
            arguments |= {"base_url": self._base_url, "api_key": os.environ.get(KEY_VARIABLE) or _NO_KEY}
            arguments["extra_headers"] = {"Connection": "close"}  # LiteLLM keeps its clients for ever, sockets and all
        schema, name = dict(request.schema), request.schema_name
        if request.mode == "schema":
            form = {"name": name, "strict": True, "schema": schema}
            arguments["response_format"] = {"type": "json_schema", "json_schema": form}
        elif request.mode == "tool":
            function = {"name": name, "description": "Your one answer.", "parameters": schema}
            arguments["tools"] = [{"type": "function", "function": function}]
            arguments["tool_choice"] = {"type": "function", "function": {"name": name}}
        return arguments

    def _reply(self, response: Any) -> ModelReply:
        """Take an answer apart without trusting its form.

        Raises:
            ModelFailure: ``answer_not_http_json``.
        """
        try:
            choice = response.choices[0]
            message = choice.message
            calls = tuple(
                (_cut(call.function.name), _cut(call.function.arguments)) for call in (message.tool_calls or ())[:8]
            )
            usage = getattr(response, "usage", None)
            return ModelReply(
                model=_cut(response.model)[:120],
                content=_cut(message.content),
                calls=calls,
                finish_reason=_cut(choice.finish_reason)[:40],
                refusal=_cut(getattr(message, "refusal", None))[:400],
                prompt_tokens=_count(getattr(usage, "prompt_tokens", None)),
                answer_tokens=_count(getattr(usage, "completion_tokens", None)),
                usd=self._cost(response),
            )
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            name = type(error).__name__
            raise ModelFailure(
                "answer_not_http_json", f"The provider's answer has another form ({name}).", again=True
            ) from error

    def _cost(self, response: Any) -> float | None:
        if self.price() is None:
            return None
        try:
            cost = _litellm().completion_cost(completion_response=response)
        except Exception:  # LiteLLM raises plain Exception where it cannot reckon
            return None
        return float(cost) if cost else None

    def _failure(self, error: Exception) -> ModelFailure:
        """Name a failure; LiteLLM's text stays behind."""
        litellm = _litellm()
        status = getattr(error, "status_code", None)
        after = _retry_after(error)
        text = f"{type(error).__name__}, HTTP status {status}" if status else type(error).__name__
        if isinstance(error, litellm.RateLimitError):
            return ModelFailure(
                "rate_limited", f"The provider asks to wait ({text}).", again=True, retry_after_seconds=after
            )
        if isinstance(error, litellm.Timeout):
            return ModelFailure("timeout", f"The provider did not answer in time ({text}).", again=True)
        final = (
            litellm.AuthenticationError,
            litellm.BadRequestError,
            litellm.NotFoundError,
            litellm.PermissionDeniedError,
            litellm.UnprocessableEntityError,
        )
        if isinstance(error, final):
            return ModelFailure(
                "request_refused", f"The provider refused the request ({text}): check model and key.", again=False
            )
        causes = _causes(error)
        if causes & {"ConnectError", "ConnectTimeout"}:
            return ModelFailure("connection_failed", f"The provider cannot be reached ({text}).", again=True)
        if causes & {"RemoteProtocolError", "ReadError"}:
            return ModelFailure("answer_cut", f"The connection broke off ({text}).", again=True)
        return ModelFailure("server_error", f"The provider failed ({text}).", again=True, retry_after_seconds=after)


def _within(seconds: float, work: Callable[[], Any]) -> Any:
    """Do a piece of work in at most so many seconds in all.

    A read timeout does not end a server that sends a byte now and then; only a clock of our own does. The thread that
    is left behind is a daemon and ends with its connection.

    Raises:
        ModelFailure: ``timeout``.
    """
    box: dict[str, Any] = {}

    def run() -> None:
        try:
            box["value"] = work()
        except Exception as error:
            box["error"] = error

    thread = threading.Thread(target=run, name="model-request", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise ModelFailure("timeout", f"The provider did not finish its answer within {seconds:.0f} s.", again=True)
    if "error" in box:
        raise box["error"]
    return box["value"]


def _cut(text: object) -> str:
    return safe_unicode(str(text)[:LARGEST_TEXT]) if text is not None else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))


def _causes(error: BaseException) -> set[str]:
    """Return the names of the exceptions behind one: LiteLLM calls a refused connection a server error."""
    names: set[str] = set()
    link: BaseException | None = error
    while link is not None and len(names) < 20:
        names.add(type(link).__name__)
        link = link.__cause__ or link.__context__
    return names


def _retry_after(error: Exception) -> float | None:
    """Read Retry-After in seconds from whatever the exception kept of the response."""
    response = getattr(error, "response", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None) or {}
    try:
        value = float(str(headers.get("retry-after")))
    except (AttributeError, ValueError):
        return None
    return value if 0 <= value < 86_400 else None


def _unknown_model(model: str, error: Exception) -> PlannerError:
    return PlannerError(
        "model_unknown",
        f"LiteLLM does not know the provider of {model!r} ({type(error).__name__}): write provider/model, or give "
        "--base-url for an OpenAI-compatible endpoint.",
    )
