"""May this action be tried at all? Rule 1 of the gate, before any engine runs; nothing here is guessed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from autoxrd.domain.action import Action, ActionKind
from autoxrd.domain.decision import GateCheck
from autoxrd.domain.naming import full_name
from autoxrd.domain.state import FitState
from autoxrd.gates.coupling import coupled_in_several, find_coupled
from autoxrd.gates.evidence import check_evidence
from autoxrd.gates.geometry import AngularRange, range_of
from autoxrd.gates.histograms import histograms_of
from autoxrd.gates.known import of_known_cell
from autoxrd.gates.limits import BoundIndex
from autoxrd.gates.metrics import GAIN_PREFIX
from autoxrd.gates.policy_model import Policy
from autoxrd.gates.predictions import check_predictions
from autoxrd.gates.selectors import canonical, is_selector, parse_selector, resolve, resolve_all
from autoxrd.gates.shapes import needs_histogram, shape_faults, shape_of
from autoxrd.gates.sites import Sites
from autoxrd.gates.tables import family_allowed

__all__ = ["PREFLIGHT_RULES", "REPLACEABLE", "identity", "known_parameters", "preflight"]

PREFLIGHT_RULES = (
    "preflight.parent",
    "preflight.stage",
    "preflight.selectors",
    "preflight.bounds",
    "preflight.evidence",
    "preflight.predictions",
    "preflight.coupled",
    "preflight.repeat",
)
"""Names of the checks, all of which `judge` wants to see."""

_WITHOUT_PARAMETERS = frozenset(
    {
        ActionKind.JOINT,
        ActionKind.ADD_PHASE,
        ActionKind.REMOVE_PHASE,
        ActionKind.EXCLUDE_REGION,
        ActionKind.SWITCH_PROFILE,
        ActionKind.BACKGROUND_MODEL,
    }
)
"""Kinds whose content stands in ``settings``, or that take what is free already."""

REPLACEABLE = frozenset(
    {
        "instrument.zero",
        "sample.displacement",
        "sample.transparency",
        "sample.roughness",
        "phase.size",
        "phase.strain",
        "phase.size_gauss",
        "phase.strain_gauss",
        "profile.S/L",
        "profile.H/L",
        "profile.SH/L",
    }
)
"""Families whose effect is absent at zero, so that another may stand in its place."""

_MOST_TERMS = 36
"""Most background coefficients that an engine takes (GSAS-II's limit)."""

_ROUGHNESS = "sample.roughness"
"""In the model only once it is freed."""

Fault = tuple[str, str]


def preflight(
    action: Action,
    parent: FitState,
    parent_id: str,
    *,
    policy: Policy,
    known_parameters: Sequence[str],
    constraints: Sequence[str] = (),
    rejected: Sequence[Action] = (),
    span: AngularRange | None = None,
) -> tuple[GateCheck, ...]:
    """Check an action against the record of the state it starts from; every fault is reported.

    Args:
        action: the proposal.
        parent: the state it starts from.
        parent_id: that state's id.
        policy: the rules.
        known_parameters: names of all parameters of the parent state.
        constraints: declared relations between parameters, e.g. ``phase.P.atom.Fe1.occupancy + ... = 1``.
        rejected: proposals from the same state that were rejected before.
        span: range of the pattern; read from the parent's features ``range.two_theta_min`` and
            ``range.two_theta_max`` where this is None.

    Returns:
        One check for each of `PREFLIGHT_RULES`, in that order.
    """
    added = _added(action, parent, known_parameters)
    span = span or range_of(parent)
    return (
        _check("parent", _parent(action, parent_id)),
        _check("stage", _stage(action, policy)),
        _check("selectors", _selectors(action, parent, policy, known_parameters)),
        _check("bounds", _bounds(action, policy, added)),
        check_evidence(action.evidence, parent, parent_id, policy=policy),
        check_predictions(action, parent, policy=policy),
        _check("coupled", _coupled(action, parent, policy, known_parameters, added, constraints, span)),
        _check("repeat", _repeat(action, rejected)),
    )


def known_parameters(state: FitState) -> list[str]:
    """Return the parameters that an action may name: those of the state, and what it may get: textures, roughness."""
    names = [p.name for p in state.parameters]
    more = [f"phase.{phase.name}.preferred_orientation" for phase in state.phases]
    several = histograms_of(state)
    if several:
        more = [full_name(histogram, name) for histogram in several for name in more]
    if GAIN_PREFIX + _ROUGHNESS in state.features:
        more.append(_ROUGHNESS)
    return names + [name for name in more if name not in names]


def identity(action: Action) -> tuple[object, ...]:
    """Return what makes two proposals the same: all but the rationale, spelling and the seventh digit."""
    return (
        action.kind,
        action.stage,
        tuple(sorted(_spelling(text) for text in action.parameters)),
        tuple(sorted((_spelling(b.selector), _digits(b.lower), _digits(b.upper)) for b in action.bounds)),
        tuple(sorted((key, str(value)) for key, value in action.settings.items())),
        tuple(
            sorted((e.feature, e.comparison, _digits(e.value), _digits(e.threshold), e.source) for e in action.evidence)
        ),
        tuple(sorted((p.metric, p.direction, _digits(p.minimum_effect)) for p in action.predictions)),
        action.parent,
    )


def _spelling(text: str) -> str:
    return canonical(text) if is_selector(text) else text


def _digits(value: float) -> str:
    return f"{value:.6g}"


def _check(rule: str, faults: Sequence[Fault]) -> GateCheck:
    return GateCheck(
        rule=f"preflight.{rule}",
        passed=not faults,
        codes=tuple(dict.fromkeys(code for code, _ in faults)),
        text="; ".join(text for _, text in faults),
    )


def _added(action: Action, parent: FitState, known: Sequence[str]) -> tuple[str, ...]:
    """Names that the action frees; a joint cycle without a list takes all that is free."""
    if action.kind is ActionKind.JOINT and not action.parameters:
        return resolve_all(parent.released, known)
    return resolve_all(action.parameters, known)


def _parent(action: Action, parent_id: str) -> list[Fault]:
    if action.parent == parent_id:
        return []
    return [("parent_mismatch", f"the action starts from {action.parent!r}, the job stands at {parent_id!r}")]


def _stage(action: Action, policy: Policy) -> list[Fault]:
    if action.kind in policy.stages.get(action.stage, ()):
        return []
    return [("kind_not_in_stage", f"{action.kind.value} does not belong to the stage {action.stage.value}")]


def _selectors(action: Action, parent: FitState, policy: Policy, known: Sequence[str]) -> list[Fault]:
    faults: list[Fault] = [("settings_invalid", why) for why in _settings(action, parent)]
    faults += _unplaced(action, histograms_of(parent))
    faults += [("settings_invalid", why) for why in _replaced(action, parent, known)]
    if not action.parameters and action.kind not in _WITHOUT_PARAMETERS:
        faults.append(("no_parameters", f"{action.kind.value} names no parameter"))
    free = set(resolve_all(parent.released, known))
    for text in action.parameters:
        if not is_selector(text):
            faults.append(("selector_invalid", f"{text[:80]!r} is not a selector"))
            continue
        faults.extend(_one_selector(text, action, policy, known, free))
        if action.kind is not ActionKind.FREEZE:
            faults += _certified(text, parent, known)
    return faults


def _certified(text: str, parent: FitState, known: Sequence[str]) -> list[Fault]:
    """Return what a selector would free of a certified cell."""
    found = dict.fromkeys(parse_selector(n).phase for n in resolve(text, known).names if of_known_cell(n, parent))
    return [("known_cell_freed", f"{text!r} would free the cell of {name}, which is certified") for name in found]


def _unplaced(action: Action, histograms: Sequence[str]) -> list[Fault]:
    """Return what does not say which of several histograms it is about; of one histogram nothing has to."""
    named = action.settings.get("histogram")
    if not histograms:
        return [] if named is None else [("settings_invalid", f"there is no histogram {named!r}: the job has one only")]
    known = ", ".join(histograms)
    texts = (text for text in (*action.parameters, *action.instead_of) if is_selector(text))
    faults: list[Fault] = [
        ("histogram_missing", f"{text!r} is of one histogram: histogram.H.{text}, H being {known}")
        for text in texts
        if not (meant := parse_selector(text)).of_sample and not meant.histogram
    ]
    if needs_histogram(action) and named not in histograms:
        faults.append(("histogram_missing", f"the setting 'histogram' of {action.kind.value} is one of {known}"))
    if action.kind is ActionKind.ADD_PHASE:
        faults.append(("settings_invalid", "a phase cannot be added to a fit of several histograms"))
    return faults


def _settings(action: Action, parent: FitState) -> list[str]:
    """Return what is wrong with the content of a kind that is no parameter."""
    content, names = action.settings, [phase.name for phase in parent.phases]
    if action.kind is ActionKind.REMOVE_PHASE:
        phase = content.get("phase")
        if phase not in names:
            return [f"there is no phase {phase!r} to remove"]
        return ["the only phase cannot be removed"] if len(names) == 1 else []
    if action.kind is ActionKind.ADD_PHASE:
        return _addition(content.get("phase"), content.get("replaces"), parent, names)
    if action.kind is ActionKind.EXCLUDE_REGION:
        lower, upper = content.get("lower_deg"), content.get("upper_deg")
        if not isinstance(lower, int | float) or not isinstance(upper, int | float):
            return ["a region has numbers for lower_deg and upper_deg"]
        if not -math.inf < lower < upper < math.inf:
            return ["a region has a finite lower_deg below its upper_deg"]
    faults = shape_faults(action)
    if faults:
        return faults
    shape = shape_of(action)
    if action.kind is ActionKind.BACKGROUND_MODEL and (shape is None or shape.edit == "background"):
        terms = content.get("terms")
        if not isinstance(terms, int) or not 1 <= terms <= _MOST_TERMS:
            return [f"a background has 1 to {_MOST_TERMS} terms, not {terms!r}"]
    return []


def _replaced(action: Action, parent: FitState, known: Sequence[str]) -> list[str]:
    """Return what is wrong with the effects that the action takes out of the model."""
    free = set(resolve_all(parent.released, known))
    faults = []
    for text in action.instead_of:
        found = resolve(text, known) if is_selector(text) else None
        if found is None or found.selector.family not in REPLACEABLE:
            faults.append(f"{text[:80]!r} is no effect that can be absent")
        elif text not in parent.released or not free & set(found.names):
            faults.append(f"{text!r} is not free, so nothing can take its place")
    return faults


def _addition(phase: object, replaces: object, parent: FitState, names: Sequence[str]) -> list[str]:
    """Return what is wrong with a phase to be added: only a candidate that was looked for can come in."""
    if phase in (None, *names):
        return [f"the phase to add, {phase!r}, is not named or is there already"]
    if f"candidate.{phase}" not in parent.features:
        return [f"{phase!r} is none of the job's candidates"]
    if replaces and replaces not in names:
        return [f"there is no phase {replaces!r} to take the place of"]
    return []


def _one_selector(text: str, action: Action, policy: Policy, known: Sequence[str], free: set[str]) -> list[Fault]:
    found = resolve(text, known)
    family = found.selector.family
    if not family_allowed(family, action.kind, policy):
        return [("selector_outside_kind", f"{text!r} ({family}) is nothing that {action.kind.value} may free")]
    if not found.names:
        if action.kind is ActionKind.ADD_PHASE and found.selector.phase == action.settings.get("phase"):
            return []
        return [("selector_unknown", f"{text!r} matches no parameter of the state")]
    held = [name for name in found.names if name not in free]
    if action.kind is ActionKind.FREEZE and len(held) == len(found.names):
        return [("freeze_not_free", f"{text!r} is not free, so it cannot be frozen")]
    if action.kind is ActionKind.JOINT and held:
        return [("joint_frees_new", f"{held[0]!r} was not free before; a joint cycle frees nothing new")]
    return []


def _bounds(action: Action, policy: Policy, added: Sequence[str]) -> list[Fault]:
    faults: list[Fault] = []
    names = set(added)
    for bound in action.bounds:
        if not bound.lower < bound.upper:
            room = f"{bound.lower} to {bound.upper}"
            faults.append(("bound_empty", f"the bound of {bound.selector!r} leaves no room: {room}"))
        if not is_selector(bound.selector):
            faults.append(("selector_invalid", f"{bound.selector[:80]!r} in a bound is not a selector"))
        elif added and bound.selector not in names and not resolve(bound.selector, added).names:
            faults.append(("bound_outside_action", f"{bound.selector!r} in a bound is nothing that the action frees"))
    if action.kind in policy.high_risk.kinds:
        index = BoundIndex(action.bounds)
        bare = [name for name in added if index.of(name) is None]
        if bare:
            more = f" and {len(bare) - 1} more" if len(bare) > 1 else ""
            faults.append(("bounds_missing", f"{action.kind.value} needs a bound for each parameter: {bare[0]}{more}"))
    return faults


def _coupled(
    action: Action,
    parent: FitState,
    policy: Policy,
    known: Sequence[str],
    added: Sequence[str],
    constraints: Sequence[str],
    span: AngularRange | None,
) -> list[Fault]:
    if action.kind is ActionKind.FREEZE:  # it only takes parameters out
        return []
    sites = Sites.of(parent)
    added = sites.closure(added, known)
    gone = set(resolve_all(action.instead_of, known))
    kept = [name for name in resolve_all(parent.released, known) if name not in gone]
    free = sites.closure((*kept, *added), known)
    several = histograms_of(parent)
    found = (
        coupled_in_several(free, added, parent, known, policy=policy, constraints=constraints)
        if several
        else find_coupled(free, added, parent, known, policy=policy, sites=sites, constraints=constraints, span=span)
    )
    faults: list[Fault] = []
    for finding in found:
        sides = " with ".join(side[0] + (f" (+{len(side) - 1})" if len(side) > 1 else "") for side in finding.members)
        faults.append(("coupled_parameters", f"{finding.rule.id}: {sides}: {finding.rule.why}"))
    return faults


def _repeat(action: Action, rejected: Sequence[Action]) -> list[Fault]:
    mine = identity(action)
    if any(identity(earlier) == mine for earlier in rejected):
        return [("repeat_of_rejected", "the same proposal from the same state was rejected before")]
    return []
