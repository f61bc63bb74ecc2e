"""What could be released from a state, and what would it gain? Options read off the recorded release gains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from autoxrd.domain.instrument import Radiation
from autoxrd.domain.state import Feature, FitState
from autoxrd.domain.structure import AtomSite
from autoxrd.planners.protocol import JobContext
from autoxrd.planners.rules.catalogue import Rule, Thresholds

__all__ = ["Option", "expected_drop", "options_of", "significant"]

_PREFIX = "release_gain."
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


def _gains(state: FitState, rule: Rule) -> Mapping[str, Feature]:
    return {
        name.removeprefix(_PREFIX): feature
        for name, feature in sorted(state.features.items())
        if name.startswith(_PREFIX) and any(fnmatchcase(name.removeprefix(_PREFIX), glob) for glob in rule.gains)
    }


def _phase(selector: str) -> str | None:
    parts = selector.split(".")
    return parts[1] if parts[0] == "phase" and len(parts) > 2 else None


def _supported(selector: str, state: FitState, rule: Rule, thresholds: Thresholds) -> bool:
    """Minor phases keep their atoms fixed until their own scattering supports them."""
    if not rule.structural:
        return True
    share = {p.name: p.intensity_share for p in state.phases}.get(_phase(selector) or "")
    return share is None or share >= thresholds.phase_share


def _shared(selector: str, context: JobContext) -> bool:
    """Return whether an atom is the first of several species on one site (the engine ties the others to it)."""
    parts = selector.split(".")
    phase, label = parts[1], ".".join(parts[3:-1])
    for structure in context.structures:
        if structure.name == phase:
            atoms = {a.label: a for a in structure.atoms}
            here = atoms.get(label)
            same = [a.label for a in structure.atoms if here and _distance_zero(a, here)]
            return len(same) > 1 and same[0] == label
    return False


def _is_unseen_hydrogen(selector: str, context: JobContext) -> bool:
    """One electron, drawn towards its bond: X-rays give neither its place nor its motion."""
    if context.instrument.radiation is not Radiation.XRAY:
        return False
    parts = selector.split(".")
    label = ".".join(parts[3:-1])
    atoms = [a for s in context.structures if s.name == parts[1] for a in s.atoms if a.label == label]
    return any(atom.element in ("H", "D") for atom in atoms)


def _distance_zero(one: AtomSite, other: AtomSite) -> bool:
    pairs = ((one.x, other.x), (one.y, other.y), (one.z, other.z))
    return all(abs((a - b + 0.5) % 1.0 - 0.5) < _SAME_SITE for a, b in pairs)


def options_of(rule: Rule, state: FitState, context: JobContext, thresholds: Thresholds) -> list[Option]:
    """Return what a rule could release from a state, best first."""
    if rule.uncalibrated_only and context.instrument.profile_calibrated:
        return []
    free = {s: f for s, f in _gains(state, rule).items() if s not in state.released and "@" not in s}
    worth = {
        selector: feature
        for selector, feature in free.items()
        if (_worth(feature, thresholds) or (rule.always and (feature.value or 0.0) > 0.0))
        and _supported(selector, state, rule, thresholds)
        and (not rule.shared_sites or _shared(selector, context))
        and not (rule.heavy_only and _is_unseen_hydrogen(selector, context))
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
    """Return whether the expected fall of GoF is worth the parameters by the gate's own price."""
    if option.rule.always:
        return True
    if option.drop < thresholds.relative_drop:
        return False
    fall = state.quality.gof * (1.0 - math.sqrt(1.0 - min(option.drop, 0.999)))
    return fall >= thresholds.promised_price * context.parameter_price * option.n_parameters
