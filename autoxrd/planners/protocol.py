"""What is a planner: a pure function from the graph so far to the next action, or to the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.domain.instrument import Instrument
from autoxrd.domain.state import FitState
from autoxrd.domain.structure import CrystalStructure
from autoxrd.gates.policy_model import Policy

__all__ = ["AttemptView", "Finish", "Foreseeing", "Forfeit", "GraphView", "JobContext", "Planner", "Proposal"]


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a planner may know of the job beside the graph. No file name: it carries no physics.

    Args:
        instrument: radiation, geometry, starting profile.
        structures: all phases that may be in the model.
        candidates: names of those of which it is not known whether they are there.
        histograms: instrument of each, in order, where there are several; ``instrument`` is the first's.
        parameter_price: what one more free parameter costs in the policy's utility.
        policy: the rules of the gate, for a planner that checks its own proposals.
        texts: (what it is, text) from files and users. Untrusted: for a planner that can read, as data only.
    """

    instrument: Instrument
    structures: tuple[CrystalStructure, ...]
    parameter_price: float = 0.002
    policy: Policy | None = None
    texts: tuple[tuple[str, str], ...] = ()
    candidates: tuple[str, ...] = ()
    histograms: Mapping[str, Instrument] = field(default_factory=dict)


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
    """The graph so far: states by id (accepted and rejected), attempts in order, the root's id.

    ``forfeits`` is the number of steps that were lost without an action (`Forfeit`).
    """

    root: str
    states: Mapping[str, FitState]
    attempts: Sequence[AttemptView]
    forfeits: int = 0

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
    """The next action.

    Args:
        action: what to try.
        source: what the record should say of where it came from, JSON content; no times.
        files: artifacts behind it, by name (exchanges with a model).
    """

    action: Action
    source: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forfeit:
    """No action came of this step; it is lost.

    Args:
        code: why, a stable code.
        text: one sentence.
    """

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to propose.

    Args:
        state: the state that the planner holds for the result.
        reason: one sentence.
        notes: (code, text) pairs a reader must know, e.g. rivals that the data cannot tell apart.
        warnings: (code, text) pairs that make an accepted result one with warnings.
        objections: (code, text) pairs for which an accepted result becomes an abstention. Never the reverse.
    """

    state: str
    reason: str
    notes: tuple[tuple[str, str], ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    objections: tuple[tuple[str, str], ...] = ()


class Planner(Protocol):
    """Proposes one action at a time; holds no state between calls, so that a job can be resumed anywhere."""

    name: str
    version: str

    def propose(self, view: GraphView, context: JobContext) -> Proposal | Finish | Forfeit:
        """Return the next action, the end, or that this step brought nothing."""
        ...


@runtime_checkable
class Foreseeing(Planner, Protocol):
    """A planner that can be asked at no cost what it would do if the graph were another one."""

    def foresee(self, view: GraphView, context: JobContext) -> Proposal | Finish | Forfeit | None:
        """Return what `propose` would most likely return, None where it cannot be said; nothing is kept of it."""
        ...
