"""How the runner and its parent exchange data: JSON lines for commands, files for arrays.

Standard library and numpy only. Files are written under a temporary name and renamed, so that a
reader never sees half a file. Arrays travel as ``.npz`` without pickle.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

import numpy as np

__all__ = [
    "Refused",
    "canonical_json",
    "claim_stdout",
    "read_arrays",
    "read_json",
    "write_arrays",
    "write_bytes",
    "write_json",
]

PROTOCOL = 1


class Refused(Exception):
    """A command that cannot be carried out; ``kind`` tells the parent which error it is.

    Args:
        kind: ``input`` (the data or model cannot be used), ``diverged`` (the fit cannot go on),
            ``timeout`` (the soft limit was passed), ``unwanted`` (nobody waits for it) or ``internal``.
        code: stable machine-readable string.
        detail: one sentence for a person.
    """

    def __init__(self, kind: str, code: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.code = code
        self.detail = detail


def canonical_json(value: object) -> bytes:
    """Return the one JSON text of a value: sorted keys, no blanks, shortest round-trip floats."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that it is either absent or whole."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


def write_json(path: Path, value: object) -> None:
    """Write a JSON file atomically. NaN is refused: what is unknown is null."""
    write_bytes(path, canonical_json(value))


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    return json.loads(path.read_bytes())


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays to an npz file atomically, without pickle."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as handle:
        np.savez(handle, allow_pickle=False, **arrays)
    partial.replace(path)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read an npz file; an object array is refused by numpy."""
    with np.load(path, allow_pickle=False) as handle:
        return {name: handle[name] for name in handle.files}


def claim_stdout() -> TextIO:
    """Keep the real stdout for the protocol and point file descriptor 1 at stderr.

    After this, whatever a library prints ends in the log and cannot break the protocol.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return channel
