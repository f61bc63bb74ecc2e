"""What runs in the process that does steps? A loop over JSON lines: one line asks for a step, one answers.

The process is started by `autoxrd.engines.launcher` with its own session and dies with its parent; the engines that it
starts die with it. Killing it is how a step is cancelled: what it had not recorded is computed again, or never.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from autoxrd.answering import answer_lines, own_answers
from autoxrd.errors import (
    AutoxrdError,
    EngineCrashed,
    EngineTimeout,
    EngineUnavailable,
    LeaseLost,
    PlannerError,
    StorageError,
)
from autoxrd.jobs.sessions import SessionCache
from autoxrd.jobs.work import Advance, Workshop
from autoxrd.logs import configure_logs
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database
from autoxrd.store.service.leases import Lease

__all__ = ["answer_to", "main", "run", "serve", "step_aside"]

MODEL_OUT = "model_unavailable"
"""The language model cannot be reached, and the job asked to wait for it."""

STEP_NICE = 5
"""Added to the niceness of a process that does steps."""

Advancer = Callable[[Lease], Advance]

_MACHINE = (EngineCrashed, EngineTimeout, EngineUnavailable)


def answer_to(message: Mapping[str, Any], advance: Advancer) -> dict[str, Any]:
    """Do the step that a message asks for and say how it ended.

    Returns:
        ``outcome`` is ``done`` (with ``step`` and ``queue``), ``failed`` (the job's fault, with ``problem``),
        ``machine`` (the disk or the database did not work: nothing is wrong with the job), ``waits`` (somebody has to
        resume it, with ``reason``), ``lost`` (the step broke,
        with ``reason``) or ``stale`` (somebody else holds the job).
    """
    lease = Lease(str(message["job"]), int(message["fence"]), str(message["holder"]))
    began = time.monotonic()
    try:
        done = advance(lease)
        answer: dict[str, Any] = {"outcome": "done", "step": done.step, "queue": done.queue}
    except LeaseLost as error:
        answer = {"outcome": "stale", "reason": error.code}
    except StorageError as error:
        answer = {"outcome": "machine", "reason": error.code, "detail": error.detail}
    except PlannerError as error:
        if error.code != MODEL_OUT:
            answer = {"outcome": "failed", "problem": {"code": error.code, "detail": error.detail}}
        else:
            answer = {"outcome": "waits", "reason": error.code, "detail": error.detail}
    except _MACHINE as error:
        answer = {"outcome": "lost", "reason": error.code, "detail": error.detail}
    except AutoxrdError as error:
        answer = {"outcome": "failed", "problem": {"code": error.code, "detail": error.detail}}
    except Exception:  # a fault of ours: the slot logs it, and the job is not to blame
        answer = {"outcome": "lost", "reason": "internal_error", "detail": traceback.format_exc(limit=-12)}
    return {"id": message.get("id"), "seconds": time.monotonic() - began, **answer}


def serve(advance: Advancer, requests: TextIO, answers: TextIO) -> None:
    """Answer each line until there are no more."""
    answer_lines(lambda message: answer_to(message, advance), requests, answers)


def step_aside() -> None:
    """Let what answers people go first on this machine: engines that are started from here inherit it."""
    os.nice(STEP_NICE)


def run(make: Callable[[Database, SessionCache, Settings], Advancer]) -> None:
    """Run the loop on this process's own streams.

    Args:
        make: gives what does a step, from the database, the engines that are kept alive and the settings.
    """
    step_aside()
    answers = own_answers()
    settings = Settings()
    configure_logs(settings)
    with Database(settings.database(), settings.artifacts_dir(), durable=False) as database:
        sessions = SessionCache(settings.engines_per_slot)
        try:
            serve(make(database, sessions, settings), sys.stdin, answers)
        finally:
            sessions.close()


def main() -> None:
    """Do what the workshop does."""
    run(lambda database, sessions, settings: Workshop(database, sessions, settings).advance)


if __name__ == "__main__":
    main()
