"""Which sets of candidates explain a pattern best? A beam search, each member's cell moved to its best place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from autoxrd.domain.pattern import FloatArray
from autoxrd.science.arrays import piece_medians
from autoxrd.science.matching.bank import Bank, Match
from autoxrd.science.matching.settings import MatchSettings
from autoxrd.science.matching.target import Target
from autoxrd.science.shapes import windows_between

__all__ = ["MatchedSet", "alike_pairs", "first_choice", "search_sets", "seen_lines"]

_LINE_REACH_FWHM = 0.6
_LEVEL_FWHM = 20.0
_OWN_SHARE = 0.5
_FREE_PER_PHASE = 2.0
"""Scale and cell."""

Pairs = frozenset[frozenset[str]]


@dataclass(frozen=True, slots=True)
class MatchedSet:
    """A set of candidates on a target, the strongest first.

    Args:
        explained: share of the weighted signal.
        shift_deg: amplitude of the common shift that it was found with.
        criterion: Bayesian information criterion on the resolvable elements; smaller is better.
    """

    members: tuple[Match, ...]
    explained: float
    shift_deg: float = 0.0
    criterion: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members, sorted."""
        return tuple(sorted(m.name for m in self.members))


def _fit(bank: Bank, target: Target, members: Sequence[Match]) -> tuple[FloatArray, FloatArray]:
    """Return scales, shape (k,), and columns, shape (k, g), of non-negative least squares."""
    columns = np.stack([bank.moved(m.name, m.lag) for m in members])
    weighted = columns * target.weight
    normal, right = weighted @ columns.T, weighted @ target.y
    scale = np.sqrt(np.maximum(np.diag(normal), 1e-300))
    root = np.linalg.cholesky(normal / np.outer(scale, scale) + 1e-9 * np.eye(len(members)))
    return nnls(root.T, np.linalg.solve(root, right / scale))[0] / scale, columns


def _refined(bank: Bank, target: Target, members: Sequence[Match]) -> tuple[tuple[Match, ...], float]:
    """Move each member with the others held, once; return the members and chi2."""
    scales, columns = _fit(bank, target, members)
    if len(members) > 1:
        model = scales @ columns
        rests = (target.y - model + s * c for s, c in zip(scales, columns, strict=True))
        members = [
            bank.match(m.name, bank.spectra(target.with_y(rest))) for m, rest in zip(members, rests, strict=True)
        ]
        scales, columns = _fit(bank, target, members)
    chi2 = float(np.dot(target.weight, np.square(target.y - scales @ columns)))
    kept = tuple(
        replace(m, scale=float(s), drop=float(s * s * np.dot(target.weight, np.square(c))))
        for m, s, c in zip(members, scales, columns, strict=True)
    )
    return kept, chi2


def seen_lines(
    bank: Bank,
    target: Target,
    members: Sequence[Match],
    settings: MatchSettings,
    *,
    others: FloatArray | None = None,
) -> tuple[Match, ...]:
    """Say for each member how much of the intensity of its own lines is there.

    Args:
        bank: the candidates.
        target: what is to be explained.
        members: who explains it.
        settings: what counts as a line, and as seen.
        others: what is explained already and not in the target, shape (g,); lines under it are nobody's own.
    """
    columns = [m.scale * bank.moved(m.name, m.lag) for m in members]
    total = np.sum(columns, axis=0)
    covered = total if others is None else total + others
    rest = target.y - total
    rest = rest - np.maximum(_level(bank, rest), 0.0)
    axis, found = bank.axis, []
    for member, own in zip(members, columns, strict=True):
        at = bank.places(member.name, member.lag)
        reach = _LINE_REACH_FWHM * np.interp(at, axis.u, axis.fwhm)
        windows = windows_between(axis.u, at - reach, at + reach)
        count, owner, point = at.size, windows.owner, windows.point
        weight = target.weight[point]
        power = np.bincount(owner, weight * np.square(own[point]), minlength=count)
        there = np.bincount(owner, (rest + own)[point] * own[point] * weight, minlength=count)
        ratio = there / np.maximum(power, 1e-300)
        alone = np.bincount(owner, own[point], minlength=count)
        looked = alone > _OWN_SHARE * np.bincount(owner, covered[point], minlength=count)
        looked &= power > settings.line_floor**2
        area = bank.lines[member.name].area
        expected = float(area[looked].sum())
        share = float(area[looked & (ratio > settings.line_seen)].sum()) / expected if expected > 0 else float("nan")
        found.append(replace(member, seen=share, lines=int(looked.sum())))
    return tuple(found)


