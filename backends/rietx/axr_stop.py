"""When does a fit stop before it has ended? When it takes too long, or nobody waits for it."""

from __future__ import annotations

import rietx as rx
from axr_wanted import is_wanted

__all__ = ["StopToken"]


class StopToken(rx.CancelToken):
    """What rietx asks before each evaluation."""

    __slots__ = ()

    def is_set(self) -> bool:
        """Return whether the fit shall stop."""
        return bool(super().is_set()) or not is_wanted()

    def __bool__(self) -> bool:
        return self.is_set()
