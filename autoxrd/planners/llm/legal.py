"""What may be proposed from a state? Kinds, selectors and ranges that the policy, the record and the engine allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from autoxrd.domain.action import Action, ActionKind, Stage
from autoxrd.domain.state import FitState
from autoxrd.gates.known import of_known_cell
from autoxrd.gates.metrics import GAIN_PREFIX, background_terms
from autoxrd.gates.policy_model import Policy
from autoxrd.gates.preflight import REPLACEABLE
from autoxrd.gates.selectors import parse_parameter
from autoxrd.gates.tables import MORE_BACKGROUND, family_allowed
from autoxrd.planners.rules.bounding import QUANTITY_BOUNDS
from autoxrd.planners.rules.catalogue import CURRICULUM
from autoxrd.planners.rules.options import EQUAL_UISO
from autoxrd.planners.rules.thresholds import Thresholds

__all__ = ["Gain", "Legal", "Range", "legal_from", "stage_of"]

_RELEASING = (
    ActionKind.SCALE,
    ActionKind.BACKGROUND,
    ActionKind.ZERO,
    ActionKind.DISPLACEMENT,
    ActionKind.LATTICE,
    ActionKind.PROFILE,
    ActionKind.ASYMMETRY,
    ActionKind.SIZE_STRAIN,
    ActionKind.POSITIONS,
    ActionKind.DISPLACEMENT_PARAMETERS,
    ActionKind.OCCUPANCY,
    ActionKind.PREFERRED_ORIENTATION,
    ActionKind.ABSORPTION,
)
_STAGES = (Stage.QC, Stage.INSTRUMENT, Stage.STRUCTURE, Stage.MICROSTRUCTURE, Stage.FINAL_AUDIT)
_MOST_TERMS = 36
_LONGEST_NAME = 64
"""A selector longer than this is not shown: no structure of this world needs such labels, an injection might."""

_GROUPS: tuple[tuple[Stage, tuple[ActionKind, ...]], ...] = (
    (Stage.INSTRUMENT, _RELEASING[:7]),
    (Stage.MICROSTRUCTURE, (ActionKind.SIZE_STRAIN,)),
    (Stage.STRUCTURE, _RELEASING[8:]),
)


@dataclass(frozen=True, slots=True)
class Range:
    """Limits inside which a bound must lie, in the parameter's own unit."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Gain:
    """What releasing a selector promises.

    Args:
        drop: relative fall of chi^2 of a Gauss-Newton step.
        significance: in units of the reduced chi^2 and per parameter.
        n_parameters: how many it frees.
        kinds: the kinds of action that may free it.
    """

    selector: str
    drop: float
    significance: float
    n_parameters: int
    kinds: tuple[ActionKind, ...]


@dataclass(frozen=True, slots=True)
class Legal:
    """All that may be proposed from one state.

    Args:
        stage: where the state stands in the curriculum; decides which skill is shown.
        stages: kind -> stage under which an action of that kind is recorded.
        gains: selectors that can be freed, the largest drop first.
        ranges: selector -> range of its bounds, for those that need bounds.
        released: what a ``freeze`` may hold.
        terms: (least, most) background coefficients of a ``background_model``, None where it is not legal.
        axes: phase -> texture axes on offer.
        phases: names of the phases; ``remove_phase`` is legal while there are two.
        equal: phases whose atoms may share one displacement parameter.
        replaceable: what is free and can leave the model for another effect.
    """

    stage: Stage
    stages: Mapping[ActionKind, Stage]
    gains: tuple[Gain, ...]
    ranges: Mapping[str, Range]
    released: tuple[str, ...]
    terms: tuple[int, int] | None
    axes: Mapping[str, tuple[tuple[int, int, int], ...]]
    phases: tuple[str, ...]
    equal: tuple[str, ...] = ()
    replaceable: tuple[str, ...] = ()

    def selectors(self, kind: ActionKind) -> tuple[str, ...]:
        """Return what an action of a kind may name."""
        if kind is ActionKind.FREEZE:
            return self.released
        return tuple(gain.selector for gain in self.gains if kind in gain.kinds)


