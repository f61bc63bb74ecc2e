"""Which engines there are."""

from __future__ import annotations

from collections.abc import Callable

from autoxrd.engines.gsasii import GsasiiEngine
from autoxrd.engines.protocol import Engine
from autoxrd.engines.rietx import RietxEngine
from autoxrd.errors import NotFound

__all__ = ["engine_names", "get_engine"]

_FACTORIES: dict[str, Callable[[], Engine]] = {"rietx": RietxEngine, "gsasii": GsasiiEngine}


def engine_names() -> tuple[str, ...]:
    """Return the names of all engines, usable here or not."""
    return tuple(_FACTORIES)


def get_engine(name: str) -> Engine:
    """Return an engine by name.

    Raises:
        NotFound: there is no such engine.
    """
    if name not in _FACTORIES:
        raise NotFound("engine_unknown", f"There is no engine {name!r}; known are {', '.join(_FACTORIES)}.")
    return _FACTORIES[name]()
