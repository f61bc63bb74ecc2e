"""Who proposes next? The expert walks its curriculum; where it stands is read off the graph, never remembered."""

from __future__ import annotations

from collections.abc import Callable

from autoxrd.domain.action import Action, ActionKind
from autoxrd.domain.state import FitState
from autoxrd.gates.known import known_cells
from autoxrd.gates.metrics import background_terms
from autoxrd.planners.protocol import Finish, GraphView, JobContext, Proposal
from autoxrd.planners.rules.backing import standing, step_back
from autoxrd.planners.rules.catalogue import CURRICULUM, Rule, order_of
from autoxrd.planners.rules.halos import halo_options
from autoxrd.planners.rules.memory import narrowed, released_by
from autoxrd.planners.rules.options import Option, options_of
from autoxrd.planners.rules.phase_notes import phase_notes
from autoxrd.planners.rules.phases import BEFORE_PHASES, PhaseRules, left_in, next_change, spoilers
from autoxrd.planners.rules.placing import placing_action
from autoxrd.planners.rules.remaining import misfit_note
from autoxrd.planners.rules.rivals import rival_action, rival_note, wavelength_note
from autoxrd.planners.rules.several import propose_several
from autoxrd.planners.rules.signatures import low_angle_loss, surface_argued
from autoxrd.planners.rules.thresholds import Thresholds
from autoxrd.planners.rules.writing import closing_cycle, write_action

__all__ = ["RulesPlanner"]

_LINEAR_KINDS = (ActionKind.SCALE, ActionKind.BACKGROUND)
_PLACING_GROUPS = {"shift", "cell"}
"""While lines stand in the wrong place, nothing else can be judged."""
_CAUSES = {"zero": "zero", "displacement": "displacement", "lattice": "cell"}
"""What of the measured offsets a rule is about."""


