"""A local OpenAI-compatible server that plays scripted conversations over real HTTP, with the faults of real ones."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Answer", "Asked", "Fault", "LlmServer", "Script", "in_order", "serving"]


@dataclass(frozen=True)
class Asked:
    """One request as the server saw it.

    Args:
        body: parsed JSON.
        headers: lower-case names.
        number: 1, 2, ...
    """

    body: Mapping[str, Any]
    headers: Mapping[str, str]
    number: int

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        return self.body["messages"]  # type: ignore[no-any-return]

    @property
    def tool(self) -> str:
        """Name of the forced tool or of the schema, empty in plain JSON mode."""
        if self.body.get("tools"):
            return str(self.body["tools"][0]["function"]["name"])
        form = self.body.get("response_format") or {}
        return str(form.get("json_schema", {}).get("name", ""))


@dataclass(frozen=True)
class Answer:
    """A well-formed completion.

    Args:
        content: JSON content or text of the answer; as the arguments of a call where the request had a tool.
        calls: explicit (tool, arguments) instead.
        finish: ``finish_reason``; chosen by form where empty.
    """

    content: Any = None
    calls: tuple[tuple[str, str], ...] | None = None
    finish: str = ""
    refusal: str | None = None
    usage: Mapping[str, int] | None = field(default_factory=lambda: {"prompt_tokens": 1000, "completion_tokens": 100})
    model: str = "scripted-1"


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong on the wire.

    Args:
        kind: ``status``, ``drip`` (a byte now and then), ``cut`` (the body ends early), ``body`` (bytes as they are),
            ``hang``, ``close`` (no answer at all).
    """

    kind: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0.0


Script = Callable[[Asked], Answer | Fault]


def in_order(*answers: Answer | Fault) -> Script:
    """Play answers one after the other; the last one again and again."""

    def play(asked: Asked) -> Answer | Fault:
        return answers[min(asked.number, len(answers)) - 1]

    return play


class LlmServer:
    """The server; listens on 127.0.0.1 only, on a free port."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.errors: list[BaseException] = []
        owner = self

        class Handler(_Handler):
            server_of = owner

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)


@contextmanager
def serving(script: Script) -> Iterator[LlmServer]:
    """Run a server for the length of a block; a script that failed fails the test."""
    server = LlmServer(script)
    try:
        yield server
    finally:
        server.close()
    if server.errors:
        raise server.errors[0]


class _Handler(BaseHTTPRequestHandler):
    server_of: LlmServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        owner = self.server_of
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(body, headers, len(owner.asked) + 1)
        owner.asked.append(asked)
        try:
            answer = owner.script(asked)
        except Exception as error:
            owner.errors.append(error)
            answer = Fault("status", 500, body=b'{"error": {"message": "the script failed"}}')
        try:
            self._play(answer, asked)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up: that is what some tests are about

    def _play(self, answer: Answer | Fault, asked: Asked) -> None:
        if isinstance(answer, Answer):
            self._send(200, json.dumps(completion(answer, asked)).encode(), {})
        elif answer.kind in ("status", "body"):
            self._send(answer.status, answer.body, answer.headers)
        elif answer.kind == "drip":
            self._drip(json.dumps(completion(Answer(content={"slow": True}), asked)).encode(), answer.seconds)
        elif answer.kind == "cut":
            whole = answer.body or json.dumps(completion(Answer(content={"cut": True}), asked)).encode()
            self._head(200, len(whole), {})
            self.wfile.write(whole[: len(whole) // 2])
            self.close_connection = True
        elif answer.kind == "hang":
            time.sleep(answer.seconds)
            self.close_connection = True
        else:
            self.close_connection = True

    def _head(self, status: int, length: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self._head(status, len(body), headers)
        self.wfile.write(body)

    def _drip(self, body: bytes, seconds: float) -> None:
        self._head(200, len(body), {})
        for position in range(len(body)):
            self.wfile.write(body[position : position + 1])
            self.wfile.flush()
            time.sleep(seconds)


def completion(answer: Answer, asked: Asked) -> dict[str, Any]:
    """Return the completion in the OpenAI form; into a tool call where the request had a tool."""
    text = answer.content if isinstance(answer.content, str) else json.dumps(answer.content)
    calls = answer.calls
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if calls is None and asked.body.get("tools") and answer.content is not None:
        calls = ((asked.tool, text),)
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for i, (name, arguments) in enumerate(calls)
        ]
    elif answer.content is not None:
        message["content"] = text
    if answer.refusal is not None:
        message["refusal"] = answer.refusal
    body: dict[str, Any] = {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": 1,
        "model": answer.model,
        "choices": [
            {"index": 0, "message": message, "finish_reason": answer.finish or ("tool_calls" if calls else "stop")}
        ],
    }
    if answer.usage is not None:
        total = sum(answer.usage.values())
        body["usage"] = {**answer.usage, "total_tokens": total}
    return body
