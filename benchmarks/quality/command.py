"""Run the command as a user does, and keep its answer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Answer", "ask", "words_of"]

_COMMAND = (sys.executable, "-P", "-c", "from autoxrd.cli.main import main; main()")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command gave.

    Args:
        code: exit code.
        content: its JSON, empty where it gave none.
        error: what it said on standard error.
        seconds: wall time.
    """

    code: int
    content: dict[str, Any]
    error: str
    seconds: float


def ask(words: Sequence[str]) -> Answer:
    """Run ``autoxrd WORDS --json``."""
    began = time.monotonic()
    done = subprocess.run([*_COMMAND, *words, "--json"], capture_output=True, text=True, check=False)
    try:
        content = json.loads(done.stdout)
    except json.JSONDecodeError:
        content = {}
    return Answer(done.returncode, content, done.stderr.strip(), time.monotonic() - began)


def words_of(case: dict[str, Any], data: Path) -> list[str]:
    """Return the words of a case: its pattern, structures, candidates and options, files under the data folder."""
    words = [str(data / case["pattern"])]
    for option, key in (("--structure", "structures"), ("--candidate", "candidates")):
        for name in case.get(key, ()):
            paths = sorted((data / name).parent.glob((data / name).name)) if "*" in name else [data / name]
            words += [word for path in paths for word in (option, str(path))]
    return words + [str(data / word) if "/" in word else word for word in case.get("options", ())]
