"""When is a profile match a success? Free intensities fit anything: only where lines stand can be proven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from autoxrd.domain.state import FitState
from autoxrd.gates.metrics import read_metric
from autoxrd.gates.model_class import AuditFinding

__all__ = ["MatchLimits", "is_match", "match_findings", "returning"]

_MERIT, _SEEN, _LINES = "match.figure_of_merit", "match.seen_share", "match.lines"


@dataclass(frozen=True, slots=True)
class MatchLimits:
    """Numbers of judgement.

    Args:
        merit_warn: below this figure of merit an indexing is doubtful (de Wolff 1968, doi:10.1107/S002188986800508X).
        merit_abstain: below this it is as good as that of lines at random, which have 2, and more where the cell was
            refined on the few lines that were met.
        seen_warn: share of the calculated lines with an intensity, below which most of them explain nothing.
    """

    merit_warn: float = 10.0
    merit_abstain: float = 5.0
    seen_warn: float = 0.5


def is_match(state: FitState) -> bool:
    """Return whether a state is a profile match: it has no structure to be judged."""
    return _LINES in state.features


def returning(parent: FitState) -> tuple[str, ...]:
    """Return what a structure is fitted with after a profile match, beside what was free: scales and background."""
    return (*(f"phase.{phase.name}.scale" for phase in parent.phases), "background")


def match_findings(state: FitState, limits: MatchLimits | None = None) -> Iterator[tuple[bool, AuditFinding]]:
    """Yield (whether it forbids success, finding) of what only the lattice can prove.

    Args:
        state: a profile match.
        limits: numbers of judgement.
    """
    limits = limits or MatchLimits()
    merit, seen = read_metric(state, _MERIT), read_metric(state, _SEEN)
    told = state.features[_MERIT].reason if _MERIT in state.features else ""
    if merit.level is None:
        text = f"too few lines stand out to prove a lattice ({told or 'no figure of merit'}): free intensities fit them"
        yield False, AuditFinding(code="lattice_not_proven", text=text)
    elif merit.level < limits.merit_warn:
        over = merit.level < limits.merit_abstain
        limit = limits.merit_abstain if over else limits.merit_warn
        text = (
            f"the lattice does not explain where the lines are better than chance would: {told}, figure of merit"
            f" M = {merit.level:.1f} (lines at random have 2, a right cell more than 10)"
        )
        yield over, AuditFinding(code="lattice_not_supported", text=text, measured=merit.level, limit=limit)
    if seen.level is not None and seen.level < limits.seen_warn:
        text = (
            f"{1.0 - seen.level:.0%} of the calculated lines have no intensity: the cell may be too large, or its space"
            " group have more absences"
        )
        yield (
            False,
            AuditFinding(code="lines_without_intensity", text=text, measured=seen.level, limit=limits.seen_warn),
        )
