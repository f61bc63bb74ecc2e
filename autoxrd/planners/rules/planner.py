"""Who proposes next? The expert walks its curriculum; where it stands is read off the graph, never remembered."""

from __future__ import annotations

from autoxrd.domain.action import ActionKind
from autoxrd.domain.instrument import Geometry
from autoxrd.domain.state import FitState
from autoxrd.gates.metrics import background_terms
from autoxrd.planners.protocol import Finish, GraphView, JobContext, Proposal
from autoxrd.planners.rules.catalogue import CURRICULUM, EARLY_GROUPS, Rule, Thresholds, order_of
from autoxrd.planners.rules.forks import (
    Fork,
    find_fork,
    last_on_branch,
    models_of,
    position_model,
    ranking,
    rival_note,
)
from autoxrd.planners.rules.memory import narrowed
from autoxrd.planners.rules.options import Option, options_of
from autoxrd.planners.rules.writing import joint_action, write_action

__all__ = ["RulesPlanner"]

_LINEAR_KINDS = (ActionKind.SCALE, ActionKind.BACKGROUND)
_PLACING_GROUPS = {"linear", "shift", "cell"}
"""While lines stand in the wrong place, nothing else can be judged."""


class RulesPlanner:
    """The deterministic expert. Equal graphs give equal proposals."""

    name = "rules"
    version = "1"

    def __init__(self, thresholds: Thresholds | None = None, curriculum: tuple[Rule, ...] = CURRICULUM) -> None:
        self._thresholds = thresholds or Thresholds()
        self._curriculum = curriculum

    def propose(self, view: GraphView, context: JobContext) -> Proposal | Finish:
        """Return the next action: both branches of an open fork first, then whatever has most to gain."""
        fork = find_fork(view, models_of(context.instrument.geometry))
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
        order = order_of(context.instrument.radiation, context.instrument.geometry)
        option = self._first_option(tip, view, context, order)
        if option is not None:
            return Proposal(write_action(option, view.states[tip], tip, self._thresholds))
        return self._close(tip, fork, view)

    def _chosen_branch(self, view: GraphView) -> str | None:
        """Return where the first step beyond the fork's groups was tried: that branch had been chosen."""
        early = {r.kind for r in self._curriculum if r.group in EARLY_GROUPS} | {ActionKind.BACKGROUND}
        return next((a.parent for a in view.attempts if a.action.kind not in early), None)

    def _open_branch(self, fork: Fork, view: GraphView, context: JobContext) -> Proposal | None:
        """Carry each branch through position, cell and profile; then start the rival."""
        order = order_of(context.instrument.radiation, context.instrument.geometry)
        early = tuple(groups for groups in order if set(groups) <= set(EARLY_GROUPS) - {"shift"})
        for tip in fork.tips.values():
            option = self._first_option(tip, view, context, early)
            if option is not None:
                return Proposal(write_action(option, view.states[tip], tip, self._thresholds))
        return self._rival(fork, view, context)

    def _rival(self, fork: Fork, view: GraphView, context: JobContext) -> Proposal | None:
        """Start the other model, once: always in Bragg-Brentano geometry, elsewhere where both could not be had."""
        models = models_of(context.instrument.geometry)
        tried = {position_model(a, models) for a in view.children(fork.state)}
        flat = context.instrument.geometry is Geometry.BRAGG_BRENTANO
        for option in self._options(fork.state, view, context, ("shift", "asymmetry")):
            selector = option.selectors[0]  # each of these rules has one
            if selector in models and selector not in tried and (flat or self._refused(selector, view)):
                return Proposal(write_action(option, view.states[fork.state], fork.state, self._thresholds))
        return None

    def _refused(self, selector: str, view: GraphView) -> bool:
        """Return whether a model was refused beside the other because too much correlates."""
        return any(
            selector in a.action.parameters and "correlation_too_high" in a.decision.reasons for a in view.attempts
        )

    def _joined(self, tip: str, view: GraphView) -> bool:
        path = view.path(tip)
        return bool(path) and path[-1].action.kind is ActionKind.JOINT

    def _first_option(
        self, tip: str, view: GraphView, context: JobContext, order: tuple[tuple[str, ...], ...]
    ) -> Option | None:
        """Return the first group's best option, or a later one that promises far more once the lines are placed."""
        best: Option | None = None
        for groups in order:
            option = self._best(tip, view, context, groups)
            if option is None:
                continue
            if best is None:
                best = option
                if set(groups) & _PLACING_GROUPS:
                    return best
            elif option.drop > self._thresholds.dominance * best.drop:
                best = option
        return best

    def _best(self, state: str, view: GraphView, context: JobContext, groups: tuple[str, ...]) -> Option | None:
        """Return the best option of some groups, if there is one."""
        return next(iter(self._options(state, view, context, groups)), None)

    def _options(self, state: str, view: GraphView, context: JobContext, groups: tuple[str, ...]) -> list[Option]:
        """Return the options of some groups that no lesson rules out, the largest expected drop first."""
        found: list[Option] = []
        for rule in (r for r in self._curriculum if r.group in groups):
            if rule.always and any(a.action.kind in _LINEAR_KINDS for a in view.path(state)):
                continue
            for option in options_of(rule, view.states[state], context, self._thresholds):
                left = narrowed(option, state, view, self._thresholds)
                if left is not None and not self._excluded(left, view.states[state]):
                    found.append(left)
        return sorted(found, key=lambda o: (self._claim(o, view.states[state]), o.drop, o.rule.name), reverse=True)

    def _claim(self, option: Option, state: FitState) -> float:
        """Rank by what a cause alone explains of the offsets, far from the lines: there the linear gain misleads."""
        rms = state.features.get("position.rms")
        if rms is None or not rms.available or (rms.value or 0.0) <= self._thresholds.linear_rms:
            return 0.0
        cause = {"zero": "zero", "displacement": "displacement", "lattice": "cell"}.get(option.rule.name)
        feature = state.features.get(f"position.alone.{cause}") if cause else None
        if feature is None or not feature.available or feature.significance is None:
            return 0.0
        return feature.significance

    def _excluded(self, option: Option, state: FitState) -> bool:
        """Zero and displacement are rivals; an occupancy and the displacement parameter of its atom are too."""
        released = state.released
        if option.rule.kind is ActionKind.BACKGROUND_MODEL:
            wanted = background_terms(state) + option.n_parameters
            return "background" not in released or wanted > self._thresholds.most_terms
        if option.rule.group == "shift":
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
