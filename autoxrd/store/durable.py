"""How do bytes reach the disk so that a kill or a power cut leaves the old file or the new one, never a part?"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

__all__ = ["sync_directory", "write_durable"]


def sync_directory(directory: Path) -> None:
    """Flush a directory's entries: without it a new name can be lost although the file's bytes are safe."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durable(path: Path, data: bytes, *, scratch: Path) -> None:
    """Write a whole file by temporary file, fsync and atomic rename.

    Args:
        path: where the file shall be; its directory exists.
        data: all of its bytes.
        scratch: existing directory on the same file system for the temporary file.

    Raises:
        OSError: the file system refused (full, read-only, no permission); nothing is left behind.
    """
    temporary = scratch / f"{os.getpid()}-{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
