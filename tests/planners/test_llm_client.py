"""The one module that reaches a model, against a server with the faults of real ones."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from autoxrd.planners.llm.client import KEY_VARIABLE, LiteLlmClient
from autoxrd.planners.llm.ports import ModelFailure, ModelReply, ModelRequest
from autoxrd.planners.llm.schema import review_schema
from autoxrd.planners.llm.settings import LlmSettings
from tests.support.llm_server import Answer, Fault, LlmServer, Script, in_order, serving

SETTINGS = LlmSettings(model="openai/scripted")
GOOD = {"abstain": False, "reason": "", "warnings": []}


def _request(mode: str = "tool", text: str = "hello") -> ModelRequest:
    return ModelRequest(
        purpose="review",
        model=SETTINGS.model,
        messages=({"role": "system", "content": "rules"}, {"role": "user", "content": text}),
        schema=review_schema(),
        schema_name="review",
        mode=mode,
        temperature=0.0,
        seed=7,
        max_tokens=100,
    )


def _send(script: Script, *, seconds: float = 20.0, mode: str = "tool") -> tuple[ModelReply, LlmServer]:
    with serving(script) as server:
        return LiteLlmClient(SETTINGS, server.base_url).send(_request(mode), seconds), server


def _fails(fault: Fault, *, seconds: float = 20.0) -> ModelFailure:
    with pytest.raises(ModelFailure) as caught:
        _send(lambda _: fault, seconds=seconds)
    return caught.value


@pytest.mark.parametrize("mode", ["schema", "tool", "json"])
def test_an_answer_arrives_in_each_form(mode: str) -> None:
    reply, server = _send(in_order(Answer(content=GOOD)), mode=mode)
    text = reply.calls[0][1] if mode == "tool" else reply.content
    assert json.loads(text) == GOOD
    assert (reply.prompt_tokens, reply.answer_tokens, reply.usd) == (1000, 100, None)
    body = server.asked[0].body
    assert (body["model"], body["temperature"], body["seed"], body["max_tokens"]) == ("scripted", 0.0, 7, 100)
    assert ("tools" in body, "response_format" in body) == (mode == "tool", mode == "schema")
    assert len(server.asked) == 1


STATUS = [
    (429, {"Retry-After": "3"}, "rate_limited", True, 3.0),
    (500, {}, "server_error", True, None),
    (503, {}, "server_error", True, None),
    (401, {}, "request_refused", False, None),
    (400, {}, "request_refused", False, None),
    (404, {}, "request_refused", False, None),
]


@pytest.mark.parametrize(("status", "headers", "code", "again", "after"), STATUS)
def test_a_status_is_named_and_asked_only_once(
    status: int, headers: dict[str, str], code: str, again: bool, after: float | None
) -> None:
    body = b'{"error": {"message": "no", "type": "x", "code": "y"}}'
    with serving(lambda _: Fault("status", status, headers, body)) as server:
        with pytest.raises(ModelFailure) as caught:
            LiteLlmClient(SETTINGS, server.base_url).send(_request(), 20.0)
        assert len(server.asked) == 1, "LiteLLM repeated the request by itself"
    failure = caught.value
    assert (failure.code, failure.again, failure.retry_after_seconds) == (code, again, after)


def test_slow_bytes_end_at_the_total_time_not_at_each_byte() -> None:
    began = time.monotonic()
    failure = _fails(Fault("drip", seconds=0.2), seconds=1.5)
    assert (failure.code, failure.again) == ("timeout", True)
    assert time.monotonic() - began < 6.0


def test_a_server_that_hangs_ends_in_a_timeout() -> None:
    assert _fails(Fault("hang", seconds=4.0), seconds=1.0).code == "timeout"


@pytest.mark.parametrize(
    "fault",
    [
        Fault("cut"),
        Fault("close"),
        Fault("body", body=b"<html>not json</html>"),
        Fault("body", body=b'{"choices": []}'),
        Fault("body", body=b'{"unexpected": true}'),
        Fault("body", body=b"[]"),
        Fault("body", body=b'{"choices": [{"message": null}]}'),
        Fault("body", body=b"\xff\xfe\x00garbage"),
        Fault("body", body=b""),
    ],
)
def test_a_broken_body_is_a_failure_that_may_be_tried_again(fault: Fault) -> None:
    failure = _fails(fault)
    assert failure.again, failure.code
    cut = fault.kind in ("cut", "close")
    assert failure.code in (("answer_cut",) if cut else ("server_error", "answer_not_http_json"))


def test_nobody_listens() -> None:
    with serving(in_order(Answer(content=GOOD))) as server:
        url = server.base_url
    with pytest.raises(ModelFailure) as caught:
        LiteLlmClient(SETTINGS, url).send(_request(), 10.0)
    assert (caught.value.code, caught.value.again) == ("connection_failed", True)


def test_a_huge_answer_is_kept_in_part() -> None:
    reply, _ = _send(in_order(Answer(content="x" * 400_000)), mode="json")
    assert len(reply.content) == 300_000


def test_lone_surrogates_do_not_survive() -> None:
    reply, _ = _send(in_order(Answer(calls=(("review", '{"reason": "\ud83d"}'),))))
    reply.calls[0][1].encode("utf-8")


def test_only_the_key_for_this_purpose_goes_to_an_endpoint_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-provider-secret")
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    _, server = _send(in_order(Answer(content=GOOD)))
    assert "provider-secret" not in json.dumps(dict(server.asked[0].headers))
    monkeypatch.setenv(KEY_VARIABLE, "own-key")
    _, server = _send(in_order(Answer(content=GOOD)))
    assert server.asked[0].headers["authorization"] == "Bearer own-key"


def test_a_failure_tells_neither_key_nor_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "own-key-1234")
    body = b'{"error": {"message": "bad key own-key-1234", "type": "x", "code": "y"}}'
    failure = _fails(Fault("status", 401, {}, body))
    assert "own-key" not in failure.detail
    assert "127.0.0.1" not in failure.detail


def test_the_prompt_is_counted_without_a_network() -> None:
    client = LiteLlmClient(SETTINGS, "http://127.0.0.1:9/v1")
    short, long = client.count_tokens(_request(text="a b c")), client.count_tokens(_request(text="0.123 " * 1000))
    assert 50 < short < 400
    assert long - short > 3000
    assert client.price() is None


def _isolated(code: str) -> subprocess.CompletedProcess[str]:
    guard = (
        "import socket, sys\n"
        "def refuse(*a, **k): raise SystemExit(f'network: {a}')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse; socket.create_connection = refuse\n"
    )
    return subprocess.run(
        [sys.executable, "-c", guard + code], capture_output=True, text=True, timeout=120, check=False
    )


def test_loading_the_client_touches_no_network() -> None:
    code = "from autoxrd.planners.llm.client import _litellm\nassert 'litellm' not in sys.modules\n_litellm()\n"
    done = _isolated(code + "assert 'litellm' in sys.modules; print('loaded')")
    assert done.stdout.strip() == "loaded", done.stderr
    assert done.returncode == 0


def test_without_the_extra_all_but_the_model_works() -> None:
    code = (
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'litellm' else find(name, *a)\n"
        "sys.modules['litellm'] = None\n"
        "import autoxrd\nfrom autoxrd.planners.registry import planner_names\nfrom autoxrd.cli.health import examine\n"
        "print({c.name: c.usable for c in examine() if c.kind == 'planner'})\n"
        "from autoxrd.planners.llm.client import _litellm\nfrom autoxrd.errors import PlannerError\n"
        "try:\n    _litellm()\nexcept PlannerError as e:\n    print(e.code)\n"
    )
    done = _isolated(code)
    assert done.stdout.split("\n")[:2] == ["{'rules': True, 'llm': False, 'hybrid': False}", "llm_extra_missing"], (
        done.stderr
    )
