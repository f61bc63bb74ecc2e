"""Who may write to a job directory? One process at a time, held by an advisory file lock."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from autoxrd.errors import StorageError

__all__ = ["JobLock"]


class JobLock:
    """An exclusive ``flock``: the kernel frees it when the process ends, however it ends.

    Args:
        path: lock file, made where it is missing. Its text (a process id) only serves the message.

    Raises:
        StorageError: ``job_locked`` when another process holds it, ``job_not_writable`` when it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageError(
                "job_not_writable", f"Cannot write in {path.parent}: {error.strerror}. Choose a writable directory."
            ) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            self._descriptor = -1
            who = f"process {holder}" if holder.isdigit() else "another process"
            raise StorageError(
                "job_locked",
                f"{path.parent} is being written by {who}. Wait until it ends or stop it, or give another directory.",
                context={"holder": holder},
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode("ascii"), 0)

    def release(self) -> None:
        """Give the lock up; a second call does nothing. The file stays: removing it would open a race."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1
