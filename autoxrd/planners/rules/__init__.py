"""The rules planner: a deterministic expert, the default."""

from autoxrd.planners.rules.planner import RulesPlanner

__all__ = ["RulesPlanner"]
