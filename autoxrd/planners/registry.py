"""Which planners are there, and what does each need?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autoxrd.errors import NotFound, UserInputError
from autoxrd.planners.llm import HybridPlanner, LlmPlanner, ModelDesk
from autoxrd.planners.protocol import Planner
from autoxrd.planners.rules import RulesPlanner

__all__ = ["PlannerInfo", "get_planner", "planner_info", "planner_names"]


@dataclass(frozen=True, slots=True)
class PlannerInfo:
    """A planner that can be chosen.

    Args:
        needs_model: it asks a language model.
    """

    name: str
    version: str
    needs_model: bool


_ALONE: dict[str, Callable[[], Planner]] = {"rules": RulesPlanner}
_ASKING: dict[str, Callable[[ModelDesk], Planner]] = {"llm": LlmPlanner, "hybrid": HybridPlanner}
_INFO = {
    "rules": PlannerInfo("rules", RulesPlanner.version, needs_model=False),
    "llm": PlannerInfo("llm", LlmPlanner.version, needs_model=True),
    "hybrid": PlannerInfo("hybrid", HybridPlanner.version, needs_model=True),
}


def planner_names() -> tuple[str, ...]:
    """Return the names of all planners."""
    return tuple(_INFO)


def planner_info(name: str) -> PlannerInfo:
    """Return what is known of a planner without making one.

    Raises:
        NotFound: there is no such planner.
    """
    if name not in _INFO:
        raise NotFound("planner_unknown", f"There is no planner {name!r}; known are {', '.join(_INFO)}.")
    return _INFO[name]


def get_planner(name: str, model: ModelDesk | None = None) -> Planner:
    """Return a planner by name.

    Args:
        name: one of `planner_names`.
        model: what a planner that asks a language model asks through.

    Raises:
        NotFound: there is no such planner.
        UserInputError: ``model_missing``, it asks a model and none was given.
    """
    if not planner_info(name).needs_model:
        return _ALONE[name]()
    if model is None:
        raise UserInputError("model_missing", f"The planner {name!r} asks a language model: name it with --model.")
    return _ASKING[name](model)
