"""Which phases belong into the model? Out with what is absent, in with what the residual asks for, and rivals tried.

A stepwise search in branches of the graph, once the lines are placed and before structures take up what a missing or a
wrong phase leaves. Every change is an action with evidence that the gate judges; a refused one is a branch on record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from autoxrd.domain.action import Action, ActionKind, Evidence, Prediction, Stage
from autoxrd.domain.state import FitState
from autoxrd.gates.metrics import read_metric
from autoxrd.planners.protocol import AttemptView, GraphView, JobContext
from autoxrd.science.settings import UnexplainedSettings

__all__ = ["BEFORE_PHASES", "PhaseRules", "left_in", "next_change", "phase_names", "spoilers"]

BEFORE_PHASES = frozenset(("linear", "shift", "cell", "lorentzian", "gaussian", "curve", "profile", "asymmetry"))
"""Groups of the curriculum that are worked through before the set of phases is asked: lines in place, widths right."""

_MEASURED = UnexplainedSettings()
_CHANGES = (ActionKind.ADD_PHASE, ActionKind.REMOVE_PHASE)


@dataclass(frozen=True, slots=True)
class PhaseRules:
    """Numbers of judgement of the phase search.

    Args:
        presence_esd, absent_share: when the measures call a phase unsupported (`science.presence`).
        least_gain: share of chi^2 that a candidate must promise to be tried. A misfit of texture or profile can lend
            a few percent to any pattern with lines in the right places; what it cannot lend is lines of its own.
        least_seen: share of a candidate's own lines that the residual must hold, with at least ``least_lines`` of them.
        rival: share of what a phase explains that a candidate must explain in its place to be tried there.
        promised_gain: share of the promised gain that an addition predicts.
        rival_gain: relative fall of Rwp that a rival must bring to be preferred.
        most_changes: attempts on one job.
        removals: a phase that may not be removed is asked about so often, each time with more of the model free.
    """

    presence_esd: float = _MEASURED.presence_esd
    absent_share: float = _MEASURED.absent_share
    least_gain: float = 0.02
    least_seen: float = 0.5
    least_lines: int = 2
    rival: float = 0.7
    promised_gain: float = 0.25
    rival_gain: float = 0.005
    most_changes: int = 24
    removals: int = 3


def phase_names(state: FitState) -> frozenset[str]:
    """Return the names of a state's phases."""
    return frozenset(phase.name for phase in state.phases)


def next_change(tip: str, view: GraphView, context: JobContext, rules: PhaseRules) -> Action | None:
    """Return the next change of the set of phases to be tried from a state, None where none is due.

    Args:
        tip: the state.
        view: the graph so far; nothing is tried twice on one set of phases but a removal, once more is free than when
            it was refused: what a phase that is not there took up may have found its place since.
        context: which phases are candidates.
        rules: numbers of judgement.
    """
    tried = [a for a in view.attempts if a.action.kind in _CHANGES]
    if len(tried) >= rules.most_changes:
        return None
    state = view.states[tip]
    inside = phase_names(state)
    proposals = (
        *_removals(state, tip, rules),
        *_additions(state, tip, context, rules),
        *_rivals(state, tip, context, rules),
    )
    known = [a for a in tried if phase_names(view.states[a.parent]) == inside]
    return next((action for action in proposals if _is_new(action, state, known, view, rules)), None)


def _is_new(action: Action, state: FitState, known: list[AttemptView], view: GraphView, rules: PhaseRules) -> bool:
    """Return whether a change was not tried on this set of phases, or a removal not with all that is free now."""
    alike = [a for a in known if _content(a.action) == _content(action)]
    if action.kind is not ActionKind.REMOVE_PHASE:
        return not alike
    as_free = any(set(view.states[a.parent].released) >= set(state.released) for a in alike)
    return not as_free and len(alike) < rules.removals


def _content(action: Action) -> tuple[str, str, str]:
    settings = action.settings
    return action.kind.value, str(settings.get("phase", "")), str(settings.get("replaces", ""))


def _removals(state: FitState, tip: str, rules: PhaseRules) -> Iterator[Action]:
    """Yield the removal of each phase that the data do not show, the least significant first."""
    for name, weak, gone in _not_shown(state, rules):
        evidence = []
        if weak:
            evidence.append(_claim(state, tip, f"presence.{name}", "<", rules.presence_esd))
        if gone:
            evidence.append(_claim(state, tip, f"absent_lines.{name}", ">", rules.absent_share))
        why = "its scale is within its uncertainty of nothing" if weak else "its own lines are not there"
        yield Action(
            kind=ActionKind.REMOVE_PHASE,
            stage=Stage.INSTRUMENT,
            parameters=(),
            settings={"phase": name},
            rationale=f"{name} is not shown by the data: {why}. A phase that is absent takes up misfit of the others.",
            evidence=tuple(evidence),
            predictions=(Prediction(metric="phases_unsupported", direction="decrease", minimum_effect=0.5),),
            parent=tip,
        )


def _not_shown(state: FitState, rules: PhaseRules) -> list[tuple[str, bool, bool]]:
    """Return the phases of a mixture that the data do not show, the least significant first.

    Each with whether its scale is nothing and whether its own lines are not there.
    """
    found = []
    for phase in state.phases if len(state.phases) > 1 else ():
        presence = read_metric(state, f"presence.{phase.name}").value
        absent = read_metric(state, f"absent_lines.{phase.name}").value
        weak = presence is not None and presence < rules.presence_esd
        gone = absent is not None and absent > rules.absent_share
        if weak or gone:
            found.append((presence if presence is not None else 0.0, phase.name, weak, gone))
    return [(name, weak, gone) for _, name, weak, gone in sorted(found)]


