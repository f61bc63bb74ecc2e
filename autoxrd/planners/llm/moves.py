"""From the model's words to an action of ours: names looked up, bounds kept in range, preflight asked."""

from __future__ import annotations

from dataclasses import dataclass

from autoxrd.domain.action import Action, ActionKind, Bound, Evidence, Prediction
from autoxrd.gates.policy_model import Policy
from autoxrd.gates.preflight import known_parameters, preflight
from autoxrd.planners.llm.answer import AnswerAction, AnswerBound, Faults
from autoxrd.planners.llm.fencing import clean_text
from autoxrd.planners.llm.legal import Legal, legal_from
from autoxrd.planners.llm.observation import labels
from autoxrd.planners.protocol import GraphView
from autoxrd.planners.rules.writing import joint_action

__all__ = ["Checked", "check_actions"]

NARROWEST_BOUND = 0.25
"""Share of the legal range that a bound must leave open: a narrower one would write a value into the model."""

_LONGEST_RATIONALE = 800

Settings = dict[str, int | float | str | tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a ranked list.

    Args:
        legal: actions that may be tried, in the model's order.
        illegal: well-formed actions that preflight refuses.
        faults: what was wrong with the others, in the model's terms; None where nothing was.
    """

    legal: tuple[Action, ...]
    illegal: tuple[Action, ...] = ()
    faults: Faults | None = None


def check_actions(proposed: list[AnswerAction], view: GraphView, policy: Policy) -> Checked:
    """Translate and check each action of a ranked list."""
    good: list[Action] = []
    refused: list[Action] = []
    texts: list[str] = []
    code = ""
    for number, answer in enumerate(proposed, start=1):
        made = _action(answer, view, policy)
        if isinstance(made, Faults):
            code = code or made.code
            texts += [f"action {number}: {text}" for text in made.texts]
            continue
        wrong = _preflight_texts(made, view, policy)
        if not wrong:
            good.append(made)
            continue
        refused.append(made)
        code = code or "action_illegal"
        texts += [f"action {number}: {text}" for text in wrong]
    return Checked(tuple(good), tuple(refused), Faults(code, tuple(texts[:12])) if texts else None)


def _preflight_texts(action: Action, view: GraphView, policy: Policy) -> list[str]:
    parent = view.states[action.parent]
    rejected = [a.action for a in view.children(action.parent) if not a.accepted]
    checks = preflight(
        action,
        parent,
        action.parent,
        policy=policy,
        known_parameters=known_parameters(parent),
        rejected=rejected,
    )
    return [
        f"{', '.join(check.codes) or check.rule}: {clean_text(check.text, 300)}" for check in checks if not check.passed
    ]


def _action(answer: AnswerAction, view: GraphView, policy: Policy) -> Action | Faults:
    """Translate one action; every name must be one that was shown or could have been."""
    named = labels(view)
    parent_id = named.get(answer.start)
    if parent_id is None:
        shown = ", ".join(list(named)[-12:])
        return Faults("unknown_name", (f"there is no state {clean_text(answer.start, 24)!r}; states are {shown}",))
    parent = view.states[parent_id]
    legal = legal_from(parent, policy)
    kind = next((known for known in legal.stages if known.value == answer.kind), None)
    if kind is None:
        kinds = ", ".join(known.value for known in legal.stages)
        asked = clean_text(answer.kind, 40)
        return Faults("unknown_name", (f"{asked!r} is no kind on offer here; these are: {kinds}",))
    if kind is ActionKind.JOINT:
        joint = joint_action(parent, parent_id, parent.released)
        return joint.model_copy(update={"rationale": _rationale(answer)})
    wrong = _unknown_parameters(answer, kind, legal)
    settings = _settings(answer, kind, legal)
    bounds = _bounds(answer, kind, legal, {p.name: p.value for p in parent.parameters})
    idle = _idle_predictions(answer)
    faults = [part for part in (wrong, settings, bounds, idle) if isinstance(part, Faults)]
    if faults or isinstance(settings, Faults) or isinstance(bounds, Faults):
        return Faults(faults[0].code, tuple(text for fault in faults for text in fault.texts))
    return Action(
        kind=kind,
        stage=legal.stages[kind],
        parameters=tuple(dict.fromkeys(answer.parameters)),
        bounds=bounds,
        settings=settings,
        rationale=_rationale(answer),
        evidence=_evidence(answer, parent_id),
        predictions=_predictions(answer),
        parent=parent_id,
    )


def _evidence(answer: AnswerAction, source: str) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            feature=clean_text(claim.feature, 120) or "?",
            value=claim.value,
            comparison=claim.comparison,
            threshold=claim.threshold,
            source=source,
        )
        for claim in answer.evidence
    )


def _predictions(answer: AnswerAction) -> tuple[Prediction, ...]:
    return tuple(
        Prediction(metric=clean_text(p.metric, 120) or "?", direction=p.direction, minimum_effect=p.minimum_effect)
        for p in answer.predictions
    )


def _rationale(answer: AnswerAction) -> str:
    return clean_text(answer.rationale, _LONGEST_RATIONALE)


def _idle_predictions(answer: AnswerAction) -> Faults | None:
    idle = [clean_text(p.metric, 40) for p in answer.predictions if not p.minimum_effect > 0]
    return Faults("action_illegal", (f"minimum_effect must be above 0 ({', '.join(idle[:3])})",)) if idle else None


def _unknown_parameters(answer: AnswerAction, kind: ActionKind, legal: Legal) -> Faults | None:
    if kind in (ActionKind.BACKGROUND_MODEL, ActionKind.REMOVE_PHASE):
        return None if not answer.parameters else Faults("unknown_name", (f"{kind.value} takes no parameters",))
    allowed = legal.selectors(kind)
    unknown = [name for name in answer.parameters if name not in allowed]
    if not unknown:
        return None
    shown = ", ".join(allowed[:16]) + (f" and {len(allowed) - 16} more" if len(allowed) > 16 else "")
    names = ", ".join(repr(clean_text(name, 60)) for name in unknown[:4])
    return Faults("unknown_name", (f"{kind.value} cannot free {names}; it can free: {shown}",))


def _settings(answer: AnswerAction, kind: ActionKind, legal: Legal) -> Settings | Faults:
    """Return the settings of the kinds that have some; what the model gives beyond them is ignored."""
    if kind is ActionKind.BACKGROUND_MODEL:
        least, most = legal.terms or (0, 0)
        if answer.terms is None or not least <= answer.terms <= most:
            return Faults("action_illegal", (f"background_model needs 'terms' from {least} to {most}",))
        return {"terms": answer.terms}
    if kind is ActionKind.REMOVE_PHASE:
        if answer.phase not in legal.phases:
            return Faults("unknown_name", (f"remove_phase needs a 'phase' of {', '.join(legal.phases[:8])}",))
        return {"phase": answer.phase}
    if answer.instead_of:
        return _replacing(answer, legal)
    if kind is ActionKind.DISPLACEMENT_PARAMETERS and answer.equal:
        return _sharing(answer, legal)
    return _axis(answer, legal) if kind is ActionKind.PREFERRED_ORIENTATION and len(answer.parameters) == 1 else {}


def _replacing(answer: AnswerAction, legal: Legal) -> Settings | Faults:
    """Take effects out of the model for the one that is freed."""
    unknown = [name for name in answer.instead_of if name not in legal.replaceable]
    if unknown:
        shown = ", ".join(legal.replaceable[:12]) or "nothing"
        return Faults("unknown_name", (f"instead_of may name {shown}, not {clean_text(unknown[0], 60)!r}",))
    return {"instead_of": " ".join(dict.fromkeys(answer.instead_of))}


def _sharing(answer: AnswerAction, legal: Legal) -> Settings | Faults:
    """Let the atoms of each named phase share one displacement parameter."""
    offered = {f"phase.{phase}.uiso": phase for phase in legal.equal}
    if not answer.parameters or not set(answer.parameters) <= set(offered):
        return Faults("action_illegal", (f"with 'equal' the parameters are of: {', '.join(offered) or 'none here'}",))
    return {"equal": " ".join(offered[name] for name in dict.fromkeys(answer.parameters))}


def _axis(answer: AnswerAction, legal: Legal) -> Settings | Faults:
    phase = answer.parameters[0].split(".")[1] if answer.parameters[0].count(".") > 1 else ""
    axes = legal.axes.get(phase, ())
    if not axes and answer.axis is None:
        return {}
    axis = tuple(answer.axis or (axes[0] if axes else ()))
    if axis not in axes:
        shown = ", ".join(str(list(known)) for known in axes)
        return Faults("action_illegal", (f"the texture axis of {clean_text(phase, 40)} is one of {shown}",))
    return {"phase": phase, "axis": tuple(float(index) for index in axis)}


def _bounds(
    answer: AnswerAction, kind: ActionKind, legal: Legal, values: dict[str, float]
) -> tuple[Bound, ...] | Faults:
    """Return the bounds: the model's where they lie in the range, else the range itself."""
    given = {bound.selector: bound for bound in answer.bounds}
    texts = [
        f"{clean_text(name, 60)!r} takes no bounds of yours"
        for name in given
        if name not in legal.ranges or name not in answer.parameters
    ]
    made: list[Bound] = []
    for selector in dict.fromkeys(answer.parameters):
        room = legal.ranges.get(selector)
        if room is None or kind is ActionKind.FREEZE:
            continue
        bound = given.get(selector, AnswerBound(selector=selector, lower=room.lower, upper=room.upper))
        inside = room.lower <= bound.lower < bound.upper <= room.upper
        wide = bound.upper - bound.lower >= NARROWEST_BOUND * (room.upper - room.lower)
        holds = bound.lower <= values.get(selector, bound.lower) <= bound.upper
        if selector in given and not (inside and wide and holds):
            texts.append(
                f"the bounds of {selector} must lie within {room.lower:g} to {room.upper:g}, hold its present value "
                f"and leave open at least {100 * NARROWEST_BOUND:.0f} % of that range"
            )
        made.append(Bound(selector=selector, lower=bound.lower, upper=bound.upper))
    return Faults("action_illegal", tuple(texts[:6])) if texts else tuple(made)
