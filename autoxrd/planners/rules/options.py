"""What could be released from a state, and what would it gain? Options read off the recorded release gains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from autoxrd.domain.instrument import Radiation
from autoxrd.domain.state import Feature, FitState
from autoxrd.domain.structure import AtomSite
from autoxrd.gates.known import known_cells, of_known_cell
from autoxrd.gates.metrics import GAIN_PREFIX
from autoxrd.gates.selectors import parse_parameter, parse_selector
from autoxrd.gates.sites import same_position
from autoxrd.planners.protocol import JobContext
from autoxrd.planners.rules.catalogue import Rule
from autoxrd.planners.rules.lengths import of_tube
from autoxrd.planners.rules.thresholds import Thresholds
from autoxrd.science.settings import UnexplainedSettings

__all__ = [
    "APART_UISO",
    "DIRECTED",
    "EQUAL_UISO",
    "Option",
    "bare",
    "expected_drop",
    "matches",
    "options_of",
    "pays",
    "significant",
]

EQUAL_UISO = "@equal"
"""Suffix of the gain of ``phase.P.uiso`` when its atoms share one parameter."""
APART_UISO = "@apart"
"""Suffix of the gain of ``phase.P.uiso`` when its atoms, which share one parameter, get parameters of their own."""
DIRECTED = "@generalised"
"""Suffix of the gain of ``phase.P.strain`` when it is let depend on direction."""

_SAME_SITE = 1e-3
"""Fractional coordinates closer than this are one site."""


@dataclass(frozen=True, slots=True)
class Option:
    """A release that a rule argues for.

    Args:
        selectors: what would be released, sorted.
        gains: relative drop of chi^2 that each promises, in the same order.
        n_parameters: parameters it would add.
    """

    rule: Rule
    selectors: tuple[str, ...]
    gains: tuple[float, ...]
    n_parameters: int

    @property
    def drop(self) -> float:
        """Expected relative drop of chi^2 of all together; single gains overlap, so not their plain sum."""
        return expected_drop(self.gains)

    def without(self, names: frozenset[str]) -> Option:
        """Return the option less some selectors."""
        kept = [(s, g) for s, g in zip(self.selectors, self.gains, strict=True) if s not in names]
        per = max(1, round(self.n_parameters / max(1, len(self.selectors))))
        return Option(self.rule, tuple(s for s, _ in kept), tuple(g for _, g in kept), per * len(kept))


def bare(selector: str) -> str:
    """Return what an action names: the selector of a gain less the form that the model is given with its release."""
    return selector.partition("@")[0]


def expected_drop(gains: tuple[float, ...]) -> float:
    """Combine single relative drops as if each acted on what the others left: 1 - prod(1 - g)."""
    return 1.0 - math.prod(1.0 - min(max(g, 0.0), 1.0) for g in gains)


def significant(feature: Feature | None, thresholds: Thresholds) -> bool:
    """Return whether a residual feature stands clear of its uncertainty."""
    if feature is None or not feature.available or feature.value is None:
        return False
    if feature.significance is not None:
        return feature.significance >= thresholds.feature_significance
    return (
        feature.esd is not None
        and feature.esd > 0
        and abs(feature.value) >= thresholds.feature_significance * feature.esd
    )


def _worth(feature: Feature, thresholds: Thresholds) -> bool:
    return (
        feature.available
        and feature.value is not None
        and feature.value >= thresholds.relative_drop / 4
        and (feature.significance or 0.0) >= thresholds.gain_per_parameter
    )


def _gains(state: FitState, rule: Rule, thresholds: Thresholds) -> Mapping[str, Feature]:
    gains = {n.removeprefix(GAIN_PREFIX): f for n, f in sorted(state.features.items()) if n.startswith(GAIN_PREFIX)}
    found = {name: f for name, f in gains.items() if any(matches(name, glob) for glob in rule.gains)}
    if rule.parts_uiso:
        needed = _wanted_apart(len(state.phases), thresholds)
        return {name: f for name, f in found.items() if f.n_used and (f.significance or 0.0) >= needed}
    if rule.shared_uiso is None:
        return found
    if not rule.shared_uiso:
        return {name: f for name, f in found.items() if _apart(name, gains, len(state.phases), thresholds)}
    return {
        name: gains[name + EQUAL_UISO]
        for name in found
        if name + EQUAL_UISO in gains and not _apart(name, gains, len(state.phases), thresholds)
    }


def matches(name: str, glob: str) -> bool:
    """Return whether a selector is of a rule's pattern, part by part: ``*`` stands for one name."""
    parts, globs = name.split("."), glob.split(".")
    return len(parts) == len(globs) and all(map(fnmatchcase, parts, globs))


def _apart(name: str, gains: Mapping[str, Feature], n_phases: int, thresholds: Thresholds) -> bool:
    """Return whether the data ask for displacement parameters of single atoms rather than one for the phase."""
    phase = ".".join(name.split(".")[:2])
    every, equal = gains.get(f"{phase}.uiso"), gains.get(f"{phase}.uiso{EQUAL_UISO}")
    if every is None or equal is None or not (every.available and equal.available):
        return True
    more = (every.n_used or 1) - 1
    excess = (every.significance or 0.0) * (every.n_used or 1) - (equal.significance or 0.0)
    return more > 0 and excess >= _wanted_apart(n_phases, thresholds) * more


def _wanted_apart(n_phases: int, thresholds: Thresholds) -> float:
    """Return what each further displacement parameter of a phase must gain, in units of the reduced chi^2."""
    return thresholds.gain_per_parameter if n_phases == 1 else thresholds.atoms_apart


