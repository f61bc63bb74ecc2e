"""What is thrown away, and when? Jobs past their time, then bytes that nothing names, once an hour."""

from __future__ import annotations

import threading
from datetime import timedelta

from autoxrd.errors import AutoxrdError
from autoxrd.logs import get_logger
from autoxrd.store.service.database import Database
from autoxrd.store.service.retention import expire, sweep

__all__ = ["Housekeeper", "tidy"]

PERIOD_SECONDS = 3600.0

_log = get_logger("housekeeping")


def tidy(database: Database, retention_days: float | None) -> dict[str, int]:
    """Delete what is past its time and sweep; return how much it was.

    Raises:
        StorageError: the database cannot be reached.
    """
    jobs = [] if retention_days is None else expire(database, timedelta(days=retention_days))
    swept = sweep(database)
    return {"jobs": len(jobs), "files": swept.files, "bytes": swept.bytes}


class Housekeeper:
    """Tidies up from a thread of its own; several do no harm.

    Args:
        database: of the service.
        retention_days: how long a job is kept after it is over; None for ever.
    """

    def __init__(self, database: Database, retention_days: float | None) -> None:
        self._database = database
        self._retention_days = retention_days
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin; the first time is after a while, when the service has settled."""
        self._thread.start()

    def close(self) -> None:
        """End."""
        self._stop.set()
        self._thread.join(timeout=10.0)

    def _run(self) -> None:
        while not self._stop.wait(PERIOD_SECONDS):
            try:
                _log.info("tidied", **tidy(self._database, self._retention_days))
            except (AutoxrdError, OSError) as error:
                _log.warning("tidying_failed", detail=str(error)[:200])
