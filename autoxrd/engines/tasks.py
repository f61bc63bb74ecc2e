"""What can be computed ahead, and how is it known again? A command with its snapshot, named by what they hold."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from autoxrd.engines.executor import command_json
from autoxrd.engines.protocol import EngineCommand, Snapshot
from autoxrd.primitives import canonical_json

__all__ = ["Task", "Wish"]


@dataclass(frozen=True, slots=True)
class Wish:
    """Something that may be asked.

    Args:
        snapshot: from where.
        wanted: a command to execute, or kinds of files to export.
    """

    snapshot: Snapshot
    wanted: EngineCommand | tuple[str, ...]

    @property
    def key(self) -> str:
        """Equal for equal commands on equal snapshots."""
        wanted = command_json(self.wanted) if isinstance(self.wanted, EngineCommand) else list(self.wanted)
        payload = hashlib.sha256(self.snapshot.payload).hexdigest()
        return hashlib.sha256(canonical_json([self.snapshot.engine, payload, wanted]).encode()).hexdigest()

    def task(self) -> Task:
        """Return it as something to be done."""
        snapshot, wanted = self.snapshot, self.wanted
        if isinstance(wanted, EngineCommand):
            command = wanted
            return Task(self.key, lambda session: session.execute(snapshot, command))
        return Task(self.key, lambda session: session.export(snapshot, wanted))


@dataclass(eq=False, slots=True)
class Task:
    """A command on its way; changed under the pool's lock only.

    Args:
        key: of its wish, empty where it is never asked for twice.
        call: does it with a session.
    """

    key: str
    call: Callable[[Any], object]
    sure: bool = False
    """It is asked for, or will be."""
    wanted: bool = True
    guess: bool = False
    """It was begun before anybody was sure of it."""
    running: bool = False
    done: bool = False
    ended: bool = False
    """Nobody wants it any more: its process was told so, or ended."""
    useless_since: float | None = None
    outcome: object = None
    error: BaseException | None = field(default=None)

    @property
    def open(self) -> bool:
        """Whether nobody is at it yet."""
        return not (self.running or self.done or self.ended)