def spoilers(tip: str, view: GraphView, *, freed: bool) -> frozenset[str]:
    """Return the phases whose scale fell to nothing in a step that was refused for it.

    The better the rest of the model, the less is left for a phase that is not there: the very step that would show it
    absent is refused, because a scale may not end at its limit.

    Args:
        tip: the state that the steps started from.
        view: the graph.
        freed: count the scales too that were freed in that very step.
    """
    found = set()
    for attempt in view.children(tip):
        candidate = view.states.get(attempt.candidate) if attempt.candidate else None
        if attempt.accepted or candidate is None or "new_violation" not in attempt.decision.reasons:
            continue
        at_bound = {v.subject for v in candidate.violations if v.code == "at_bound"}
        free = {*view.states[tip].released, *(attempt.action.parameters if freed else ())}
        scales = {p.name for p in candidate.parameters if p.name.endswith(".scale") and p.value <= (p.lower or 0.0)}
        found |= {name.split(".")[1] for name in scales & at_bound & free}
    return frozenset(found)


def left_in(state: FitState, rules: PhaseRules) -> tuple[str, str] | None:
    """Return the warning about phases of a final state that the data do not show, None where there is none."""
    names = [name for name, _, _ in _not_shown(state, rules)]
    if not names:
        return None
    return (
        "phase_not_shown",
        f"The data do not show {', '.join(names)}, whose removal was refused: take the amount as none.",
    )


def _additions(state: FitState, tip: str, context: JobContext, rules: PhaseRules) -> Iterator[Action]:
    """Yield the addition of each candidate whose lines the residual holds, the largest gain first."""
    found, seen = [], {}
    for name in context.candidates:
        gain = read_metric(state, f"candidate.{name}").value
        lines = state.features.get(f"candidate.{name}.seen")
        if gain is None or gain < rules.least_gain or lines is None or lines.value is None:
            continue
        if lines.value >= rules.least_seen and (lines.n_used or 0) >= rules.least_lines:
            seen[name] = lines.value
            found.append((-gain, name))
    unexplained = read_metric(state, "unexplained_peak_ratio").level
    misfit = read_metric(state, "intensity.misfit").value
    for negative, name in sorted(found):
        gain = -negative
        metric = "unexplained_peak_ratio" if unexplained else "intensity.misfit"
        level = unexplained or misfit
        if not level:
            continue
        fall = state.quality.rwp * (1.0 - (1.0 - min(rules.promised_gain * gain, 0.99)) ** 0.5)
        yield Action(
            kind=ActionKind.ADD_PHASE,
            stage=Stage.INSTRUMENT,
            parameters=(f"phase.{name}.scale", f"phase.{name}.cell"),
            settings={"phase": name},
            rationale=(
                f"Lines of {name} stand in what the model leaves: its pattern would take away {gain:.1%} of chi^2, "
                f"and {seen[name]:.0%} of the intensity expected in lines of its own is there."
            ),
            evidence=(
                _claim(state, tip, f"candidate.{name}", ">=", rules.least_gain),
                _claim(state, tip, f"candidate.{name}.seen", ">=", rules.least_seen),
            ),
            predictions=(
                Prediction(metric=metric, direction="decrease", minimum_effect=0.1 * min(gain, 1.0) * level),
                Prediction(metric="rwp", direction="decrease", minimum_effect=fall),
            ),
            parent=tip,
        )


def _rivals(state: FitState, tip: str, context: JobContext, rules: PhaseRules) -> Iterator[Action]:
    """Yield each candidate in the place of a phase with a like pattern, the most alike first."""
    found = []
    for phase in state.phases:
        if phase.name not in context.candidates:
            continue
        for name in context.candidates:
            share = read_metric(state, f"candidate.{name}.for.{phase.name}").value
            if share is not None and share >= rules.rival:
                found.append((-share, name, phase.name))
    misfit = read_metric(state, "intensity.misfit").value
    for negative, name, old in sorted(found):
        if not misfit:
            continue
        suffixes = [s.removeprefix(f"phase.{old}.") for s in state.released if s.startswith(f"phase.{old}.")]
        kept = [s for s in suffixes if s in ("scale", "cell")] or ["scale", "cell"]
        yield Action(
            kind=ActionKind.ADD_PHASE,
            stage=Stage.INSTRUMENT,
            parameters=tuple(f"phase.{name}.{suffix}" for suffix in kept),
            settings={"phase": name, "replaces": old},
            rationale=(
                f"{name} has lines where {old} has them and would explain {-negative:.0%} of what {old} explains. "
                "Only a refinement of both tells which one is there, or that the data cannot tell."
            ),
            evidence=(_claim(state, tip, f"candidate.{name}.for.{old}", ">=", rules.rival),),
            predictions=(
                Prediction(metric="intensity.misfit", direction="decrease", minimum_effect=0.01 * misfit),
                Prediction(metric="rwp", direction="decrease", minimum_effect=rules.rival_gain * state.quality.rwp),
            ),
            parent=tip,
        )


def _claim(state: FitState, tip: str, feature: str, comparison: str, threshold: float) -> Evidence:
    value = read_metric(state, feature).value
    assert value is not None  # the caller read it
    return Evidence(feature=feature, value=value, comparison=comparison, threshold=threshold, source=tip)