def _supported(selector: str, rule: Rule, state: FitState, thresholds: Thresholds) -> bool:
    """Minor phases keep their atoms fixed until their own scattering supports them; some things all but the main one.

    A fit with one phase, or an engine that tells no shares, has no minor ones.
    """
    meaning = parse_parameter(bare(selector))
    if meaning is None:  # a label that no action may name
        return False
    share = {p.name: p.intensity_share for p in state.phases}.get(meaning.phase)
    needed = thresholds.ruling_share if rule.ruling and len(state.phases) > 1 else thresholds.phase_share
    return share is None or share >= needed


_OF_UNSEEN = frozenset({"phase.scale", "phase.cell"})
"""What may be freed of a phase that the data do not show: how much of it there is, and where its lines are."""
_LEAST_PRESENCE = UnexplainedSettings().presence_esd


def _unseen(selector: str, state: FitState) -> bool:
    """Return whether a selector is of a phase that the data do not show: broad enough, it would take up any misfit.

    So is a phase whose scale is held while others are free: it was refused, and stands at what it started from.
    """
    meaning = parse_parameter(bare(selector))
    if meaning is None or not meaning.phase or meaning.family in _OF_UNSEEN:
        return False
    scales = [name for name in state.released if name.endswith(".scale")]
    if scales and not any(matches(f"phase.{meaning.phase}.scale", name) for name in scales):
        return True
    presence = state.features.get(f"presence.{meaning.phase}")
    return presence is not None and presence.value is not None and presence.value < _LEAST_PRESENCE


def _atom(selector: str, context: JobContext) -> tuple[AtomSite | None, tuple[AtomSite, ...]]:
    """Return the atom that a selector names, and all atoms of its structure in order."""
    meaning = parse_selector(selector)
    atoms = next((s.atoms for s in context.structures if s.name == meaning.phase), ())
    return next((a for a in atoms if a.label == meaning.label), None), atoms


def _stands_for_site(selector: str, context: JobContext) -> bool:
    """Return whether an atom is the first of several species on one site (the engine ties the others to it)."""
    here, atoms = _atom(selector, context)
    if here is None:
        return False
    place = (here.x, here.y, here.z)
    site = [a.label for a in atoms if same_position((a.x, a.y, a.z), place, _SAME_SITE)]
    return len(site) > 1 and site[0] == here.label


def _is_unseen_hydrogen(selector: str, context: JobContext) -> bool:
    """One electron, drawn towards its bond: X-rays give neither its place nor its motion.

    Where all atoms of a phase are to be parted, one that is not seen keeps them together.
    """
    here, atoms = _atom(bare(selector), context)
    asked = atoms if selector.endswith(APART_UISO) else (here,)
    unseen = any(atom is not None and atom.element in ("H", "D") for atom in asked)
    return unseen and context.instrument.radiation is Radiation.XRAY


def _allowed(selector: str, rule: Rule, state: FitState, context: JobContext, thresholds: Thresholds) -> bool:
    """Return whether a rule may release a selector, whatever it would gain."""
    return (
        not _unseen(selector, state)
        and not of_known_cell(selector, state)
        and (not rule.structural or _supported(selector, rule, state, thresholds))
        and (not rule.shared_sites or _stands_for_site(selector, context))
        and not (rule.heavy_only and _is_unseen_hydrogen(selector, context))
    )


def _is_open(selector: str, state: FitState) -> bool:
    """Return whether a selector of a gain can be released: it is not yet, and what follows an ``@`` is no detail.

    A strain with a direction may take the place of one without that is free; where it is there, it adds no parameter.
    """
    if selector.endswith((APART_UISO, DIRECTED)):
        return bool(state.features[GAIN_PREFIX + selector].n_used)
    return "@" not in selector and selector not in state.released


def _scaled_by_cell(rule: Rule, state: FitState, context: JobContext) -> bool:
    """Return whether a certified cell may tell a rule about lengths what nothing else does."""
    return rule.known and bool(known_cells(state)) and not of_tube(context.instrument)


def options_of(rule: Rule, state: FitState, context: JobContext, thresholds: Thresholds) -> list[Option]:
    """Return what a rule could release from a state, best first."""
    if rule.uncalibrated_only and context.instrument.profile_calibrated:
        return []
    if rule.flight and context.instrument.flight is None:
        return []
    if rule.several and not context.histograms and not _scaled_by_cell(rule, state, context):
        return []
    free = {s: f for s, f in _gains(state, rule, thresholds).items() if _is_open(s, state)}
    worth = {
        selector: feature
        for selector, feature in free.items()
        if (_worth(feature, thresholds) or (rule.always and (feature.value or 0.0) > 0.0))
        and _allowed(selector, rule, state, context, thresholds)
    }
    if not worth:
        return []
    members = free if rule.always else worth
    groups = [tuple(members)] if rule.together else [(selector,) for selector in members]
    options = [
        Option(
            rule,
            group,
            tuple(float(members[s].value or 0.0) for s in group),
            sum(members[s].n_used or 1 for s in group),
        )
        for group in groups
    ]
    enough = [o for o in options if _pays(o, state, context, thresholds)]
    return sorted(enough, key=lambda o: (-o.drop, o.selectors))


def _pays(option: Option, state: FitState, context: JobContext, thresholds: Thresholds) -> bool:
    """Return whether an option is part of every model, or worth its parameters."""
    return option.rule.always or pays(option.drop, option.n_parameters, state, context, thresholds)


def pays(drop: float, n_parameters: int, state: FitState, context: JobContext, thresholds: Thresholds) -> bool:
    """Return whether a relative drop of chi^2 is worth a step, and the parameters by the gate's own price."""
    if drop < thresholds.relative_drop:
        return False
    fall = state.quality.gof * (1.0 - math.sqrt(1.0 - min(drop, 0.999)))
    return fall >= thresholds.promised_price * context.parameter_price * n_parameters
