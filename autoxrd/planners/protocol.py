"""What is a planner: a pure function from the graph so far to the next action, or to the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.domain.instrument import Instrument
from autoxrd.domain.state import FitState
from autoxrd.domain.structure import CrystalStructure

__all__ = ["AttemptView", "Finish", "GraphView", "JobContext", "Planner", "Proposal"]


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a planner may know of the job beside the graph. No file name, no title: they carry no physics.

    Args:
        instrument: radiation, geometry, starting profile.
        structures: the candidate phases.
        parameter_price: what one more free parameter costs in the policy's utility.
    """

    instrument: Instrument
    structures: tuple[CrystalStructure, ...]
    parameter_price: float = 0.002


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One edge of the graph as a planner sees it."""

    ordinal: int
    parent: str
    action: Action
    decision: Decision
    candidate: str | None

    @property
    def accepted(self) -> bool:
        """Whether the gate accepted it."""
        return self.decision.accepted


@dataclass(frozen=True, slots=True)
class GraphView:
    """The graph so far: states by id (accepted and rejected), attempts in order, the root's id."""

    root: str
    states: Mapping[str, FitState]
    attempts: Sequence[AttemptView]

    def children(self, state: str) -> list[AttemptView]:
        """Return the attempts made from a state, in order."""
        return [attempt for attempt in self.attempts if attempt.parent == state]

    def path(self, state: str) -> list[AttemptView]:
        """Return the accepted attempts from the root to a state, in order."""
        steps: list[AttemptView] = []
        while state != self.root:
            step = next(a for a in self.attempts if a.accepted and a.candidate == state)
            steps.append(step)
            state = step.parent
        return steps[::-1]

    @property
    def current(self) -> str:
        """The last accepted state, the root where there is none."""
        accepted = [a.candidate for a in self.attempts if a.accepted and a.candidate]
        return accepted[-1] if accepted else self.root


@dataclass(frozen=True, slots=True)
class Proposal:
    """The next action."""

    action: Action


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to propose.

    Args:
        state: the state that the planner holds for the result.
        reason: one sentence.
        notes: (code, text) pairs a reader must know, e.g. rivals that the data cannot tell apart.
    """

    state: str
    reason: str
    notes: tuple[tuple[str, str], ...] = ()


class Planner(Protocol):
    """Proposes one action at a time; holds no state between calls, so that a job can be resumed anywhere."""

    name: str
    version: str

    def propose(self, view: GraphView, context: JobContext) -> Proposal | Finish:
        """Return the next action or the end."""
        ...
