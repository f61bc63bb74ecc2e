"""Who proposes in a job that starts from another job's model? First all that is free together, then the planner.

The planner sees what the first step gave as the root of its graph, so that it goes on improving it as it would any
start. Where the gates refuse the first step, nothing of the model that was taken over is good here: the job ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from autoxrd.domain.action import ActionKind
from autoxrd.planners.protocol import Finish, Foreseeing, Forfeit, GraphView, JobContext, Planner, Proposal
from autoxrd.planners.rules.writing import joint_action

__all__ = ["Continuing"]

_T = TypeVar("_T")
REFUSED = "start_not_accepted"
"""Code of the objection with which a job ends when its start is refused."""


class Continuing:
    """Lets a planner go on from a model that was taken over.

    Args:
        inner: the planner.
    """

    def __init__(self, inner: Planner) -> None:
        self.name = inner.name
        self.version = inner.version
        self._inner = inner

    def propose(self, view: GraphView, context: JobContext) -> Proposal | Finish | Forfeit:
        """Return the next action, or the end."""
        return self._answer(view, context, self._inner.propose)

    def foresee(self, view: GraphView, context: JobContext) -> Proposal | Finish | Forfeit | None:
        """Return what the planner foresees, None where it does not."""
        return self._answer(view, context, self._inner.foresee) if isinstance(self._inner, Foreseeing) else None

    def _answer(
        self, view: GraphView, context: JobContext, ask: Callable[[GraphView, JobContext], _T]
    ) -> Proposal | Finish | _T:
        if not view.attempts:
            root = view.states[view.root]
            return Proposal(joint_action(root, view.root, root.released), {"start": "taken over"})
        first = view.attempts[0]
        if not first.accepted or first.candidate is None:
            text = f"the model that was taken over is refused here ({', '.join(first.decision.reasons)})"
            return Finish(view.root, "The start was refused.", objections=((REFUSED, text),))
        onward = replace(view, root=first.candidate, attempts=view.attempts[1:])
        answer = ask(onward, context)
        if not isinstance(answer, Proposal):
            return answer
        if answer.action.kind is ActionKind.JOINT and answer.action.parent == first.candidate:
            # the first step was a joint cycle of all that is free: a second one would repeat it
            return ask(view, context)
        return answer
