"""How often may one key ask? A token bucket for each key, in each process."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from autoxrd.errors import LimitExceeded

__all__ = ["RateLimit"]

KEPT = 10_000


class RateLimit:
    """Token buckets by name; thread-safe.

    Args:
        per_second: sustained rate; a burst may be twice as large.
        clock: monotonic seconds.
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._burst = max(2.0 * per_second, 1.0)
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> None:
        """Count one request.

        Raises:
            LimitExceeded: ``rate``; the context says after how many seconds to ask again.
        """
        now = self._clock()
        with self._lock:
            tokens, then = self._buckets.pop(name, (self._burst, now))
            tokens = min(self._burst, tokens + (now - then) * self._rate)
            allowed = tokens >= 1.0
            self._buckets[name] = (tokens - 1.0 if allowed else tokens, now)
            if len(self._buckets) > KEPT:
                self._buckets.popitem(last=False)
        if not allowed:
            wait = (1.0 - tokens) / self._rate
            detail = f"Too many requests: {self._rate:g} a second are served. Ask again a little later."
            raise LimitExceeded("rate", detail, context={"retry_after_seconds": wait})
