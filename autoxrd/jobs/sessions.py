"""Which engine processes are kept alive between steps? The few used last, one for each job.

A session holds no state of the job: to lose one costs the start of an engine, nothing else.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from autoxrd.engines.protocol import EngineSession
from autoxrd.engines.registry import get_engine

__all__ = ["SessionCache", "start_engine"]


def start_engine(name: str) -> EngineSession:
    """Start an engine by name."""
    return get_engine(name).start()


class SessionCache:
    """Live engine sessions by job.

    Args:
        size: how many are kept; the one unused for longest is closed for a new one.
        start: starts an engine by name.
    """

    def __init__(self, size: int, start: Callable[[str], EngineSession] = start_engine) -> None:
        self._size = size
        self._start = start
        self._live: OrderedDict[str, EngineSession] = OrderedDict()

    def get(self, job_id: str, engine: str) -> EngineSession:
        """Return the session of a job, started where there is none."""
        session = self._live.get(job_id)
        if session is None:
            while len(self._live) >= self._size:
                self._live.popitem(last=False)[1].close()
            session = self._live[job_id] = self._start(engine)
        self._live.move_to_end(job_id)
        return session

    def drop(self, job_id: str) -> None:
        """Close the session of a job that is done."""
        session = self._live.pop(job_id, None)
        if session is not None:
            session.close()

    def close(self) -> None:
        """Close all."""
        for job_id in list(self._live):
            self.drop(job_id)
