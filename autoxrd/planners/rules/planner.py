"""Who proposes next? The expert walks its curriculum; where it stands is read off the graph, never remembered."""

from __future__ import annotations

from autoxrd.domain.action import ActionKind
from autoxrd.domain.instrument import Geometry
from autoxrd.planners.protocol import Finish, GraphView, JobContext, Proposal
from autoxrd.planners.rules.catalogue import CURRICULUM, Rule, Thresholds
from autoxrd.planners.rules.forks import Fork, find_fork, is_position_model, last_on_branch, ranking, rival_note
from autoxrd.planners.rules.memory import narrowed
from autoxrd.planners.rules.options import Option, options_of
from autoxrd.planners.rules.writing import joint_action, write_action

__all__ = ["RulesPlanner"]

_SCALE_GROUP, _POSITION_GROUP, _LAST_BRANCH_GROUP = 0, 1, 3


class RulesPlanner:
    """The deterministic expert. Equal graphs give equal proposals."""

    name = "rules"
    version = "1"

    def __init__(self, thresholds: Thresholds | None = None, curriculum: tuple[Rule, ...] = CURRICULUM) -> None:
        self._thresholds = thresholds or Thresholds()
        self._curriculum = curriculum

    def propose(self, view: GraphView, context: JobContext) -> Proposal | Finish:
        """Return the next action: both branches of an open fork first, then whatever has most to gain."""
        fork = find_fork(view) if context.instrument.geometry is Geometry.BRAGG_BRENTANO else None
        tip = view.current
        if fork is not None:
            chosen = self._chosen_branch(view)
            if chosen is None:
                open_branch = self._open_branch(fork, view, context)
                if open_branch is not None:
                    return open_branch
                chosen = fork.tips[ranking(fork, view, self._thresholds)[0][1]]
            tip = last_on_branch(chosen, view)
        if self._joined(tip, view):
            return self._finish(tip, fork, view)
        option = self._first_option(tip, view, context, self._groups)
        if option is not None:
            return Proposal(write_action(option, view.states[tip], tip, self._thresholds))
        return self._close(tip, fork, view)

    @property
    def _groups(self) -> tuple[int, ...]:
        return tuple(sorted({rule.group for rule in self._curriculum}))

    def _chosen_branch(self, view: GraphView) -> str | None:
        """Return where the first step beyond the fork's groups was tried: that branch had been chosen."""
        early = {r.kind for r in self._curriculum if r.group <= _LAST_BRANCH_GROUP}
        return next((a.parent for a in view.attempts if a.action.kind not in early), None)

    def _open_branch(self, fork: Fork, view: GraphView, context: JobContext) -> Proposal | None:
        """Carry each branch through position, cell and profile; then start the rival."""
        early = tuple(g for g in self._groups if _POSITION_GROUP < g <= _LAST_BRANCH_GROUP)
        for tip in fork.tips.values():
            option = self._first_option(tip, view, context, early)
            if option is not None:
                return Proposal(write_action(option, view.states[tip], tip, self._thresholds))
        option = self._best(fork.state, view, context, _POSITION_GROUP)
        tried = {is_position_model(a) for a in view.children(fork.state)}
        if option is None or set(option.selectors) & tried:
            return None
        return Proposal(write_action(option, view.states[fork.state], fork.state, self._thresholds))

    def _joined(self, tip: str, view: GraphView) -> bool:
        path = view.path(tip)
        return bool(path) and path[-1].action.kind is ActionKind.JOINT

    def _first_option(self, tip: str, view: GraphView, context: JobContext, groups: tuple[int, ...]) -> Option | None:
        for group in groups:
            option = self._best(tip, view, context, group)
            if option is not None:
                return option
        return None

    def _best(self, state: str, view: GraphView, context: JobContext, group: int) -> Option | None:
        """Return the option of a group with the largest expected drop that no lesson rules out."""
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
        if option.rule.group == _POSITION_GROUP:
            return any(name in ("instrument.zero", "sample.displacement") for name in released)
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
