"""Which planners there are."""

from __future__ import annotations

from collections.abc import Callable

from autoxrd.errors import NotFound
from autoxrd.planners.protocol import Planner
from autoxrd.planners.rules import RulesPlanner

__all__ = ["get_planner", "planner_names"]

_FACTORIES: dict[str, Callable[[], Planner]] = {"rules": RulesPlanner}


def planner_names() -> tuple[str, ...]:
    """Return the names of all planners."""
    return tuple(_FACTORIES)


def get_planner(name: str) -> Planner:
    """Return a planner by name.

    Raises:
        NotFound: there is no such planner.
    """
    if name not in _FACTORIES:
        raise NotFound("planner_unknown", f"There is no planner {name!r}; known are {', '.join(_FACTORIES)}.")
    return _FACTORIES[name]()