def legal_from(state: FitState, policy: Policy, tried: tuple[Action, ...] = ()) -> Legal:
    """Return what may be proposed from a state.

    Args:
        state: the state.
        policy: the rules.
        tried: actions that were rejected here or on the way; they do not count for the stage.
    """
    gains = _gains(state, policy)
    stage = stage_of(state, gains, tried)
    kinds = [kind for kind in _RELEASING if any(kind in gain.kinds for gain in gains)]
    terms = _terms(state)
    if terms is not None:
        kinds.append(ActionKind.BACKGROUND_MODEL)
    if state.released:
        kinds += [ActionKind.FREEZE, ActionKind.JOINT]
    phases = tuple(phase.name for phase in state.phases)
    if len(phases) > 1:
        kinds.append(ActionKind.REMOVE_PHASE)
    stages = {kind: where for kind in kinds if (where := _recorded_under(kind, stage, policy)) is not None}
    return Legal(
        stage=stage,
        stages=stages,
        gains=tuple(gain for gain in gains if any(kind in stages for kind in gain.kinds)),
        ranges={gain.selector: limits for gain in gains if (limits := _range(gain.selector)) is not None},
        released=state.released,
        terms=terms,
        axes=_axes(state),
        phases=phases,
        equal=tuple(p for p in phases if f"{GAIN_PREFIX}phase.{p}.uiso{EQUAL_UISO}" in state.features),
        replaceable=tuple(s for s in state.released if _family(s) in REPLACEABLE),
    )


def stage_of(state: FitState, gains: tuple[Gain, ...], tried: tuple[Action, ...]) -> Stage:
    """Return the first stage in which something of the rules' curriculum promises a significant gain."""
    if not state.released:
        return Stage.QC
    known, thresholds = {name for action in tried for name in action.parameters}, Thresholds()
    worth = [
        gain
        for gain in gains
        if gain.significance >= thresholds.gain_per_parameter
        and gain.drop >= thresholds.relative_drop
        and gain.selector not in known
        and any(fnmatchcase(gain.selector, glob) for rule in CURRICULUM for glob in rule.gains)
    ]
    for stage, kinds in _GROUPS:
        if any(kind in kinds for gain in worth for kind in gain.kinds):
            return stage
    return Stage.FINAL_AUDIT


def _gains(state: FitState, policy: Policy) -> tuple[Gain, ...]:
    found: list[Gain] = []
    for name, feature in state.features.items():
        selector = name.removeprefix(GAIN_PREFIX)
        meaning = parse_parameter(selector) if name.startswith(GAIN_PREFIX) and "@" not in name else None
        if meaning is None or not feature.available or not feature.value or feature.value <= 0:
            continue
        if selector in state.released or feature.n_used == 0 or len(selector) > _LONGEST_NAME:
            continue
        if of_known_cell(selector, state):
            continue
        kinds = tuple(kind for kind in _RELEASING if _may(kind, meaning.family, selector, policy))
        if kinds:
            found.append(Gain(selector, feature.value, feature.significance or 0.0, feature.n_used or 1, kinds))
    return tuple(sorted(found, key=lambda gain: (-gain.drop, gain.selector)))


def _may(kind: ActionKind, family: str, selector: str, policy: Policy) -> bool:
    """Return whether a kind may free a selector; what needs bounds and has no range is not on offer."""
    if not family_allowed(family, kind, policy):
        return False
    return kind not in policy.high_risk.kinds or _range(selector) is not None


def _family(selector: str) -> str:
    meaning = parse_parameter(selector)
    return "" if meaning is None else meaning.family


def _range(selector: str) -> Range | None:
    limits = QUANTITY_BOUNDS.get(selector.rsplit(".", 1)[-1])
    return None if limits is None else Range(*limits)


def _recorded_under(kind: ActionKind, now: Stage, policy: Policy) -> Stage | None:
    """Return the stage under which a kind may run: the present one, else the first that has it."""
    return next((stage for stage in (now, *_STAGES) if kind in policy.stages.get(stage, ())), None)


def _terms(state: FitState) -> tuple[int, int] | None:
    feature = state.features.get(GAIN_PREFIX + MORE_BACKGROUND)
    now = background_terms(state)
    if feature is None or not feature.available or "background" not in state.released or now >= _MOST_TERMS:
        return None
    return now + 1, min(_MOST_TERMS, now + 2 * (feature.n_used or 1))


def _axes(state: FitState) -> dict[str, tuple[tuple[int, int, int], ...]]:
    """Read the texture axes whose gain is on record, the largest gain first."""
    found: dict[str, list[tuple[float, tuple[int, int, int]]]] = {}
    for name, feature in state.features.items():
        stem, at, axis = name.removeprefix(GAIN_PREFIX).partition("@")
        meaning = parse_parameter(stem) if at and name.startswith(GAIN_PREFIX) else None
        parts = axis.split(",")
        if meaning is None or len(parts) != 3 or not all(part.lstrip("-").isdigit() for part in parts):
            continue
        h, k, el = (int(part) for part in parts)
        found.setdefault(meaning.phase, []).append((feature.value or 0.0, (h, k, el)))
    return {phase: tuple(axis for _, axis in sorted(axes, reverse=True)) for phase, axes in found.items()}
