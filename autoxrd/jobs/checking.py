"""How is a file looked at before it is submitted? By a child process with limits, one file at a time."""

from __future__ import annotations

import itertools
import sys
import threading
from dataclasses import dataclass
from typing import Any

from autoxrd.engines.launcher import ChildProcess, Launcher, LaunchSettings
from autoxrd.errors import EngineError, LimitExceeded, UserInputError
from autoxrd.primitives import safe_name

__all__ = ["KINDS", "Checker", "Finding"]

KINDS = ("pattern", "structure", "lattice", "instrument")
ADDRESS_SPACE_BYTES = 3 * 2**30
FILE_BYTES = 2**20
"""Largest file that the child may write: it needs none."""
READ_SECONDS = 20.0
WAIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What a file is, or why it cannot be used.

    Args:
        kind: what it was read as, one of `KINDS`; ``lattice``: a structure file of which only the cell counts.
        name: its name, made safe.
        found: what the reader says, see `autoxrd.jobs.precheck`; None where it refused.
        code, detail: why it refused.
    """

    kind: str
    name: str
    found: dict[str, Any] | None
    code: str = ""
    detail: str = ""


class Checker:
    """Looks at files; thread-safe. The child is started at the first file and again after one that broke it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._numbers = itertools.count(1)
        settings = LaunchSettings(address_space_bytes=ADDRESS_SPACE_BYTES, file_size_bytes=FILE_BYTES)
        self._launcher = Launcher(command=(sys.executable, "-P", "-m", "autoxrd.jobs.precheck"), settings=settings)

    def check(self, kind: str, name: str, data: bytes) -> Finding:
        """Look at one file.

        Args:
            kind: one of `KINDS`.
            name: as the client gave it.
            data: its bytes.

        Raises:
            UserInputError: ``kind_unknown``.
            LimitExceeded: ``check_busy``, others are being looked at.
        """
        if kind not in KINDS:
            raise UserInputError("kind_unknown", f"A file is a {', a '.join(KINDS)}, not {kind!r:.30}.")
        if not self._lock.acquire(timeout=WAIT_SECONDS):
            raise LimitExceeded("check_busy", "Other files are being checked: try again in a moment.")
        try:
            return self._checked(kind, safe_name(name), data)
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._drop()

    def _checked(self, kind: str, name: str, data: bytes) -> Finding:
        if self._child is None or not self._child.alive:
            self._drop()
            self._child = self._launcher.start()
        place = self._child.scratch / "file"
        place.mkdir(exist_ok=True)
        path = place / name
        message = {"id": next(self._numbers), "kind": kind, "path": str(path)}
        try:
            path.write_bytes(data)
            answer = self._child.request(message, READ_SECONDS)
        except EngineError as error:
            self._drop()
            limits = f"{READ_SECONDS:g} s and {ADDRESS_SPACE_BYTES // 2**30} GiB of memory"
            broke = f"it could not be read within {limits}: is it what it should be?"
            return Finding(kind, name, None, error.code, broke)
        finally:
            path.unlink(missing_ok=True)
        problem = answer.get("problem")
        if isinstance(problem, dict):
            return Finding(kind, name, None, str(problem["code"]), str(problem["detail"]))
        found = answer["found"]
        assert isinstance(found, dict)
        return Finding(kind, name, found)

    def _drop(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child = None
