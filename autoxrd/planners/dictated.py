"""Who proposes when a person or an agent takes a step by hand? One action, given from outside."""

from __future__ import annotations

from typing import Literal

from autoxrd.domain.action import Action
from autoxrd.planners.protocol import GraphView, JobContext, Proposal

__all__ = ["Author", "Dictated"]

Author = Literal["person", "agent"]
"""Who dictates, as the record names it."""


class Dictated:
    """Proposes the one action that it was given; the gates treat it as any planner's.

    Args:
        action: the action.
        by: who gave it.
    """

    version = "1"

    def __init__(self, action: Action, by: Author) -> None:
        self.name: str = by
        self._action = action

    def propose(self, view: GraphView, context: JobContext) -> Proposal:
        """Return the action."""
        return Proposal(self._action)
