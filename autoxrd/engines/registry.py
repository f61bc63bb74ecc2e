"""Which engines there are."""

from __future__ import annotations

from collections.abc import Callable

from autoxrd.engines.gsasii import GsasiiEngine
from autoxrd.engines.pool import MOST_RUNNERS, RunnerPool
from autoxrd.engines.protocol import Engine, EngineSession
from autoxrd.engines.rietx import RietxEngine
from autoxrd.errors import NotFound, UserInputError

__all__ = ["checked_runners", "engine_names", "get_engine", "start_engine"]

_FACTORIES: dict[str, Callable[[], GsasiiEngine | RietxEngine]] = {"rietx": RietxEngine, "gsasii": GsasiiEngine}


def engine_names() -> tuple[str, ...]:
    """Return the names of all engines, usable here or not."""
    return tuple(_FACTORIES)


def get_engine(name: str) -> Engine:
    """Return an engine by name.

    Raises:
        NotFound: there is no such engine.
    """
    return _made(name)


def start_engine(name: str, runners: int = 1) -> EngineSession:
    """Start a session of an engine with one process or several; what it computes does not depend on their number.

    Args:
        name: of the engine.
        runners: largest number of processes, 1 to `MOST_RUNNERS`.

    Raises:
        NotFound: there is no such engine.
        EngineUnavailable: it cannot be used here.
        UserInputError: ``runners_invalid``.
    """
    engine, runners = _made(name), checked_runners(runners)
    return engine.start() if runners == 1 else RunnerPool(engine.start, runners)


def checked_runners(runners: int) -> int:
    """Return a number of processes if a job may have so many.

    Raises:
        UserInputError: ``runners_invalid``.
    """
    if 1 <= runners <= MOST_RUNNERS:
        return runners
    text = f"A job uses 1 to {MOST_RUNNERS} engine processes, not {runners}: give 2 where a second core is free."
    raise UserInputError("runners_invalid", text)


def _made(name: str) -> GsasiiEngine | RietxEngine:
    if name not in _FACTORIES:
        raise NotFound("engine_unknown", f"There is no engine {name!r}; known are {', '.join(_FACTORIES)}.")
    return _FACTORIES[name]()
