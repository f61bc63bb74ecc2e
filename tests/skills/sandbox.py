"""Where the commands of a skill run: a folder of their own, in this process, as the command itself would answer."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from autoxrd.cli.main import main

_WIDTH = "200"
_STARTERS = ("refine",)
"""Commands that make a job; each is run once in a session, and what it made is copied after that."""


@dataclass(frozen=True)
class Answer:
    """What a command gave."""

    code: int
    out: str
    err: str


@dataclass
class Kitchen:
    """Jobs made so far, by the command that made them."""

    folder: Path
    done: dict[tuple[str, ...], tuple[Path, Answer]] = field(default_factory=dict)


class Sandbox:
    """A folder with the example's files in which commands are run.

    Args:
        folder: empty.
        kitchen: shared by all sandboxes of a session.
    """

    def __init__(self, folder: Path, kitchen: Kitchen) -> None:
        self.folder = folder
        self._kitchen = kitchen

    def run(self, line: str) -> Answer:
        """Run one command line that begins with ``autoxrd``."""
        words = shlex.split(line)
        assert words[0] == "autoxrd", line
        if len(words) > 1 and words[1] in _STARTERS and "--out" in words:
            return self._start(tuple(words[1:]))
        return run_command(words[1:], self.folder)

    def _start(self, words: tuple[str, ...]) -> Answer:
        out = words[words.index("--out") + 1]
        if words not in self._kitchen.done:
            answer = run_command(list(words), self.folder)
            if not (self.folder / out).is_dir():
                return answer
            kept = self._kitchen.folder / f"job{len(self._kitchen.done)}"
            shutil.copytree(self.folder / out, kept)
            self._kitchen.done[words] = (kept, answer)
            return answer
        kept, answer = self._kitchen.done[words]
        shutil.copytree(kept, self.folder / out)
        return answer


def run_command(words: list[str], folder: Path) -> Answer:
    """Run the command in this process, as it would run in a terminal of 200 columns."""
    out, err = io.StringIO(), io.StringIO()
    with _standing_in(folder), mock.patch("sys.argv", ["autoxrd", *words]):
        code = 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as stopped:
                code = int(stopped.code or 0)
    return Answer(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _standing_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        with mock.patch.dict(os.environ, {"COLUMNS": _WIDTH, "NO_COLOR": "1"}):
            yield
    finally:
        os.chdir(before)
