"""How is an option written down as an action? Evidence and predictions come from the recorded numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from autoxrd.domain.action import Action, ActionKind, Bound, Evidence, Prediction, Stage
from autoxrd.domain.state import FitState
from autoxrd.domain.structure import CrystalStructure
from autoxrd.gates.known import known_cells
from autoxrd.gates.metrics import GAIN_PREFIX, background_terms
from autoxrd.gates.selectors import parse_selector
from autoxrd.planners.protocol import GraphView
from autoxrd.planners.rules.bounding import bounds_of
from autoxrd.planners.rules.halos import halo_action
from autoxrd.planners.rules.options import DIRECTED, EQUAL_UISO, Option, bare, significant
from autoxrd.planners.rules.thresholds import Thresholds

__all__ = ["closing_cycle", "joint_action", "write_action"]


def write_action(
    option: Option, state: FitState, state_id: str, thresholds: Thresholds, structures: Sequence[CrystalStructure] = ()
) -> Action:
    """Write the action with its evidence (the gains and features that argue for it) and its predictions.

    Args:
        option: what is released.
        state: the state that it starts from.
        state_id: its id.
        thresholds: numbers of judgement.
        structures: as given, for how far atoms of a mixture may go.
    """
    if option.rule.halo:
        return halo_action(option, state, state_id, thresholds)
    best = max(range(len(option.gains)), key=lambda i: (option.gains[i], option.selectors[i]))
    gain = GAIN_PREFIX + option.selectors[best]
    value = option.gains[best]
    seen_gain = gain + EQUAL_UISO if option.rule.shared_uiso else gain
    evidence = [_claim(seen_gain, value, min(thresholds.relative_drop / 4, 0.5 * value), state_id)]
    predictions = [
        Prediction(metric=gain, direction="decrease", minimum_effect=thresholds.fraction_promised * value),
        Prediction(
            metric="rwp",
            direction="decrease",
            minimum_effect=thresholds.fraction_rwp * state.quality.rwp * (1.0 - math.sqrt(1.0 - min(value, 0.999))),
        ),
    ]
    seen = [name for name in option.rule.features if significant(state.features.get(name), thresholds)]
    for name in seen[:2]:
        level = float(state.features[name].value or 0.0)
        evidence.append(_claim(name, level, 0.5 * abs(level), state_id))
    bounds, settings = _bounds(option, state), _settings(option, state)
    if option.rule.kind is ActionKind.POSITIONS:
        bounds += _places(option, state, structures, thresholds)
    kind = _kind(option, option.selectors[best])
    more_terms = kind is ActionKind.BACKGROUND_MODEL
    return Action(
        kind=kind,
        stage=option.rule.stage,
        parameters=() if more_terms else tuple(map(bare, option.selectors)),
        bounds=bounds,
        settings=settings,
        rationale=_rationale(option, state, gain, value, seen),
        evidence=tuple(evidence),
        predictions=tuple(predictions),
        parent=state_id,
    )


def _kind(option: Option, best: str) -> ActionKind:
    """Return the kind of an action; linear parameters of which the background has most to gain are one of it."""
    linear = best == "background" and option.rule.kind is not ActionKind.PROFILE_MATCH
    return ActionKind.BACKGROUND if linear else option.rule.kind


def joint_action(state: FitState, state_id: str, selectors: tuple[str, ...]) -> Action:
    """Write the closing joint cycle: all that earlier steps released, to a tight convergence."""
    rwp = state.quality.rwp
    shift = state.convergence.max_shift_over_esd
    evidence = [_claim("rwp", rwp, 0.0, state_id)]
    minimum = max(1e-3, 0.5 * shift) if shift else 1e-3
    return Action(
        kind=ActionKind.JOINT,
        stage=Stage.FINAL_AUDIT,
        parameters=selectors,
        rationale="All released parameters together to full convergence, so that every esd belongs to one minimum.",
        evidence=tuple(evidence),
        predictions=(Prediction(metric="max_shift_over_esd", direction="decrease", minimum_effect=minimum),),
        parent=state_id,
    )


def closing_cycle(tip: str, view: GraphView) -> Action | None:
    """Return the joint cycle that closes a job; None where it was refused, or nothing is free."""
    state = view.states[tip]
    if any(a.action.kind is ActionKind.JOINT for a in view.children(tip)) or not state.released:
        return None
    return joint_action(state, tip, state.released)


def _claim(feature: str, value: float, threshold: float, state_id: str) -> Evidence:
    comparison = "abs>" if value < 0 or feature.startswith(("position.", "width.", "asymmetry.")) else ">"
    return Evidence(feature=feature, value=value, comparison=comparison, threshold=threshold, source=state_id)


def _dif_c(state: FitState) -> float | None:
    """Return DIFC over the time of flight, None for constant wavelength."""
    return next((p.value for p in state.parameters if p.name == "instrument.difC"), None)


def _bounds(option: Option, state: FitState) -> tuple[Bound, ...]:
    """Give each parameter of a bounded quantity its limits, by full name."""
    found: list[Bound] = []
    dif_c = _dif_c(state)
    for selector in map(bare, option.selectors):
        limits = bounds_of(selector, dif_c)
        if limits is not None:
            found.append(Bound(selector=selector, lower=limits[0], upper=limits[1]))
    return tuple(found)


def _places(
    option: Option, state: FitState, structures: Sequence[CrystalStructure], thresholds: Thresholds
) -> tuple[Bound, ...]:
    """Keep atoms of a mixture near where their structure has them, except in a phase that rules the pattern."""
    shares = {phase.name: phase.intensity_share for phase in state.phases}
    known = {(s.name, atom.label): (s.cell, atom) for s in structures for atom in s.atoms}
    found: list[Bound] = []
    for selector in option.selectors:
        meaning = parse_selector(selector)
        share = shares.get(meaning.phase)
        given = known.get((meaning.phase, meaning.label))
        if len(shares) == 1 or share is None or share >= thresholds.ruling_share or given is None:
            continue
        cell, atom = given
        for axis, place, length in (("x", atom.x, cell.a), ("y", atom.y, cell.b), ("z", atom.z, cell.c)):
            room = thresholds.atom_move / length
            name = selector.removesuffix("position") + axis
            found.append(Bound(selector=name, lower=place - room, upper=place + room))
    return tuple(found)


def _settings(option: Option, state: FitState) -> dict[str, int | float | str | tuple[float, ...]]:
    """Give a background its terms, and a texture its axis: the one along which the release gains the most."""
    if option.rule.kind is ActionKind.BACKGROUND_MODEL:
        return {"terms": background_terms(state) + option.n_parameters}
    if option.rule.shared_uiso:
        return {"equal": " ".join(selector.split(".")[1] for selector in option.selectors)}
    if option.selectors[0].endswith(DIRECTED):
        return {"phase": option.selectors[0].split(".")[1], "effect": "strain", "model": DIRECTED.removeprefix("@")}
    if option.rule.parts_uiso:
        return {"apart": " ".join(selector.split(".")[1] for selector in option.selectors)}
    if option.rule.kind is not ActionKind.PREFERRED_ORIENTATION:
        return {}
    stem = f"{GAIN_PREFIX}{option.selectors[0]}@"
    axes = {n.removeprefix(stem): f.value or 0.0 for n, f in state.features.items() if n.startswith(stem)}
    best = max(sorted(axes), key=lambda axis: axes[axis]) if axes else "0,0,1"
    numbers = tuple(float(part) for part in best.split(","))
    return {"phase": option.selectors[0].split(".")[1], "axis": numbers}


def _rationale(option: Option, state: FitState, gain: str, value: float, seen: list[str]) -> str:
    names = ", ".join(map(bare, option.selectors[:6])) + (" and others" if len(option.selectors) > 6 else "")
    count = f"{option.n_parameters} parameter" + ("" if option.n_parameters == 1 else "s")
    alone = f"{gain.removeprefix(GAIN_PREFIX)} alone {100 * value:.2g} %"
    why = option.rule.why if _dif_c(state) is None else option.rule.why_flight or option.rule.why
    if option.rule.why_known and known_cells(state):
        why = option.rule.why_known
    parts = [
        f"{why[0].upper()}{why[1:]}.",
        f"Releasing {names} ({count}) promises to lower chi^2 by {100 * option.drop:.2g} % ({alone}).",
    ]
    for name in seen[:2]:
        feature = state.features[name]
        esd = f" +- {feature.esd:.2g}" if feature.esd else ""
        parts.append(f"{name} = {feature.value:.3g}{esd} {feature.unit}".rstrip() + ".")
    parts.append(f"Rule: {option.rule.name}; {option.rule.source}.")
    return " ".join(parts)