def _level(bank: Bank, curve: FloatArray) -> FloatArray:
    """Return the level of a curve over many line widths, shape (g,): a wrong background is no line."""
    axis = bank.axis
    size = max(int(_LEVEL_FWHM * float(np.median(axis.fwhm)) / axis.step), 3)
    count = max(curve.size // size, 2)
    size = curve.size // count
    return np.asarray(np.interp(np.arange(curve.size), (np.arange(count) + 0.5) * size, piece_medians(curve, count)))


def _elements(bank: Bank, target: Target) -> float:
    """Return the number of line widths in which there is signal: the independent facts of the pattern."""
    seen = np.square(target.y) * target.weight > 1.0
    return max(float(np.sum(bank.axis.step / bank.axis.fwhm[seen])), 10.0)


def alike_pairs(bank: Bank, settings: MatchSettings) -> Pairs:
    """Return the pairs of candidates that are too much alike to be put side by side by their lines alone."""
    names = sorted(bank.lines)
    return frozenset(
        frozenset((a, b))
        for i, a in enumerate(names)
        for b in names[i + 1 :]
        if max(bank.likeness(a, b), bank.likeness(b, a)) > settings.beside
    )


def search_sets(
    bank: Bank, target_at: Callable[[float], Target], shifts: Sequence[float], settings: MatchSettings
) -> tuple[MatchedSet, ...]:
    """Return sets of candidates, the best by the information criterion first; empty where none explains anything.

    Args:
        bank: the candidates.
        target_at: the target with a common shift of an amplitude (degrees 2theta) taken off.
        shifts: amplitudes to try.
        settings: tolerances.
    """
    alike = alike_pairs(bank, settings)

    def score(amplitude: float) -> float:
        found = _beam(bank, target_at(amplitude), alike, settings, width=1, most=settings.shift_phases)
        if not found:
            return 0.0
        best = max(found, key=lambda s: s.explained)
        strain = np.mean([(m.strain / settings.cell_relative) ** 2 for m in best.members])
        return best.explained - settings.prefer_small * float(strain + (amplitude / settings.shift_deg) ** 2)

    best = max(shifts, key=lambda amplitude: (score(amplitude), -abs(amplitude)))
    target = target_at(best)
    n = _elements(bank, target)
    ranked = []
    for one in _beam(bank, target, alike, settings, width=settings.beam, most=settings.most_phases):
        criterion = n * np.log(max(1.0 - one.explained, 1e-9)) + _FREE_PER_PHASE * len(one.members) * np.log(n)
        members = sorted(seen_lines(bank, target, one.members, settings), key=lambda m: -m.drop)
        ranked.append(MatchedSet(tuple(members), one.explained, best, float(criterion)))
    return tuple(sorted(ranked, key=lambda s: (s.criterion, s.names)))


def first_choice(ranked: Sequence[MatchedSet], settings: MatchSettings) -> MatchedSet | None:
    """Return the set to be believed first: of those not clearly worse than the best, the smallest that leaves none out.

    A set counts only when its members' lines are there. A larger set with the better criterion goes before a smaller
    one when nearly all lines of what it adds are there: that is evidence beside the criterion.
    """
    sound = [one for one in ranked if all(not m.seen < settings.least_seen for m in one.members)]
    if not sound:
        return None
    near = [one for one in sound if one.criterion - sound[0].criterion < settings.decisive]
    order = sorted(near, key=lambda one: (len(one.members), one.criterion))
    return next(one for one in order if not any(_adds_surely(big, one, settings) for big in near))


def _adds_surely(big: MatchedSet, small: MatchedSet, settings: MatchSettings) -> bool:
    """Tell whether a set is another one and phases that are surely there, and better."""
    if not set(big.names) > set(small.names) or big.criterion >= small.criterion:
        return False
    extra = [m for m in big.members if m.name not in small.names]
    return all(m.seen >= settings.sure_seen and m.lines >= settings.sure_lines for m in extra)


def _beam(
    bank: Bank, target: Target, alike: Pairs, settings: MatchSettings, *, width: int, most: int
) -> tuple[MatchedSet, ...]:
    """Grow sets one candidate at a time, the best ``width`` of each size kept."""
    whole = float(np.dot(target.weight, np.square(target.y)))
    if whole <= 0:
        return ()
    front: list[MatchedSet] = [MatchedSet((), 0.0)]
    found: dict[tuple[str, ...], MatchedSet] = {}
    for size in range(1, most + 1):
        grown: dict[tuple[str, ...], MatchedSet] = {}
        for base in front:
            for one in _grow(bank, target, base, alike, width):
                names = tuple(sorted((*base.names, one.name)))
                if names in grown:
                    continue
                members, chi2 = _refined(bank, target, [*base.members, one])
                explained = 1.0 - chi2 / whole
                least = settings.least_explained if size == 1 else settings.least_gain * (1.0 - base.explained)
                if explained - base.explained >= least:
                    grown[names] = MatchedSet(members, explained)
        front = sorted(grown.values(), key=lambda s: (-s.explained, s.names))[:width]
        found |= {s.names: s for s in grown.values()}
    return tuple(found.values())


def _grow(bank: Bank, target: Target, base: MatchedSet, alike: Pairs, width: int) -> list[Match]:
    """Return the candidates that take most away from what a set leaves."""
    rest = target.y
    if base.members:
        scales, columns = _fit(bank, target, base.members)
        rest = target.y - scales @ columns
    inside = [m.name for m in base.members]
    others = [n for n in sorted(bank.lines) if n not in inside and not any({n, m} in alike for m in inside)]
    spectra = bank.spectra(target.with_y(rest))
    matches = [bank.match(name, spectra) for name in others]
    return sorted((m for m in matches if m.drop > 0), key=lambda m: (-m.drop, m.name))[: width + 1]
