"""How do steps run without a broker? Slots in threads of this process, each with a host process, and a reaper."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from autoxrd.engines.launcher import Launcher
from autoxrd.errors import AutoxrdError
from autoxrd.jobs.reaper import Reaper
from autoxrd.jobs.slot import Slot
from autoxrd.logs import get_logger
from autoxrd.settings import Settings
from autoxrd.store.service import leases
from autoxrd.store.service.database import Database
from autoxrd.store.service.leases import Ended, Lease

__all__ = ["QUEUES", "LocalDispatcher"]

QUEUES = ("engine", "model", "light")
LONGEST_PAUSE_SECONDS = 15.0
SLICE_SECONDS = 0.5
"""So long a slot takes step after step under one claim, before it asks whose turn it is: short steps need not pay for
that each time, and nobody waits longer for it than for a step of an engine."""

_log = get_logger("local")


class LocalDispatcher:
    """Runs steps until it is stopped.

    Args:
        database: the service's database.
        settings: number of slots and wall clocks.
        launcher: how a host is started; made from the settings where None.
    """

    def __init__(self, database: Database, settings: Settings, launcher: Launcher | None = None) -> None:
        self._database = database
        self._settings = settings
        self._slots = [Slot(database, settings, launcher) for _ in range(settings.slots)]
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()
        self._work = threading.Condition()

    def start(self) -> None:
        """Begin; hosts are started at once, so that the first job need not wait for their imports."""
        for slot in self._slots:
            self._begin(self._run, slot)
        self._begin(self._reap)

    def nudge(self) -> None:
        """Say that there may be work now."""
        with self._work:
            self._work.notify()

    def stop(self) -> None:
        """End: steps in flight are killed, and their jobs are taken up from the record at the next start."""
        self._stop.set()
        with self._work:
            self._work.notify_all()
        for slot in self._slots:
            slot.close()
        for thread in self._threads:
            thread.join(timeout=10.0)

    def _begin(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _run(self, slot: Slot) -> None:
        pause, lease = 0.0, None
        while not self._stop.is_set():
            try:
                if lease is None:
                    lease = self._next(slot)
                else:
                    lease, pause = self._step(slot, lease, pause)
            except AutoxrdError as error:
                _log.warning("slot_paused", code=error.code, detail=error.detail)
                lease, pause = None, _longer(pause)
            if pause:
                self._stop.wait(pause)
        slot.close()

    def _next(self, slot: Slot) -> Lease | None:
        if leases.waiting_jobs(self._database, QUEUES):
            lease = slot.claim(QUEUES)
            if lease is not None:
                return lease
        slot.warm()
        with self._work:
            if not self._stop.is_set():
                self._work.wait(self._settings.poll_seconds)
        return None

    def _step(self, slot: Slot, lease: Lease, pause: float) -> tuple[Lease | None, float]:
        ended = self._slice(slot, lease)
        if self._stop.is_set():
            slot.release(lease, Ended(machine=True, reason="service_stopped"))  # uncounted: nothing broke
            return None, 0.0
        if ended.machine:
            slot.release(lease, ended)
            return None, _longer(pause)
        return slot.exchange(lease, ended, QUEUES), 0.0

    def _slice(self, slot: Slot, lease: Lease) -> Ended:
        """Do steps of a leased job until the slice is over or one ended otherwise than well; return them as one."""
        began = time.monotonic()
        while True:
            ended = slot.step(lease)
            seconds = time.monotonic() - began
            if not ended.goes_on or seconds > SLICE_SECONDS or self._stop.is_set():
                return replace(ended, seconds=seconds)

    def _reap(self) -> None:
        reaper = Reaper(self._database, self._settings.lease_seconds)
        period = min(1.0, self._settings.lease_seconds / 4.0)
        while not self._stop.wait(period):
            try:
                if reaper.sweep():
                    self.nudge()
            except AutoxrdError as error:
                _log.warning("reaper_paused", code=error.code)
                time.sleep(period)


def _longer(pause: float) -> float:
    return min(max(2.0 * pause, 0.5), LONGEST_PAUSE_SECONDS)
