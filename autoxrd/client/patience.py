"""How long is a job waited for? Until a deadline, on the monotonic clock."""

from __future__ import annotations

import time

from autoxrd.errors import ServiceUnavailable

__all__ = ["Patience"]


class Patience:
    """A deadline.

    Args:
        job_id: for the message.
        seconds: from now; None without end.
    """

    def __init__(self, job_id: str, seconds: float | None) -> None:
        self._job_id = job_id
        self._seconds = seconds
        self._began = time.monotonic()

    def check(self) -> None:
        """Return while there is time left.

        Raises:
            ServiceUnavailable: ``wait_timeout``.
        """
        if self._seconds is not None and time.monotonic() - self._began > self._seconds:
            detail = f"Job {self._job_id} is not over after {self._seconds:g} s; it goes on, look again later."
            raise ServiceUnavailable("wait_timeout", detail)
