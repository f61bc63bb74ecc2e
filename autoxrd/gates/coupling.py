"""Which free parameters can the data not tell apart? Coupled sets by meaning, over the cumulative released set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from autoxrd.domain.state import Feature, FitState
from autoxrd.gates.geometry import AngularRange
from autoxrd.gates.policy_model import CoupledSet, Group, Policy
from autoxrd.gates.selectors import Selector, covers, parse_parameter

__all__ = ["CoupledFinding", "Separability", "find_coupled", "read_separability", "site_closure", "sites_of"]

_CAUSE = re.compile(r"(?<![\w.-])(?:cell(?: of (?P<of>[^\s,;()]+))?|zero|displacement)(?![\w-])")
_SAME_POSITION = 1e-4
"""Fractional coordinates closer than this are one site (a CIF gives four to five decimals)."""


@dataclass(frozen=True, slots=True)
class Separability:
    """Which position terms the record says can be told apart.

    Args:
        known: the record has an answer.
        inseparable: pairs of ``zero``, ``displacement``, ``cell`` or ``cell.PHASE`` that it cannot tell apart.
    """

    known: bool
    inseparable: frozenset[frozenset[str]]

    def phases(self, causes: Iterable[str]) -> frozenset[str]:
        """Return the phases whose cell is tangled with the other cause; ``*`` for all, empty for none."""
        wanted = frozenset(causes)
        found: set[str] = set()
        for pair in self.inseparable:
            if frozenset(term.partition(".")[0] for term in pair) == wanted:
                named = [term.partition(".")[2] for term in pair if term.startswith("cell.")]
                found.update(named or ["*"])
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class CoupledFinding:
    """A coupled set that would be free together.

    Args:
        rule: the policy's rule.
        members: parameter names by side of the rule.
        where: phase or site it concerns, empty for the whole job.
    """

    rule: CoupledSet
    members: tuple[tuple[str, ...], ...]
    where: str


@dataclass(frozen=True, slots=True)
class _Free:
    """A parameter with what it means."""

    name: str
    meaning: Selector
    site: str


def read_separability(features: Mapping[str, Feature]) -> Separability:
    """Read ``position.separable``: 1, or 0 with the rival explanations in its reason.

    "zero and cell of A or displacement and cell of A" leaves open whether it is zero or displacement: each cause of one
    explanation is tangled with each of the other, but not with what both share. A reason that names no such pair
    means that nothing can be told apart.
    """
    feature = features.get("position.separable")
    if feature is None or not feature.available or feature.value is None:
        return Separability(known=False, inseparable=frozenset())
    if feature.value >= 0.5:
        return Separability(known=True, inseparable=frozenset())
    pairs: set[frozenset[str]] = set()
    for clause in feature.reason.split(";"):
        rivals = [frozenset(_cause(match) for match in _CAUSE.finditer(part)) for part in clause.split(" or ")]
        for one, other in combinations(rivals, 2):
            pairs.update(frozenset({a, b}) for a in one - other for b in other - one)
    if not pairs:
        pairs = {frozenset(pair) for pair in combinations(("zero", "displacement", "cell"), 2)}
    return Separability(known=True, inseparable=frozenset(pairs))


def _cause(match: re.Match[str]) -> str:
    return f"cell.{match['of']}" if match["of"] else match.group(0)


def sites_of(state: FitState) -> dict[tuple[str, str], str]:
    """Return the site of each (phase, label): atoms at one position share it, named by its first label."""
    coordinates: dict[tuple[str, str], dict[str, float]] = {}
    for parameter in state.parameters:
        meaning = parse_parameter(parameter.name)
        if meaning is not None and meaning.kind == "atom" and meaning.component:
            coordinates.setdefault((meaning.phase, meaning.label), {})[meaning.component] = parameter.value
    sites: dict[tuple[str, str], str] = {}
    seen: dict[str, list[tuple[str, tuple[float, ...]]]] = {}
    for (phase, label), found in coordinates.items():
        owner = label
        if len(found) == 3:
            position = (found["x"], found["y"], found["z"])
            owners = seen.setdefault(phase, [])
            owner = next((other for other, there in owners if _same_position(position, there)), label)
            owners.append((owner, position))
        sites[(phase, label)] = owner
    return sites


def site_closure(names: Iterable[str], state: FitState, known: Sequence[str]) -> tuple[str, ...]:
    """Return the names with all that is shared through a site: species at one position move and vibrate together.

    An engine ties them, and frees the one that stands for all, whichever of them was asked for.
    """
    sites = sites_of(state)
    wanted = set(names)
    shared = {(free.site, free.meaning.family) for free in _meanings(wanted, sites) if free.meaning.kind == "atom"}
    if not shared:
        return tuple(name for name in known if name in wanted)
    meanings = {free.name: free for free in _meanings(known, sites)}
    return tuple(
        name
        for name in known
        if name in wanted or (name in meanings and (meanings[name].site, meanings[name].meaning.family) in shared)
    )


def _same_position(first: Sequence[float], second: Sequence[float]) -> bool:
    # Coordinates are compared modulo the lattice: 0.99999 and 0.00000 are one position.
    return all(abs((a - b + 0.5) % 1.0 - 0.5) < _SAME_POSITION for a, b in zip(first, second, strict=True))


def find_coupled(
    free: Sequence[str],
    added: Iterable[str],
    parent: FitState,
    known: Sequence[str],
    *,
    policy: Policy,
    constraints: Sequence[str] = (),
    span: AngularRange | None = None,
) -> tuple[CoupledFinding, ...]:
    """Find the coupled sets among ``free`` that ``added`` takes part in.

    Args:
        free: names of all parameters that would be free, earlier steps included.
        added: those that the action names; a set it takes no part in is not its fault.
        parent: the state before, for separability and shared sites.
        known: all parameter names.
        policy: the rules.
        constraints: declared relations, each naming its parameters with blanks between (``A + B = 1``); a set is
            excused when one constraint names a member of each of its sides.
        span: range of the pattern, None where unknown; it decides what the range can separate, and the record of
            the parent (``position.separable``) only where it is not known.
    """
    sites = sites_of(parent)
    members = list(_meanings(free, sites))
    everything = list(_meanings(known, sites))
    touched = set(added)
    declared = [_names_in(text, known) for text in constraints]
    separability = read_separability(parent.features)
    found: list[CoupledFinding] = []
    for rule in policy.coupled:
        concerned = _concerned(rule, separability, span, policy)
        if not rule.enabled or not concerned:
            continue
        for where in _scopes(rule, members):
            sides = [_side(group, rule, where, members, everything, concerned) for group in rule.groups]
            if not all(sides) or touched.isdisjoint(name for side in sides for name in side):
                continue
            if not any(all(not names.isdisjoint(side) for side in sides) for names in declared):
                found.append(CoupledFinding(rule, tuple(sides), where))
    return tuple(found)


def _meanings(names: Iterable[str], sites: Mapping[tuple[str, str], str]) -> Iterator[_Free]:
    for name in names:
        meaning = parse_parameter(name)
        if meaning is not None:
            owner = sites.get((meaning.phase, meaning.label), meaning.label)
            yield _Free(name, meaning, f"{meaning.phase}/{owner}" if meaning.kind == "atom" else "")


def _names_in(constraint: str, known: Sequence[str]) -> frozenset[str]:
    selectors = [parsed for token in re.split(r"[\s,=]+", constraint) if (parsed := parse_parameter(token)) is not None]
    meanings = {name: parse_parameter(name) for name in known}
    return frozenset(
        name
        for name, meaning in meanings.items()
        if meaning and any(covers(selector, meaning) for selector in selectors)
    )


def _concerned(
    rule: CoupledSet, separability: Separability, span: AngularRange | None, policy: Policy
) -> frozenset[str]:
    """Return the phases whose cells the rule is about now: ``*`` for all, empty where it does not apply."""
    everything, nothing = frozenset({"*"}), frozenset[str]()
    if rule.when == "always":
        return everything
    if rule.when == "narrow_range":
        s2_span = span.s2_span if span is not None else None
        return everything if s2_span is not None and s2_span < policy.coupling.narrow_s2_span else nothing
    if span is not None:
        tangled = span.correlation(*rule.causes) > policy.limits.max_correlation
        return everything if tangled else nothing
    if not separability.known:
        return everything if policy.coupling.unknown_separability == "refuse" else nothing
    return separability.phases(rule.causes)


def _scopes(rule: CoupledSet, members: Sequence[_Free]) -> tuple[str, ...]:
    if rule.scope == "job":
        return ("",)
    if rule.scope == "phase":
        return tuple(dict.fromkeys(free.meaning.phase for free in members if free.meaning.phase))
    return tuple(dict.fromkeys(free.site for free in members if free.site))


def _in_scope(free: _Free, rule: CoupledSet, where: str) -> bool:
    if rule.scope == "site":
        return free.site == where
    return rule.scope == "job" or free.meaning.phase in ("", where)


def _side(
    group: Group,
    rule: CoupledSet,
    where: str,
    members: Sequence[_Free],
    everything: Sequence[_Free],
    concerned: frozenset[str],
) -> tuple[str, ...]:
    """Return the free members of one side, empty where the side is not satisfied."""
    families = group.any or group.all
    mine = [
        free
        for free in members
        if free.meaning.family in families
        and _in_scope(free, rule, where)
        and (free.meaning.family != "phase.cell" or "*" in concerned or free.meaning.phase in concerned)
    ]
    if group.all:
        owners = {_owner(f) for f in everything if f.meaning.family in families and _in_scope(f, rule, where)}
        if owners - {_owner(free) for free in mine}:
            return ()
    return tuple(free.name for free in mine)


def _owner(free: _Free) -> tuple[str, str]:
    return (free.meaning.phase, free.meaning.label)
