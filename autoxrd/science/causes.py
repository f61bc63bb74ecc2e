"""Which causes do the offsets ask for, and which others would do as well?

Over a usual range zero, displacement and cell correlate beyond 0.98 when all are fitted at once; yet one cause alone
usually explains the offsets and another one alone does not. So every subset of causes is fitted, each cause priced,
the cheapest subset taken, and a cause that a rival subset of nearly the same price does without is ambiguous.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from autoxrd.science.laws import CELL, LawFit, LawProblem
from autoxrd.science.settings import PositionSettings

__all__ = ["Causes", "find_causes"]


@dataclass(frozen=True, slots=True)
class Causes:
    """The cheapest explanation of the offsets.

    Args:
        fit: by the columns of the chosen causes.
        chosen: columns of the chosen causes.
        ambiguous: chosen causes that a rival does without.
        rival: columns of the best such rival.
    """

    fit: LawFit
    chosen: tuple[str, ...]
    ambiguous: tuple[str, ...]
    rival: tuple[str, ...]


def _terms(problem: LawProblem, settings: PositionSettings) -> list[tuple[str, ...]]:
    """Group columns into causes."""
    cells = tuple(name for name in problem.names if name.startswith(f"{CELL}."))
    others = [(name,) for name in problem.names if name not in cells]
    if len(cells) > settings.max_separate_phases:
        return [*others, cells]
    return [*others, *((name,) for name in cells)]


def _subsets(problem: LawProblem, settings: PositionSettings) -> list[tuple[str, ...]]:
    terms = _terms(problem, settings)
    cells = {name for name in problem.names if name.startswith(f"{CELL}.")}
    found = []
    for size in range(len(terms) + 1):
        for group in combinations(terms, size):
            names = tuple(name for term in group for name in term)
            # a common factor beside every single one is one too many
            if not (CELL in names and cells <= set(names)) and len(names) < problem.n_used:
                found.append(names)
    return found


def find_causes(problem: LawProblem, settings: PositionSettings) -> Causes:
    """Return the cheapest subset of causes and what is ambiguous about it."""
    null = problem.chi2_null / problem.scale
    full = problem.fit(problem.names)
    if null - full.chi2 / problem.scale < settings.cause_price:
        return Causes(problem.fit(()), (), (), ())
    priced = []
    for names in _subsets(problem, settings):
        fit = problem.fit(names)
        priced.append((fit.chi2 / problem.scale + settings.cause_price * len(names), fit))
    priced.sort(key=lambda item: (item[0], len(item[1].names)))
    price, best = priced[0]
    rivals = [fit for other, fit in priced[1:] if other - price < settings.rival_margin]
    ambiguous = tuple(n for n in best.names if any(_without(n, rival) for rival in rivals))
    rival = next((fit.names for fit in rivals if any(_without(n, fit) for n in ambiguous)), ())
    return Causes(best, best.names, ambiguous, rival)


def _without(name: str, rival: LawFit) -> bool:
    """Tell whether a rival does without a cause; a common cell factor and single ones stand for each other."""
    if name.startswith(CELL):
        return not any(CELL in (other, name) or other == name for other in rival.names if other.startswith(CELL))
    return name not in rival.names
