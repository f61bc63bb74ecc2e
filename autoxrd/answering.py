"""How does a child process of ours answer? A line of JSON for each line that it reads, and nothing else on its output.

The other side is `autoxrd.engines.launcher`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

__all__ = ["answer_lines", "own_answers"]


def own_answers() -> TextIO:
    """Keep standard output for answers: a stray print of any library must not be taken for one, and goes to the log."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def answer_lines(
    answer: Callable[[Mapping[str, Any]], Mapping[str, Any]], requests: Iterable[str], answers: TextIO
) -> None:
    """Answer each line until there are no more."""
    for line in requests:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()
