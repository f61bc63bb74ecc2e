"""The expert with several histograms of one sample: each is asked as if it were alone, the sample's once.

The rules are asked of every histogram as it sees the graph: its own names bared, cells and atoms as they are. What they
propose is written down under full names. The step that comes first in the order of its histogram goes first, the larger
fall of chi^2 of the whole fit among equals. The first histogram sets the scale of lengths; a further one may have its
own wavelength (DIFC), or a strain where its cell differs otherwise than in one proportion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from autoxrd.domain.action import Action, ActionKind
from autoxrd.domain.naming import full_name, split_name
from autoxrd.domain.state import FitState
from autoxrd.gates.histograms import as_seen_by, bare_selectors, full_metric
from autoxrd.gates.known import known_cells
from autoxrd.gates.metrics import GAIN_PREFIX
from autoxrd.gates.selectors import parse_parameter
from autoxrd.gates.shapes import needs_histogram
from autoxrd.planners.protocol import AttemptView, Finish, GraphView, JobContext, Proposal
from autoxrd.planners.rules.catalogue import order_of
from autoxrd.planners.rules.displacements import anisotropic_action
from autoxrd.planners.rules.lengths import of_tube
from autoxrd.planners.rules.options import Option
from autoxrd.planners.rules.phase_notes import phase_notes
from autoxrd.planners.rules.phases import BEFORE_PHASES, next_change
from autoxrd.planners.rules.rivals import rival_action, rival_note, wavelength_note
from autoxrd.planners.rules.signatures import low_angle_loss
from autoxrd.planners.rules.thresholds import Thresholds
from autoxrd.planners.rules.writing import closing_cycle, write_action

if TYPE_CHECKING:
    from autoxrd.planners.rules.planner import RulesPlanner

__all__ = ["propose_several"]


def propose_several(rules: RulesPlanner, view: GraphView, context: JobContext) -> Proposal | Finish:
    """Return the next action for a fit of several histograms, or the end."""
    tip = view.current
    eyes = [_Eye(name, tip, view, context, first=not place) for place, name in enumerate(context.histograms)]
    if rules.joined(tip, view):
        return _finish(rules, eyes)
    if _first(rules, eyes, before=True) is None:
        change = _change(rules, eyes)
        if change is not None:
            return Proposal(change)
    best = _first(rules, eyes)
    if best is not None:
        eye, option = best
        action = write_action(option, eye.state, tip, rules.thresholds, context.structures)
        return Proposal(eye.full(action))
    tensors = anisotropic_action(tip, view, context, rules.thresholds)
    if tensors is not None:
        return Proposal(tensors)
    for eye in eyes:
        rival = rival_action(tip, eye.view, eye.context, rules.thresholds)
        if rival is not None:
            return Proposal(eye.full(rival))
    joint = closing_cycle(tip, view)
    return Proposal(joint) if joint is not None else _finish(rules, eyes)


class _Eye:
    """The job as one of its histograms sees it.

    Args:
        name: of the histogram.
        tip: the state that stands.
        view, context: of the whole.
        first: whether it sets the scale of lengths.
    """

    def __init__(self, name: str, tip: str, view: GraphView, context: JobContext, *, first: bool) -> None:
        self.name, self.tip, self.first = name, tip, first
        self._whole = view.states
        states = {key: as_seen_by(name, state) for key, state in view.states.items()}
        attempts = [replace(attempt, action=self._bared(attempt)) for attempt in view.attempts]
        self.view = GraphView(view.root, states, attempts, view.forfeits)
        self.context = replace(context, instrument=context.histograms[name])
        self.state = states[tip]

    def _bared(self, attempt: AttemptView) -> Action:
        """Return an action as this histogram sees it; one of another histogram only is none of the same kind here."""
        action = attempt.action
        named = str(action.settings.get("histogram", ""))
        owners = {"" if p is None or p.of_sample else p.histogram for p in map(parse_parameter, action.parameters)}
        owners |= {named} if named else set()
        foreign = bool(owners) and owners.isdisjoint({"", self.name}) and action.kind is not ActionKind.JOINT
        changes: dict[str, object] = {"parameters": bare_selectors(self.name, action.parameters)}
        if foreign:
            changes |= {"kind": ActionKind.FREEZE, "settings": {}}
            changes |= {} if action.parameters else {"parameters": (f"histogram.{named}.background",)}
        elif "instead_of" in action.settings:
            bared = bare_selectors(self.name, action.instead_of)
            changes["settings"] = {**action.settings, "instead_of": " ".join(bared)}
        return action.model_copy(update=changes)

    def full(self, action: Action) -> Action:
        """Return an action under full names, as it is tried and recorded."""
        state = self._whole[self.tip]
        settings = dict(action.settings)
        if "instead_of" in settings:
            settings["instead_of"] = " ".join(full_name(self.name, text) for text in action.instead_of)
        if needs_histogram(action):
            settings["histogram"] = self.name
        names = tuple(full_name(self.name, text) for text in action.parameters)
        own = settings.get("histogram") or any(split_name(text)[0] for text in names)
        return action.model_copy(
            update={
                "parameters": names,
                "bounds": tuple(
                    b.model_copy(update={"selector": full_name(self.name, b.selector)}) for b in action.bounds
                ),
                "settings": settings,
                "evidence": tuple(
                    e.model_copy(update={"feature": full_metric(self.name, e.feature, state)}) for e in action.evidence
                ),
                "predictions": tuple(
                    p.model_copy(update={"metric": full_metric(self.name, p.metric, state)}) for p in action.predictions
                ),
                "rationale": f"Histogram {self.name}. {action.rationale}" if own else action.rationale,
            }
        )

    def order(self, *, before: bool) -> tuple[tuple[str, ...], ...]:
        """Return the groups of its rules in order, all or those before the set of phases is asked."""
        order = order_of(self.context.instrument.radiation, self.context.instrument.geometry)
        return tuple(groups for groups in order if set(groups) <= BEFORE_PHASES) if before else order

    def allows(self, option: Option, thresholds: Thresholds) -> bool:
        """Return whether this histogram may have a scale of lengths of its own, and this one."""
        if not option.rule.several:
            return True
        if self.first:
            return option.rule.known and bool(known_cells(self.state)) and not of_tube(self.context.instrument)
        scaled = [name for name in self.state.released if _scale_kind(name)]
        if scaled and any(_scale_kind(name) != _scale_kind(option.selectors[0]) for name in scaled):
            return False
        strain, number = _strain_gain(self.state)
        constant = 0.0 if of_tube(self.context.instrument) else _constant_gain(self.state)
        price = thresholds.gain_per_parameter * max(number - 1, 0) / _points(self.state)
        wanted = "strain" if strain - constant > price else "constant"
        return scaled != [] or _scale_kind(option.selectors[0]) == (wanted if constant > 0.0 else "strain")


def _scale_kind(name: str) -> str:
    if name in ("instrument.wavelength", "instrument.difC"):
        return "constant"
    return "strain" if name.endswith(".strain_hydrostatic") else ""


def _points(state: FitState) -> float:
    """Return chi^2 over reduced chi^2: gains are shares of the one, their worth is counted in the other."""
    return float(max(state.quality.n_points - state.quality.n_parameters, 1))


def _strain_gain(state: FitState) -> tuple[float, int]:
    """Return summed gain and number of parameters of all phases' strains."""
    heads = [(n, f) for n, f in state.features.items() if n.startswith(f"{GAIN_PREFIX}phase.")]
    found = [f for n, f in heads if n.endswith(".strain_hydrostatic")]
    return sum(f.value or 0.0 for f in found), sum(f.n_used or 1 for f in found)


