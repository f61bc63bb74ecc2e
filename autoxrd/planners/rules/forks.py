"""Zero offset or specimen displacement? Both move all lines; the data decide, in two short branches.

Each branch frees one of the two and then the cell, because only with the cell free do the two laws differ by
what the data can show (a wrong cell mimics either). The branch with the lower chi^2 goes on; the two have equally
many parameters. That the two cells differ is part of the uncertainty, and is told.
"""

from __future__ import annotations

from dataclasses import dataclass

from autoxrd.domain.action import ActionKind
from autoxrd.planners.protocol import AttemptView, GraphView
from autoxrd.planners.rules.catalogue import Thresholds

__all__ = ["RIVALS", "Fork", "find_fork", "rival_note"]

RIVALS = (ActionKind.ZERO, ActionKind.DISPLACEMENT)


@dataclass(frozen=True, slots=True)
class Fork:
    """A state from which both position models may be tried.

    Args:
        state: where the branches start.
        branches: by kind, the first accepted attempt of the branch.
        tips: by kind, the last state of the branch: after its lattice step where there is one.
        ended: kinds whose branch has taken or lost its lattice step.
    """

    state: str
    branches: dict[ActionKind, AttemptView]
    tips: dict[ActionKind, str]
    ended: frozenset[ActionKind]


def find_fork(view: GraphView) -> Fork | None:
    """Return the fork of a graph: the parent of the first accepted zero or displacement step."""
    first = next((a for a in view.attempts if a.accepted and a.action.kind in RIVALS and _is_rival(a)), None)
    if first is None:
        return None
    branches: dict[ActionKind, AttemptView] = {}
    tips: dict[ActionKind, str] = {}
    ended: set[ActionKind] = set()
    for attempt in view.children(first.parent):
        if attempt.accepted and attempt.action.kind in RIVALS and attempt.candidate and _is_rival(attempt):
            kind = attempt.action.kind
            branches[kind] = attempt
            tips[kind] = attempt.candidate
            steps = [a for a in view.children(attempt.candidate) if a.action.kind is ActionKind.LATTICE]
            good = [a.candidate for a in steps if a.accepted and a.candidate]
            tips[kind] = good[0] if good else attempt.candidate
            if steps:
                ended.add(kind)
    return Fork(first.parent, branches, tips, frozenset(ended))


def _is_rival(attempt: AttemptView) -> bool:
    return any(p in ("instrument.zero", "sample.displacement") for p in attempt.action.parameters)


def winner(fork: Fork, view: GraphView) -> ActionKind:
    """Return the kind whose branch reached the lower Rwp (equal points and parameters)."""
    return min(fork.tips, key=lambda kind: (view.states[fork.tips[kind]].quality.rwp, kind.value))


def rival_note(fork: Fork, view: GraphView, thresholds: Thresholds) -> tuple[str, str] | None:
    """Tell how far the two position models are apart, and what they do to the cell."""
    if len(fork.tips) < 2:
        return None
    best = winner(fork, view)
    other = next(kind for kind in fork.tips if kind is not best)
    first, second = view.states[fork.tips[best]], view.states[fork.tips[other]]
    lines = []
    for mine, theirs in zip(first.phases, second.phases, strict=True):
        a, b = mine.cell["a"].value, theirs.cell["a"].value
        lines.append(f"{mine.name} a = {a:.5f} against {b:.5f} angstrom")
    close = second.quality.rwp <= first.quality.rwp * (1 + thresholds.rival_rwp)
    text = (
        f"{best.value} (Rwp {100 * first.quality.rwp:.2f} %) and {other.value} (Rwp {100 * second.quality.rwp:.2f} %)"
        f" were both tried with the cell free; {best.value} was kept. Under the two models: {'; '.join(lines)}."
    )
    if close:
        return (
            "position_model_ambiguous",
            text + " The data hardly tell them apart: take the difference as uncertainty.",
        )
    return ("position_model", text)