class RulesPlanner:
    """The deterministic expert. Equal graphs give equal proposals."""

    name = "rules"
    version = "1"

    def __init__(self, thresholds: Thresholds | None = None, curriculum: tuple[Rule, ...] = CURRICULUM) -> None:
        self.thresholds = thresholds or Thresholds()
        self.phase_rules = PhaseRules()
        self._curriculum = curriculum

    def propose(self, view: GraphView, context: JobContext) -> Proposal | Finish:
        """Return the next action: whatever has most to gain, then the rival of the position model, then the end."""
        if context.histograms:
            return propose_several(self, view, context)
        tip = standing(view)
        if self.joined(tip, view):
            return self._finish(tip, view, context)
        order = order_of(context.instrument.radiation, context.instrument.geometry)
        placing = self._far(tip, view, context, order)
        if placing is not None:
            return Proposal(placing)
        change = self._change_of_phases(tip, view, context, order)
        if change is not None:
            return Proposal(change)
        earlier = self._before(tip, view, context, order)
        if earlier is not None:
            return Proposal(earlier)
        option = self.first_option(tip, view, context, order)
        if option is not None:
            return Proposal(write_action(option, view.states[tip], tip, self.thresholds, context.structures))
        rival = rival_action(tip, view, context, self.thresholds)
        return Proposal(rival) if rival is not None else self._close(tip, view, context)

    def foresee(self, view: GraphView, context: JobContext) -> Proposal | Finish:
        """Return what `propose` returns: a proposal costs milliseconds and leaves no trace."""
        return self.propose(view, context)

    def _far(self, tip: str, view: GraphView, context: JobContext, order: tuple[tuple[str, ...], ...]) -> Action | None:
        """Return the profile match that brings far lines in, once no release that would place them is left."""
        action = placing_action(tip, view, self.thresholds)
        if action is None:
            return None
        first = tuple(groups for groups in order if set(groups) <= {"linear", *_PLACING_GROUPS, "asymmetry"})
        return action if self.first_option(tip, view, context, first) is None else None

    def _change_of_phases(
        self, tip: str, view: GraphView, context: JobContext, order: tuple[tuple[str, ...], ...]
    ) -> Action | None:
        """Return the change of the set of phases that is due: once lines and widths have settled.

        An absent phase leaves at once where it spoils a step, and absent ones leave one after another: beside one that
        stays the steps that it spoiled would be spoiled again.
        """
        before = tuple(groups for groups in order if set(groups) <= BEFORE_PHASES)
        path = view.path(tip)
        placed = not self._options(tip, view, context, tuple(_PLACING_GROUPS))
        removed = bool(path) and path[-1].action.kind is ActionKind.REMOVE_PHASE
        early = removed or bool(spoilers(tip, view, freed=placed))
        settled = self.first_option(tip, view, context, before) is None
        if not (settled or early):
            return None
        change = next_change(tip, view, context, self.phase_rules)
        return change if settled or (change is not None and change.kind is ActionKind.REMOVE_PHASE) else None

    def _before(
        self, tip: str, view: GraphView, context: JobContext, order: tuple[tuple[str, ...], ...]
    ) -> Action | None:
        """Return a step that was refused here for widths freed before it, asked from where these were held."""
        back = step_back(tip, view)
        if back is None:
            return None
        refused, before = back
        options = (o for groups in order for o in self._options(before, view, context, groups))
        option = next((o for o in options if set(o.selectors) & released_by(refused.action)), None)
        if option is None:
            return None
        action = write_action(option, view.states[before], before, self.thresholds, context.structures)
        reason = f" It was refused for widths that were freed in the meantime, and is asked from before ({before[:8]})."
        return action.model_copy(update={"rationale": action.rationale + reason})

    def joined(self, tip: str, view: GraphView) -> bool:
        """Return whether a state is that of the closing joint cycle."""
        path = view.path(tip)
        return bool(path) and path[-1].action.kind is ActionKind.JOINT

    def first_option(
        self,
        tip: str,
        view: GraphView,
        context: JobContext,
        order: tuple[tuple[str, ...], ...],
        allowed: Callable[[Option], bool] = lambda _: True,
    ) -> Option | None:
        """Return the first group's best option, or a later one that promises far more where the lines overlap.

        Args:
            tip: the state to start from.
            view: the graph.
            context: of the job.
            order: groups of rules in their order.
            allowed: says of an option whether it may be taken at all.
        """
        best: Option | None = None
        placed = self._placed(view.states[tip])
        for groups in order:
            option = next((o for o in self._options(tip, view, context, groups) if allowed(o)), None)
            if option is None:
                continue
            if best is None:
                best = option
                if "linear" in groups or (not placed and set(groups) & _PLACING_GROUPS):
                    return best
            elif not option.rule.patient and option.drop > self.thresholds.dominance * best.drop:
                best = option
        return best

    def _placed(self, state: FitState) -> bool:
        """Return whether calculated and observed lines overlap, so that widths and intensities can be judged."""
        rms = state.features.get("position.rms")
        return rms is not None and rms.available and (rms.value or 0.0) <= self.thresholds.linear_rms

    def _options(self, state: str, view: GraphView, context: JobContext, groups: tuple[str, ...]) -> list[Option]:
        """Return the options of some groups that no lesson rules out, the largest expected drop first."""
        found: list[Option] = []
        for rule in (r for r in self._curriculum if r.group in groups):
            begun = rule.always and any(a.action.kind in _LINEAR_KINDS for a in view.path(state))
            if begun and not self._placed(view.states[state]):
                continue
            found_by = halo_options if rule.halo else options_of
            options = found_by(rule, view.states[state], context, self.thresholds)
            for option in _scales(options, self.thresholds) if begun else options:
                left = narrowed(option, state, view, self.thresholds)
                if rule.name == "surface" and not surface_argued(state, view):
                    continue
                if left is not None and not self._excluded(left, view.states[state]):
                    found.append(left)
        return sorted(found, key=lambda o: (self._claim(o, view.states[state]), o.drop, o.rule.name), reverse=True)

    def _claim(self, option: Option, state: FitState) -> float:
        """Rank by what a cause alone explains of the offsets, far from the lines: there the linear gain misleads."""
        rms = state.features.get("position.rms")
        if rms is None or not rms.available or self._placed(state):
            return 0.0
        cause = _CAUSES.get(option.rule.name)
        if option.rule.known and known_cells(state):
            cause = "cell"
        feature = state.features.get(f"position.alone.{cause}") if cause else None
        if feature is None or not feature.available or feature.significance is None:
            return 0.0
        return feature.significance

    def _excluded(self, option: Option, state: FitState) -> bool:
        """Zero and displacement are rivals; an occupancy and the displacement parameter of its atom are too."""
        released = state.released
        if option.rule.kind is ActionKind.BACKGROUND_MODEL and not option.rule.halo:
            wanted = background_terms(state) + option.n_parameters
            return "background" not in released or wanted > self.thresholds.most_terms
        if option.rule.group == "shift":
            return any(name in ("instrument.zero", "sample.displacement") for name in released)
        partners = {"occupancy": "uiso", "uiso": "occupancy"}
        for selector in option.selectors:
            base, _, quantity = selector.partition("@")[0].rpartition(".")
            if quantity in partners and f"{base}.{partners[quantity]}" in released:
                return True
            if (option.rule.shared_uiso or option.rule.parts_uiso) and any(
                s.startswith(base) and s.endswith(".occupancy") for s in released
            ):
                return True
            if quantity == "occupancy" and f"{base.split('.atom.')[0]}.uiso" in released:
                return True
        return False

    def _close(self, tip: str, view: GraphView, context: JobContext) -> Proposal | Finish:
        """Propose the joint cycle once; end when it was refused."""
        joint = closing_cycle(tip, view)
        return Proposal(joint) if joint is not None else self._finish(tip, view, context)

    def _finish(self, tip: str, view: GraphView, context: JobContext) -> Finish:
        state = view.states[tip]
        found = (rival_note(tip, view, self.thresholds), wavelength_note(tip, view, context), misfit_note(state))
        told = (low_angle_loss(tip, view, context), left_in(state, self.phase_rules))
        phases = phase_notes(tip, view, context, self.thresholds, self.phase_rules)
        return Finish(
            state=tip,
            reason="No release promises a significant gain that has not been tried.",
            notes=(*(note for note in found if note is not None), *phases),
            warnings=tuple(warning for warning in told if warning is not None),
        )


def _scales(options: list[Option], thresholds: Thresholds) -> list[Option]:
    """Return what is left of the linear parameters once lines are in place: scales that were refused out of place.

    All together, and each by itself: one phase whose lines are still out of place spoils the step of all.
    """
    found = []
    for option in options:
        held = option.without(frozenset(s for s in option.selectors if not s.endswith(".scale")))
        found.append(held)
        if len(held.selectors) > 1:
            alone = [held.without(frozenset(held.selectors) - {selector}) for selector in held.selectors]
            found += [one for one in alone if one.drop >= thresholds.relative_drop]
    return found
