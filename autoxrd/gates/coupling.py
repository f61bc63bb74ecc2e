"""Which free parameters can the data not tell apart? Coupled sets by meaning, over the cumulative released set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from autoxrd.domain.naming import full_name, split_name
from autoxrd.domain.state import Feature, FitState
from autoxrd.gates.geometry import AngularRange, range_of
from autoxrd.gates.histograms import as_seen_by, histograms_of
from autoxrd.gates.known import known_cells
from autoxrd.gates.policy_model import CoupledSet, Group, Policy
from autoxrd.gates.selectors import Selector, covers, parse_parameter
from autoxrd.gates.sites import Sites

__all__ = ["CoupledFinding", "Separability", "coupled_in_several", "find_coupled", "read_separability"]

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

    Where the cell of a phase is certified, its lines tell what the instrument does to all of them, so that the other
    cells are coupled with nothing that one side of a set may be; what the instrument's own laws share, they still do.

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
    separability, placed = read_separability(parent.features), bool(known_cells(parent))
    found: list[CoupledFinding] = []
    for rule in policy.coupled:
        concerned = _concerned(rule, separability, span, policy)
        if not rule.enabled or not concerned:
            continue
        for where in members.places(rule.scope):
            sides = [_side(group, rule.scope, where, members, everything, concerned) for group in rule.groups]
            if placed:
                pairs = zip(rule.groups, sides, strict=True)
                sides = [side if group.all else _no_cells(side) for group, side in pairs]
            if not all(sides) or touched.isdisjoint(name for side in sides for name in side):
                continue
            if not any(all(not names.isdisjoint(side) for side in sides) for names in declared):
                found.append(CoupledFinding(rule, tuple(sides), where))
    return tuple(found)


def coupled_in_several(
    free: Sequence[str],
    added: Iterable[str],
    parent: FitState,
    known: Sequence[str],
    *,
    policy: Policy,
    constraints: Sequence[str] = (),
) -> tuple[CoupledFinding, ...]:
    """Find coupled sets in a fit of several histograms: as each histogram sees it, its own with the sample's.

    What one histogram cannot tell from the sample's cells (its wavelength or DIFC, over a short range its zero), it can
    where another one, with lengths held and no such trouble of its own, gives these.

    Args:
        free: full names of all that would be free.
        added: those that the action names.
        parent: the state before.
        known: full names of all parameters.
        policy: the rules.
        constraints: declared relations, as for `find_coupled`.
    """
    wanted, found = set(added), []
    seen = {name: _Seen(name, free, parent, known, policy, constraints) for name in histograms_of(parent)}
    for name, eye in seen.items():
        others = [other for key, other in seen.items() if key != name and not other.scaled]
        for finding in eye.findings:
            of_cells = any(all(".cell." in member for member in side) for side in finding.members)
            if of_cells and any(finding.rule.id not in other.coupled for other in others):
                continue
            sides = tuple(tuple(full_name(name, member) for member in side) for side in finding.members)
            placed = CoupledFinding(finding.rule, sides, finding.where)
            if placed not in found and not wanted.isdisjoint(member for side in sides for member in side):
                found.append(placed)
    return tuple(found)


class _Seen:
    """What would be free, as one of several histograms sees it.

    Attributes:
        scaled: whether it has a scale of lengths of its own: a free wavelength, DIFC or strain.
        findings: its coupled sets.
        coupled: ids of their rules.
    """

    def __init__(
        self,
        histogram: str,
        free: Sequence[str],
        parent: FitState,
        known: Sequence[str],
        policy: Policy,
        constraints: Sequence[str],
    ) -> None:
        def seen(names: Sequence[str]) -> list[str]:
            return [bared for name in names for owner, bared in (split_name(name),) if owner in ("", histogram)]

        mine, view = seen(free), as_seen_by(histogram, parent)
        self.scaled = any(name in _LENGTH_SCALES or ".strain_hydrostatic" in name for name in mine)
        self.findings = find_coupled(
            mine, mine, view, seen(known), policy=policy, constraints=constraints, span=range_of(view)
        )
        self.coupled = {finding.rule.id for finding in self.findings}


_LENGTH_SCALES = frozenset({"instrument.wavelength", "instrument.difC"})


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


def _no_cells(side: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in side if ".cell." not in name)


def _owner(free: _Free) -> tuple[str, str]:
    return (free.meaning.phase, free.meaning.label)
