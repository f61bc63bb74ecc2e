"""Which free parameters can the data not tell apart? Coupled sets by meaning, over the cumulative released set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from autoxrd.domain.state import Feature, FitState
from autoxrd.gates.geometry import AngularRange
from autoxrd.gates.policy_model import CoupledSet, Group, Policy
from autoxrd.gates.selectors import Selector, covers, parse_parameter
from autoxrd.gates.sites import Sites

__all__ = ["CoupledFinding", "Separability", "find_coupled", "read_separability"]

_CAUSE = re.compile(r"(?<![\w.-])(?:cell(?: of (?P<of>[^\s,;()]+))?|zero|displacement)(?![\w-])")


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


def find_coupled(
    free: Sequence[str],
    added: Iterable[str],
    parent: FitState,
    known: Sequence[str],
    *,
    policy: Policy,
    sites: Sites | None = None,
    constraints: Sequence[str] = (),
    span: AngularRange | None = None,
) -> tuple[CoupledFinding, ...]:
    """Find the coupled sets among ``free`` that ``added`` takes part in.

    Args:
        free: names of all parameters that would be free, earlier steps included.
        added: those that the action names; a set it takes no part in is not its fault.
        parent: the state before, for separability.
        known: all parameter names.
        policy: the rules.
        sites: which atoms share a position; read from the parent where it is None.
        constraints: declared relations, each naming its parameters with blanks between (``A + B = 1``); a set is
            excused when one constraint names a member of each of its sides.
        span: range of the pattern, None where unknown; it decides what the range can separate, and the record of
            the parent (``position.separable``) only where it is not known.
    """
    sites = sites or Sites.of(parent)
    members, everything = _Pool(free, sites), _Pool(known, sites)
    touched = set(added)
    declared = [_names_in(text, known) for text in constraints]
    separability = read_separability(parent.features)
    found: list[CoupledFinding] = []
    for rule in policy.coupled:
        concerned = _concerned(rule, separability, span, policy)
        if not rule.enabled or not concerned:
            continue
        for where in members.places(rule.scope):
            sides = [_side(group, rule.scope, where, members, everything, concerned) for group in rule.groups]
            if not all(sides) or touched.isdisjoint(name for side in sides for name in side):
                continue
            if not any(all(not names.isdisjoint(side) for side in sides) for names in declared):
                found.append(CoupledFinding(rule, tuple(sides), where))
    return tuple(found)


class _Pool:
    """Parameters by what they mean and where they belong."""

    def __init__(self, names: Iterable[str], sites: Sites) -> None:
        self._found: dict[tuple[str, str, str], list[_Free]] = {}
        self._places: dict[str, dict[str, None]] = {"job": {"": None}, "phase": {}, "site": {}}
        for name in names:
            meaning = parse_parameter(name)
            if meaning is None:
                continue
            free = _Free(name, meaning)
            for scope, place in (("job", ""), ("phase", meaning.phase), ("site", sites.key(meaning))):
                self._found.setdefault((scope, place, meaning.family), []).append(free)
                if place:
                    self._places[scope][place] = None

    def places(self, scope: str) -> tuple[str, ...]:
        """Return the phases or sites there are; one empty name for the whole job."""
        return tuple(self._places[scope])

    def get(self, families: Iterable[str], scope: str, place: str) -> list[_Free]:
        """Return the members of these families there; what has no phase belongs to every phase."""
        places = (place, "") if scope == "phase" else (place,)
        return [free for family in families for there in places for free in self._found.get((scope, there, family), ())]


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


def _side(
    group: Group, scope: str, place: str, members: _Pool, everything: _Pool, concerned: frozenset[str]
) -> tuple[str, ...]:
    """Return the free members of one side, empty where the side is not satisfied."""
    families = group.any or group.all
    mine = [
        free
        for free in members.get(families, scope, place)
        if free.meaning.family != "phase.cell" or "*" in concerned or free.meaning.phase in concerned
    ]
    if group.all:
        owners = {_owner(free) for free in everything.get(families, scope, place)}
        if owners - {_owner(free) for free in mine}:
            return ()
    return tuple(free.name for free in mine)


def _owner(free: _Free) -> tuple[str, str]:
    return (free.meaning.phase, free.meaning.label)