def _constant_gain(state: FitState) -> float:
    found = [state.features.get(f"{GAIN_PREFIX}instrument.{key}") for key in ("wavelength", "difC")]
    return max((f.value or 0.0 for f in found if f is not None), default=0.0)


def _first(rules: RulesPlanner, eyes: Sequence[_Eye], *, before: bool = False) -> tuple[_Eye, Option] | None:
    """Return the option that comes first in the order of its histogram, the largest drop among equals."""
    found: list[tuple[int, float, int, _Eye, Option]] = []
    for place, eye in enumerate(eyes):
        order = eye.order(before=before)
        option = rules.first_option(
            eye.tip, eye.view, eye.context, order, partial(eye.allows, thresholds=rules.thresholds)
        )
        if option is not None:
            rank = next(k for k, groups in enumerate(order) if option.rule.group in groups)
            found.append((rank, -option.drop, place, eye, option))
    if not found:
        return None
    best = min(found, key=lambda item: item[:3])
    return best[3], best[4]


def _change(rules: RulesPlanner, eyes: Sequence[_Eye]) -> Action | None:
    """Return the removal of a phase that no histogram shows, if there is one."""
    changes = [next_change(eye.tip, eye.view, eye.context, rules.phase_rules) for eye in eyes]
    first = changes[0]
    if first is None or any(c is None or c.settings != first.settings for c in changes):
        return None
    return eyes[0].full(first)


def _finish(rules: RulesPlanner, eyes: Sequence[_Eye]) -> Finish:
    losses = [(eye, low_angle_loss(eye.tip, eye.view, eye.context)) for eye in eyes]
    return Finish(
        state=eyes[0].tip,
        reason="No release promises a significant gain that has not been tried.",
        notes=tuple(_notes(rules, eyes)),
        warnings=tuple((lost[0], f"Histogram {eye.name}: {lost[1]}") for eye, lost in losses if lost is not None),
    )


def _notes(rules: RulesPlanner, eyes: Sequence[_Eye]) -> Iterator[tuple[str, str]]:
    for eye in eyes:
        note = rival_note(eye.tip, eye.view, rules.thresholds)
        if note is not None:
            yield note[0], f"Histogram {eye.name}: {note[1]}"
    first = eyes[0]
    scale = wavelength_note(first.tip, first.view, first.context)
    if scale is not None:  # none where a certified cell sets it
        yield scale[0], f"Histogram {first.name} sets the scale of lengths. {scale[1]}"
    yield from phase_notes(first.tip, first.view, first.context, rules.thresholds, rules.phase_rules)
