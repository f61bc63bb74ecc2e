"""Which of the phases that an engine evaluated explain a pattern, wherever zero, displacement and cells may be?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from autoxrd.domain.instrument import Geometry
from autoxrd.domain.pattern import FloatArray
from autoxrd.science.inputs import ReflectionArrays
from autoxrd.science.matching.bank import Bank
from autoxrd.science.matching.lines import CandidateLines
from autoxrd.science.matching.search import MatchedSet, search_sets
from autoxrd.science.matching.settings import MatchSettings
from autoxrd.science.matching.target import Target, axis_for, background_under, pattern_target

__all__ = ["Observed", "Search", "fwhm_along", "rank_sets", "search_for"]


@dataclass(frozen=True, slots=True)
class Observed:
    """A pattern to be explained, arrays of shape (n,).

    Args:
        x: degrees 2theta.
        y: intensity.
        sigma: its uncertainty.
        fwhm: of a line at each point, degrees 2theta.
    """

    x: FloatArray
    y: FloatArray
    sigma: FloatArray
    fwhm: FloatArray

    @property
    def typical_fwhm(self) -> float:
        """Median width, degrees."""
        return float(np.median(self.fwhm))


def fwhm_along(x: FloatArray, reflections: ReflectionArrays) -> FloatArray:
    """Return the width of a line at each point, shape (n,), from the calculated reflections of all phases."""
    good = np.isfinite(reflections.fwhm) & (reflections.fwhm > 0) & np.isfinite(reflections.position)
    position, width = reflections.position[good], reflections.fwhm[good]
    order = np.argsort(position, kind="stable")
    if order.size == 0:
        return np.full(x.size, 6.0 * float(np.median(np.diff(x))))
    return np.asarray(np.interp(x, position[order], width[order]))


def _shift_law(geometry: Geometry) -> Callable[[FloatArray], FloatArray]:
    """Return what a common shift does along the pattern: a flat specimen off the axis, or a constant."""
    if geometry is Geometry.BRAGG_BRENTANO:
        return lambda two_theta: np.asarray(np.cos(np.deg2rad(two_theta) / 2.0))
    return lambda two_theta: np.ones_like(two_theta)


@dataclass(frozen=True, slots=True)
class Search:
    """A pattern with candidates, ready to be searched.

    Args:
        bank: the candidates' patterns.
        target_at: what is to be explained, a common shift of an amplitude in degrees 2theta taken off.
        shifts: amplitudes to try.
        settings: tolerances.
    """

    bank: Bank
    target_at: Callable[[float], Target]
    shifts: tuple[float, ...]
    settings: MatchSettings

    def ranked(self) -> tuple[MatchedSet, ...]:
        """Return sets of candidates that explain the pattern, best first; empty where none explains anything."""
        return search_sets(self.bank, self.target_at, self.shifts, self.settings)


def search_for(
    observed: Observed, candidates: Sequence[CandidateLines], geometry: Geometry, settings: MatchSettings
) -> Search:
    """Prepare the search for candidates in a pattern.

    Args:
        observed: the pattern.
        candidates: lines of each candidate.
        geometry: decides the law of the common shift.
        settings: tolerances.
    """
    typical = observed.typical_fwhm
    reach = max(settings.window_deg, settings.window_fwhm * typical)
    net = observed.y - background_under(observed.x, observed.y, fwhm=typical, half_deg=reach)
    axis = axis_for(observed.x, observed.fwhm, settings)
    law = _shift_law(geometry)

    @cache
    def target_at(amplitude: float) -> Target:
        return pattern_target(
            axis,
            observed.x,
            net,
            sigma=observed.sigma,
            net_obs=net,
            shift=lambda two_theta: amplitude * law(two_theta),
            settings=settings,
        )

    step = settings.shift_step_fwhm * typical
    count = int(settings.shift_deg / step) if settings.shift_deg > 0 else 0
    shifts = tuple(index * step for index in range(-count, count + 1))
    return Search(Bank(axis, candidates, settings), target_at, shifts, settings)


def rank_sets(
    observed: Observed, candidates: Sequence[CandidateLines], geometry: Geometry, settings: MatchSettings
) -> tuple[MatchedSet, ...]:
    """Return sets of candidates that explain a pattern, best first (see :func:`search_for`)."""
    return search_for(observed, candidates, geometry, settings).ranked()
