"""How a runner serves: one JSON command per line in, one JSON answer per line out.

Standard library only. No exception leaves a command: the parent decides what a failure means.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from axr_wanted import began
from axr_wire import Refused

__all__ = ["Command", "serve"]

Command = Callable[[dict[str, Any]], dict[str, Any]]


def serve(channel: TextIO, commands: Mapping[str, Command]) -> int:
    """Answer commands from standard input until ``shutdown`` or its end; return the exit status.

    Args:
        channel: where answers go.
        commands: what can be asked, by name.
    """
    for line in sys.stdin:
        if not line.strip():
            continue
        if '"shutdown"' in line and json.loads(line).get("command") == "shutdown":
            return 0
        channel.write(json.dumps(_answer(line, commands), allow_nan=False) + "\n")
        channel.flush()
    return 0


def _answer(line: str, commands: Mapping[str, Command]) -> dict[str, Any]:
    """Carry out one line and return the answer; no exception leaves."""
    identity: object = None
    try:
        request = json.loads(line)
        identity = request.get("id")
        began(request.get("folder"))
        started = time.perf_counter()
        answer = commands[request["command"]](request)
        return {"id": identity, "ok": True, "seconds": time.perf_counter() - started, **answer}
    except Refused as error:
        return _failure(identity, error.kind, error.code, error.detail)
    except MemoryError:
        return _failure(identity, "internal", "out_of_memory", "The engine reached its memory limit.")
    except (
        Exception,
        SystemExit,
    ) as error:  # a library's exit is not the end of the process
        traceback.print_exc()
        return _failure(identity, "internal", "engine_fault", f"{type(error).__name__}: {str(error)[:400]}")


def _failure(identity: object, kind: str, code: str, detail: str) -> dict[str, Any]:
    return {"id": identity, "ok": False, "kind": kind, "code": code, "detail": detail}
