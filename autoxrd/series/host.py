"""What runs in a process that refines a chunk of a series? A loop over JSON lines: one asks for a pattern, one answers.

Started by `autoxrd.engines.launcher`, dies with its parent; what it had recorded of a job is gone on with next time.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from autoxrd.agent.inputs import Request
from autoxrd.answering import answer_lines, own_answers
from autoxrd.engines.launcher import Launcher, LaunchSettings
from autoxrd.engines.registry import get_engine
from autoxrd.errors import AutoxrdError
from autoxrd.report.series_model import PatternRow
from autoxrd.series.ordering import Place
from autoxrd.series.work import refine_place

__all__ = ["answer_to", "host_launcher", "main", "task_of"]

_REQUEST = TypeAdapter(Request)
_PLACE = TypeAdapter(Place)

Refiner = Callable[[Request, Place, Path, PatternRow | None], PatternRow]


def host_launcher() -> Launcher:
    """Return how a host is started; the limits of engines are set when the host starts them."""
    return Launcher(
        command=(sys.executable, "-P", "-m", "autoxrd.series.host"),
        settings=LaunchSettings(address_space_bytes=0, file_size_bytes=0),
        environment={n: v for n, v in os.environ.items() if n.startswith("AUTOXRD_")},
    )


def task_of(request: Request, place: Place, folder: Path, before: PatternRow | None) -> dict[str, Any]:
    """Return the message that asks for a pattern."""
    return {
        "request": _REQUEST.dump_python(request, mode="json"),
        "place": _PLACE.dump_python(place, mode="json"),
        "folder": str(folder),
        "before": None if before is None else before.model_dump(mode="json"),
    }


def answer_to(message: Mapping[str, Any], refine: Refiner) -> dict[str, Any]:
    """Refine the pattern that a message asks for.

    Returns:
        ``row``, or ``problem`` (with ``code`` and ``detail``) where the series cannot go on.
    """
    try:
        before = message["before"]
        row = refine(
            _REQUEST.validate_python(message["request"]),
            _PLACE.validate_python(message["place"]),
            Path(str(message["folder"])),
            None if before is None else PatternRow.model_validate(before),
        )
        answer: dict[str, Any] = {"row": row.model_dump(mode="json")}
    except AutoxrdError as error:
        answer = {"problem": {"code": error.code, "detail": error.detail}}
    except Exception:  # a fault of ours: the parent must hear of it and not wait
        answer = {"problem": {"code": "internal_error", "detail": traceback.format_exc(limit=-8)}}
    return {"id": message.get("id"), **answer}


def main() -> None:
    """Run the loop on this process's own streams."""
    answers = own_answers()
    first = sys.stdin.readline()
    if not first:
        return
    session = get_engine(str(json.loads(first)["request"]["engine"])).start()

    def refine(request: Request, place: Place, folder: Path, before: PatternRow | None) -> PatternRow:
        return refine_place(request, place, folder, before, session)

    try:
        answer_lines(lambda message: answer_to(message, refine), chain([first], sys.stdin), answers)
    finally:
        session.close()


if __name__ == "__main__":
    main()
