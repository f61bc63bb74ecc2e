"""How is one step done for a leased job? By a host process, watched: heartbeat, cancellation, wall clock, death.

The slot itself computes nothing: it may live in a thread of the API, or in a child of Celery's pool. It kills its host
(and with it the engines) when the job is cancelled, when the lease is lost, and when it can no longer reach the
database for as long as a lease lasts, because then somebody else may hold the job.
"""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from autoxrd.domain.lifecycle import JobState
from autoxrd.engines.launcher import ChildProcess, Launcher, LaunchSettings
from autoxrd.errors import EngineError, LeaseLost, StorageError
from autoxrd.logs import get_logger
from autoxrd.settings import Settings
from autoxrd.store.service import leases
from autoxrd.store.service.database import Database
from autoxrd.store.service.leases import Ended, Lease

__all__ = ["Slot", "host_launcher"]

_log = get_logger("slot")


def host_launcher(settings: Settings) -> Launcher:
    """Return how a host is started; the limits of engines are set when the host starts them."""
    host = settings.step_host
    return Launcher(
        command=(sys.executable, "-P", *((host,) if host.endswith(".py") else ("-m", host))),
        settings=LaunchSettings(address_space_bytes=0, file_size_bytes=0),
        environment=settings.environment(),
    )


class Slot:
    """A place where one step is done at a time; for one thread at a time.

    Args:
        database: the service's database.
        settings: wall clocks.
        launcher: how to start the host; made from the settings where None.
    """

    def __init__(self, database: Database, settings: Settings, launcher: Launcher | None = None) -> None:
        self.holder = f"{socket.gethostname()[:60]}:{os.getpid()}:{secrets.token_hex(4)}"
        self._database = database
        self._settings = settings
        self._launcher = launcher or host_launcher(settings)
        self._numbers = itertools.count(1)
        self._child: ChildProcess | None = None

    def claim(self, queues: Sequence[str]) -> Lease | None:
        """Take the next job."""
        return leases.claim(self._database, self.holder, queues)

    def exchange(self, lease: Lease, ended: Ended, queues: Sequence[str]) -> Lease | None:
        """Give a job back and take the next."""
        return leases.exchange(self._database, lease, ended, queues)

    def release(self, lease: Lease, ended: Ended) -> None:
        """Give a job back."""
        leases.release(self._database, lease, ended)

    def warm(self) -> None:
        """Start the host ahead of its first step."""
        if self._child is None or not self._child.alive:
            self._kill()
            self._child = self._launcher.start()

    def close(self) -> None:
        """Kill the host and its engines."""
        self._kill()

    def step(self, lease: Lease) -> Ended:
        """Do one step of a leased job and say how it ended; the lease is still to be given back."""
        began = time.monotonic()
        try:
            answer = self._watched(lease, began)
        except LeaseLost as error:
            _log.warning("lease_lost", job=lease.job_id, fence=lease.fence, code=error.code)
            self._kill()
            return Ended()
        except EngineError as error:  # of the host, which the engines' launcher started
            _log.warning("host_lost", job=lease.job_id, code=error.code, context=error.context)
            self._kill()
            return Ended(seconds=time.monotonic() - began, lost=True, reason="host_died")
        # as the host says: that it had to be started first is not the owner's work, and would be charged as such
        return self._ended(lease, answer, float(answer.get("seconds", time.monotonic() - began)))

    def _watched(self, lease: Lease, began: float) -> Mapping[str, Any]:
        """Wait for the host's answer; an empty answer where the job is being cancelled."""
        self.warm()
        child = self._child
        assert child is not None
        message = {"id": next(self._numbers), "job": lease.job_id, "fence": lease.fence, "holder": lease.holder}
        child.send(message)
        seen = time.monotonic()
        while True:
            answer = child.receive(message, self._settings.heartbeat_seconds)
            if answer is not None:
                return answer
            now = time.monotonic()
            if now - began > self._settings.step_seconds:
                self._kill()
                return {"outcome": "lost", "reason": "step_wall_clock"}
            try:
                state = leases.beat(self._database, lease)
                seen = now
            except StorageError:
                if now - seen > self._settings.lease_seconds:
                    raise LeaseLost("lease_unknown", "The database was out of reach for too long.") from None
                continue
            if state is JobState.CANCELLING:
                self._kill()
                return {"outcome": "cancelled"}

    def _ended(self, lease: Lease, answer: Mapping[str, Any], seconds: float) -> Ended:
        outcome = answer.get("outcome")
        if outcome == "done":
            return Ended(seconds=seconds, queue=answer.get("queue"))
        _log.info("step_ended", job=lease.job_id, **{k: v for k, v in answer.items() if k != "id"})
        if outcome == "failed":
            return Ended(seconds=seconds, problem=dict(answer["problem"]))
        if outcome == "machine":
            return Ended(seconds=seconds, machine=True, reason=str(answer.get("reason")))
        if outcome == "waits":
            return Ended(seconds=seconds, waits=True, reason=str(answer.get("reason")))
        if outcome == "lost":
            return Ended(seconds=seconds, lost=True, reason=str(answer.get("reason")))
        return Ended(seconds=seconds)  # cancelled, or somebody else's job now

    def _kill(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child = None
