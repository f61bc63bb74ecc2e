"""Which of the candidates are in a pattern? A ranking by pattern matching, before any refinement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autoxrd.agent.candidates import evaluated_search, screened
from autoxrd.agent.job import Job
from autoxrd.domain.screening import Screened
from autoxrd.engines.protocol import EngineSession
from autoxrd.science.matching import MatchedSet, MatchSettings, first_choice
from autoxrd.science.matching.compare import contrasts
from autoxrd.science.matching.leftover import LeftLine, left_lines
from autoxrd.science.matching.overview import Search

__all__ = ["Identification", "Rival", "identify"]

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Rival:
    """A candidate that could stand in the place of another.

    Args:
        phase, rival: the one that was ranked first, and the other.
        likeness: squared cosine of their patterns, cells adjusted.
        inseparable: no powder pattern of this quality tells them apart.
        difference: what would.
    """

    phase: str
    rival: str
    likeness: float
    inseparable: bool
    difference: str


@dataclass(frozen=True, slots=True)
class Identification:
    """What the candidates explain.

    Args:
        answer: ``found``, ``partly`` (strong lines are left), or ``none``.
        sets: ranked; the first is the smallest that is not clearly worse than the best.
        seen: by phase of the first set, the share of its own expected intensity that is there.
        rivals: candidates that could stand in a phase's place.
        left: lines that the first set does not explain.
    """

    answer: str
    sets: tuple[Screened, ...]
    seen: dict[str, float]
    rivals: tuple[Rival, ...]
    left: tuple[LeftLine, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        from dataclasses import asdict

        return asdict(self)


def identify(job: Job, session: EngineSession, settings: MatchSettings | None = None) -> Identification:
    """Rank sets of a job's candidates by how well their patterns explain the data.

    Structures given beside the candidates count as candidates here.

    Raises:
        UserInputError: the engine cannot calculate a candidate.
        EngineError: the engine failed.
    """
    chosen = settings or MatchSettings()
    search = evaluated_search(job, session, chosen)
    ranked = search.ranked()
    first = first_choice(ranked, chosen)
    target = search.target_at(first.shift_deg if first else 0.0)
    left = left_lines(search.bank, target, first)
    order = ([first] if first else []) + [one for one in ranked if one is not first]
    strongest = max((line.relative_height for line in left), default=0.0)
    answer = "none" if first is None else ("partly" if strongest > chosen.strong_line else "found")
    return Identification(
        answer=answer,
        sets=tuple(screened(one, ranked[0]) for one in order[:_SHOWN]),
        seen={m.name: m.seen for m in first.members} if first else {},
        rivals=tuple(_rivals(search, first, ranked, chosen)) if first else (),
        left=left,
    )


def _rivals(search: Search, first: MatchedSet, ranked: Sequence[MatchedSet], settings: MatchSettings) -> list[Rival]:
    """Return the candidates that could stand in the place of a member, the most alike first."""
    bank, found = search.bank, []
    scored = {one.names: one.criterion for one in ranked}
    for member in first.members:
        for other in bank.lines:
            if other in first.names:
                continue
            alike = min(bank.likeness(member.name, other), bank.likeness(other, member.name), 1.0)
            exchanged = tuple(sorted({*first.names, other} - {member.name}))
            near = scored.get(exchanged, float("inf")) - first.criterion < settings.decisive
            if alike < settings.alike and not near:
                continue
            same = alike > settings.same
            found.append(Rival(member.name, other, alike, same or near, _difference(search, member.name, other, same)))
    return sorted(found, key=lambda r: (-r.likeness, r.phase, r.rival))


def _difference(search: Search, first: str, second: str, same: bool) -> str:
    places = () if same else contrasts(search.bank, first, second)
    if not places:
        return (
            "nothing in a powder pattern: enantiomorphs, or one structure twice; chemical analysis, resonant "
            "single-crystal or electron diffraction could"
        )
    shown = ", ".join(f"{c.two_theta_deg:.2f} deg ({100 * c.first:.0f} against {100 * c.second:.0f})" for c in places)
    return f"relative heights at {shown}"
