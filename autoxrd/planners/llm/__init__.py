"""The language-model planners: `llm` asks at each step, `hybrid` where the rules are stuck."""

from autoxrd.planners.llm.hybrid import HybridPlanner
from autoxrd.planners.llm.planner import LlmPlanner, ModelDesk
from autoxrd.planners.llm.settings import LlmBudget, LlmSettings

__all__ = ["HybridPlanner", "LlmBudget", "LlmPlanner", "LlmSettings", "ModelDesk"]
