"""Whose worker is dead? A reaper watches heartbeat counters on its own monotonic clock and takes stale leases away."""

from __future__ import annotations

import time
from collections.abc import Callable

from autoxrd.logs import get_logger
from autoxrd.store.service import leases
from autoxrd.store.service.database import Database
from autoxrd.store.service.leases import Held

__all__ = ["Reaper"]

_log = get_logger("reaper")


class Reaper:
    """Takes leases that show no life; any number of reapers may run beside each other.

    Args:
        database: the service's database.
        lease_seconds: how long a heartbeat may stand still.
        clock: monotonic seconds. No wall clock: setting one must not end a lease, nor keep one.
    """

    def __init__(self, database: Database, lease_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._seen: dict[Held, float] = {}

    def sweep(self) -> list[str]:
        """Look once; return the jobs whose lease was taken away."""
        now = self._clock()
        held = leases.held(self._database)
        self._seen = {lease: self._seen.get(lease, now) for lease in held}
        stale = [lease for lease in held if now - self._seen[lease] > self._lease_seconds]
        taken = [lease.job_id for lease in stale if leases.expire(self._database, lease)]
        for job_id in taken:
            _log.warning("lease_expired", job=job_id)
        return taken

    def clear(self) -> list[str]:
        """Take every lease at once: for a process that knows that it is the only one, when it starts."""
        return [lease.job_id for lease in leases.held(self._database) if leases.expire(self._database, lease)]
