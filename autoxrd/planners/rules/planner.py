"""Who proposes next? The expert walks its curriculum; where it stands is read off the graph, never remembered."""

from __future__ import annotations

from autoxrd.domain.action import ActionKind
from autoxrd.domain.instrument import Geometry
from autoxrd.planners.protocol import Finish, GraphView, JobContext, Proposal
from autoxrd.planners.rules.catalogue import CURRICULUM, Rule, Thresholds
from autoxrd.planners.rules.forks import RIVALS, Fork, find_fork, rival_note, winner
from autoxrd.planners.rules.memory import narrowed
from autoxrd.planners.rules.options import Option, options_of
from autoxrd.planners.rules.writing import joint_action, write_action

__all__ = ["RulesPlanner"]

_SCALE_GROUP, _POSITION_GROUP, _LATTICE_GROUP = 0, 1, 2


class RulesPlanner:
    """The deterministic expert. Equal graphs give equal proposals."""

    name = "rules"
    version = "1"

    def __init__(self, thresholds: Thresholds | None = None, curriculum: tuple[Rule, ...] = CURRICULUM) -> None:
        self._thresholds = thresholds or Thresholds()
        self._curriculum = curriculum

    def propose(self, view: GraphView, context: JobContext) -> Proposal | Finish:
        """Return the next action: finish the open fork first, then the first group that has something to gain."""
        fork = find_fork(view)
        if fork is not None and context.instrument.geometry is Geometry.BRAGG_BRENTANO:
            pending = self._pending_branch(fork, view, context)
            if pending is not None:
                return pending
        tip = self._tip(fork, view)
        if self._joined(tip, view):
            return self._finish(tip, fork, view)
        option = self._first_option(tip, view, context)
        if option is not None:
            return Proposal(write_action(option, view.states[tip], tip, self._thresholds))
        return self._close(tip, fork, view)

    def _pending_branch(self, fork: Fork, view: GraphView, context: JobContext) -> Proposal | None:
        """Propose what the fork still lacks: a lattice step on a branch, or the rival itself."""
        for kind in RIVALS:
            if kind in fork.branches and kind not in fork.ended:
                tip = fork.tips[kind]
                option = self._best(tip, view, context, _LATTICE_GROUP)
                if option is not None:
                    return Proposal(write_action(option, view.states[tip], tip, self._thresholds))
        if self._has_moved_on(fork, view):
            return None
        option = self._best(fork.state, view, context, _POSITION_GROUP)
        return (
            None
            if option is None
            else Proposal(write_action(option, view.states[fork.state], fork.state, self._thresholds))
        )

    def _has_moved_on(self, fork: Fork, view: GraphView) -> bool:
        """A branch that went beyond its lattice step has been chosen: the fork is closed."""
        steps = [step for tip in fork.tips.values() for step in view.children(tip)]
        return any(step.action.kind is not ActionKind.LATTICE for step in steps)

    def _tip(self, fork: Fork | None, view: GraphView) -> str:
        """Return the state to go on from: the current one, or the winning branch's when it has just been decided."""
        current = view.current
        if fork is None or current not in fork.tips.values():
            return current
        return fork.tips[winner(fork, view)]

    def _joined(self, tip: str, view: GraphView) -> bool:
        path = view.path(tip)
        return bool(path) and path[-1].action.kind is ActionKind.JOINT

    def _first_option(self, tip: str, view: GraphView, context: JobContext) -> Option | None:
        for group in sorted({rule.group for rule in self._curriculum}):
            option = self._best(tip, view, context, group)
            if option is not None:
                return option
        return None

    def _best(self, state: str, view: GraphView, context: JobContext, group: int) -> Option | None:
        """Return the option of a group with the largest expected drop that is not ruled out by a lesson."""
        if group == _SCALE_GROUP and any(a.accepted and a.action.kind is ActionKind.SCALE for a in view.path(state)):
            return None
        found: list[Option] = []
        for rule in (r for r in self._curriculum if r.group == group):
            for option in options_of(rule, view.states[state], context, self._thresholds):
                left = narrowed(option, state, view, self._thresholds)
                if left is not None and not self._excluded(left, state, view):
                    found.append(left)
        return max(found, key=lambda o: (o.drop, o.rule.name)) if found else None

    def _excluded(self, option: Option, state: str, view: GraphView) -> bool:
        """Zero and displacement are rivals; an occupancy and the displacement parameter of its atom are too."""
        released = view.states[state].released
        if option.rule.kind in RIVALS and option.rule.group == _POSITION_GROUP:
            return any(s in ("instrument.zero", "sample.displacement") for s in released)
        partners = {"occupancy": "uiso", "uiso": "occupancy"}
        for selector in option.selectors:
            base, _, quantity = selector.rpartition(".")
            if quantity in partners and f"{base}.{partners[quantity]}" in released:
                return True
        return False

    def _close(self, tip: str, fork: Fork | None, view: GraphView) -> Proposal | Finish:
        """Propose the joint cycle once; end when it was refused."""
        if any(a.action.kind is ActionKind.JOINT for a in view.children(tip)) or not view.states[tip].released:
            return self._finish(tip, fork, view)
        return Proposal(joint_action(view.states[tip], tip, view.states[tip].released))

    def _finish(self, tip: str, fork: Fork | None, view: GraphView) -> Finish:
        note = rival_note(fork, view, self._thresholds) if fork is not None else None
        return Finish(
            state=tip,
            reason="No release promises a significant gain that has not been tried.",
            notes=() if note is None else (note,),
        )
