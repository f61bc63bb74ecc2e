"""Who sends what is in the outbox? Any process that runs a dispatcher; a message is claimed before it is sent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from autoxrd.errors import AutoxrdError
from autoxrd.hooks.addresses import Guard
from autoxrd.hooks.sending import new_client, transmit
from autoxrd.logs import get_logger
from autoxrd.store.service import outbox
from autoxrd.store.service.database import Database
from autoxrd.store.service.outbox import Outcome, Parcel

__all__ = ["Dispatcher"]

PERIOD_SECONDS = 1.0
_log = get_logger("hooks")


def _now() -> datetime:
    return datetime.now(UTC)


class Dispatcher:
    """Sends what is due, from a thread of its own or when it is told to.

    Args:
        database: with the outbox.
        guard: decides where may be sent.
        now: the time, by which attempts are due.
    """

    def __init__(self, database: Database, guard: Guard, *, now: Callable[[], datetime] = _now) -> None:
        self._database = database
        self._guard = guard
        self._now = now
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def sweep(self) -> int:
        """Send what is due now; return how many attempts were made.

        Raises:
            StorageError: the database cannot be reached.
        """
        parcels = outbox.due(self._database, self._now())
        outcomes = asyncio.run(self._sent(parcels)) if parcels else []
        for parcel, outcome in zip(parcels, outcomes, strict=True):
            outbox.note(self._database, parcel, outcome, self._now())
            if outcome.error is not None:
                _log.info("delivery_failed", delivery=parcel.id, status=outcome.status, error=outcome.error)
        return len(parcels)

    def start(self) -> None:
        """Begin to send from a thread."""
        self._thread.start()

    def close(self) -> None:
        """End; what is not sent stays in the outbox."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _sent(self, parcels: Sequence[Parcel]) -> list[Outcome]:
        """Send them side by side: a slow receiver holds no other up."""
        async with new_client() as client:
            return await asyncio.gather(*(transmit(client, self._guard, parcel, self._now()) for parcel in parcels))

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self.sweep():
                    continue
            except AutoxrdError as error:
                _log.warning("hooks_paused", code=error.code)
            self._stop.wait(PERIOD_SECONDS)
