"""Which causes do the offsets ask for, and which others would do as well?

Over a usual range zero, displacement and cell correlate beyond 0.98 when all are fitted at once; yet one cause alone
usually explains the offsets and another one alone does not. So every subset of causes is fitted, each cause priced,
the cheapest subset taken, and a cause that a rival subset of nearly the same price does without is ambiguous.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.laws import ALONG, CELL, DISPLACEMENT, ZERO, LawFit, LawProblem
from autoxrd.science.settings import PositionSettings

__all__ = ["Causes", "find_causes", "kinds"]


@dataclass(frozen=True, slots=True)
class Causes:
    """The cheapest explanation of the offsets.

    Args:
        fit: by the columns of the chosen causes.
        ambiguous: causes (``zero``, ``displacement``, ``cell``) chosen that a rival does without.
        rival: columns of the best such rival.
    """

    fit: LawFit
    ambiguous: frozenset[str] = frozenset()
    rival: tuple[str, ...] = ()

    @property
    def chosen(self) -> tuple[str, ...]:
        """Columns of the chosen causes."""
        return self.fit.names


def kinds(names: tuple[str, ...]) -> set[str]:
    """Return the causes that columns belong to: ``zero``, ``displacement``, ``cell``."""
    return {name.split(".")[0] for name in names}


def _cell_options(names: tuple[str, ...], settings: PositionSettings) -> list[tuple[str, ...]]:
    """Return every combination of cells held, isotropic or free within the symmetry."""
    phases = sorted({name.split(".")[1] for name in names if name.startswith(f"{CELL}.")})
    options = []
    for phase in phases:
        free = tuple(n for n in names if n == f"{CELL}.{phase}" or n.startswith(f"{CELL}.{phase}."))
        options.append(list(dict.fromkeys(((), free[:1], free))))
    if len(phases) > settings.max_separate_phases:
        tables = [tuple(option[min(level, len(option) - 1)] for option in options) for level in range(3)]
    else:
        tables = list(product(*options))
    found = []
    for table in tables:
        columns = tuple(name for part in table for name in part)
        found.append(columns)
        # a factor common to all beside one for each is one too many
        if CELL in names and not all(table):
            found.append((CELL, *columns))
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Subsets:
    """Sets of causes: their columns by name, the same as rows of a mask, and their prices, shape (subsets,)."""

    names: tuple[tuple[str, ...], ...]
    mask: FloatArray
    price: FloatArray


@lru_cache(maxsize=64)
def _subsets(names: tuple[str, ...], unlikely: frozenset[str], n_used: int, settings: PositionSettings) -> _Subsets:
    """Return every set of causes that so many peaks can bear."""
    shifts: list[tuple[str, ...]] = [(), (ZERO,)]
    if DISPLACEMENT in names:
        shifts += [(DISPLACEMENT,), (ZERO, DISPLACEMENT)]
    if ALONG in names:
        shifts += [(DISPLACEMENT, ALONG), (ZERO, DISPLACEMENT, ALONG)]
    cells = _cell_options(names, settings)
    found = tuple((*shift, *cell) for shift in shifts for cell in cells if len(shift) + len(cell) < n_used)
    mask = np.array([[float(name in columns) for name in names] for columns in found])
    return _Subsets(found, mask, np.array([_price(columns, unlikely, settings) for columns in found]))


def _price(names: tuple[str, ...], unlikely: frozenset[str], settings: PositionSettings) -> float:
    extra = sum(1 for name in names if name.count(".") == 2 or name == ALONG)
    price = settings.cause_price * (len(names) - extra) + settings.extra_price * extra
    return price + (settings.unlikely_price if unlikely & set(names) else 0.0)


def _prices(problem: LawProblem, known: _Subsets, chosen: NDArray[np.bool_], settings: PositionSettings) -> FloatArray:
    """Return what the chosen sets leave, with their prices; infinite where causes cancel one another."""
    chi2, cancelling = problem.fit_many(known.mask[chosen])
    return np.where(cancelling > settings.cancelling, np.inf, chi2 / problem.scale + known.price[chosen])


def find_causes(problem: LawProblem, settings: PositionSettings) -> Causes:
    """Return the cheapest subset of causes and what is ambiguous about it."""
    least = problem.least()
    if (problem.chi2_null - least) / problem.scale < settings.cause_price:
        return Causes(problem.fit(()))
    known = _subsets(problem.names, problem.unlikely, problem.n_used, settings)
    subsets = known.names
    prices = np.full(len(subsets), np.inf)
    cheap = known.price <= settings.cause_price
    prices[cheap] = _prices(problem, known, cheap, settings)
    # no set leaves less than all laws together: what is too dear even so can neither be the best nor its rival
    worth = ~cheap & (least / problem.scale + known.price <= prices.min() + settings.rival_margin)
    prices[worth] = _prices(problem, known, worth, settings)
    order = np.argsort(prices, kind="stable")
    best = subsets[order[0]]
    named = kinds(best)
    for row in order[1:]:
        if prices[row] - prices[order[0]] >= settings.rival_margin:
            break
        lacking, other = named - kinds(subsets[row]), kinds(subsets[row]) - named
        # a rival that only does without is a matter of significance, and one of more causes can mimic anything
        if lacking and other and len(kinds(subsets[row])) <= len(named):
            return Causes(problem.fit(best), frozenset(lacking), subsets[row])
    return Causes(problem.fit(best))
