"""What would each candidate that is not in the model take away from what the model leaves?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Feature
from autoxrd.science.features import plain
from autoxrd.science.inputs import FitArrays
from autoxrd.science.matching.bank import Bank, Match
from autoxrd.science.matching.lines import CandidateLines, lines_of
from autoxrd.science.matching.overview import fwhm_along
from autoxrd.science.matching.search import seen_lines
from autoxrd.science.matching.settings import MatchSettings
from autoxrd.science.matching.target import Target, axis_for, on_u, pattern_target

__all__ = ["candidate_features"]

_FIT_LINES = 4


def candidate_features(
    result: FitArrays,
    candidates: Mapping[str, CandidateLines],
    wavelengths: tuple[float, ...],
    settings: MatchSettings,
) -> dict[str, Feature]:
    """Return the features of all candidates that are not in the model.

    ``candidate.C``: share of chi2 that C's pattern, its cell moved within the tolerance, would take from the residual;
    ``.C.seen``: share of its expected own intensity that the residual holds; ``.C.strain``: that move of the cell;
    ``candidate.C.for.P``: what C explains of what P explains, in the place of P, where their patterns are alike, and
    ``candidate.C.for.P.strain`` the move of its cell there.

    Args:
        result: the fit.
        candidates: lines by name.
        wavelengths: of the emission lines, angstrom.
        settings: tolerances.
    """
    inside = [phase.name for phase in result.phases]
    outside = {name: lines for name, lines in candidates.items() if name not in inside}
    if not outside:
        return {}
    own = [lines_of(result.reflections, i, name, wavelengths) for i, name in enumerate(inside)]
    axis = axis_for(result.x, fwhm_along(result.x, result.reflections), settings)
    bank = Bank(axis, [*outside.values(), *own], settings)
    net_obs = result.y_obs - result.background
    shift = _shift_of(result, wavelengths)

    def target(curve: FloatArray) -> Target:
        return pattern_target(
            axis, result.x, curve, sigma=result.sigma, net_obs=net_obs, shift=shift, settings=settings
        )

    rest = target(result.y_obs - result.y_calc)
    model = target(result.y_calc - result.background).y
    features: dict[str, Feature] = {}
    spectra, places = bank.spectra(rest), on_u(result.x - shift(result.x))
    for name in outside:
        match = bank.match(name, spectra)
        found = seen_lines(bank, rest, [match], settings, others=model)[0]
        shape = np.interp(places, axis.u, bank.moved(name, match.lag), left=0.0, right=0.0)
        features |= _features(name, found, _gain(shape, result.y_obs - result.y_calc, result.sigma))
    for index, name in enumerate(inside):
        if own[index].sine.size:
            place = rest.with_y(rest.y + target(result.phase_patterns[index]).y)
            features |= _exchanges(bank, place, name, outside, settings)
    return features


def _shift_of(result: FitArrays, wavelengths: tuple[float, ...]) -> Callable[[FloatArray], FloatArray]:
    """Return the shift of the model's lines along the pattern: constant, cosine and sin(2 theta) terms."""
    table = result.reflections
    length = np.asarray(wavelengths)[np.minimum(table.line, len(wavelengths) - 1)]
    sine = length / (2.0 * table.d_angstrom)
    good = (sine < 1.0) & np.isfinite(table.position)
    true = np.rad2deg(2.0 * np.arcsin(sine[good]))
    if true.size < _FIT_LINES:
        return lambda two_theta: np.zeros_like(two_theta)

    def columns(two_theta: FloatArray) -> FloatArray:
        theta = np.deg2rad(two_theta) / 2.0
        return np.stack([np.ones_like(theta), np.cos(theta), np.sin(2.0 * theta)], axis=1)

    fit = np.linalg.lstsq(columns(true), table.position[good] - true, rcond=None)[0]
    return lambda two_theta: np.asarray(columns(two_theta) @ fit)


def _gain(shape: FloatArray, rest: FloatArray, sigma: FloatArray) -> float:
    """Return the share of chi2, by counting weights, that a multiple of a curve takes away, arrays of shape (n,)."""
    weight = 1.0 / np.square(sigma)
    cross, power = float(np.dot(weight * rest, shape)), float(np.dot(weight, shape * shape))
    total = float(np.dot(weight, rest * rest))
    return cross * cross / (power * total) if cross > 0 and power > 0 and total > 0 else 0.0


def _features(name: str, match: Match, gain: float) -> dict[str, Feature]:
    return {
        f"candidate.{name}": plain(gain, n_used=match.lines),
        f"candidate.{name}.seen": plain(match.seen, n_used=match.lines, reason="no line of its own stands clear"),
        f"candidate.{name}.strain": plain(match.strain),
    }


def _exchanges(
    bank: Bank, place: Target, name: str, outside: Mapping[str, CandidateLines], settings: MatchSettings
) -> dict[str, Feature]:
    """Compare each candidate with the phase whose place it would take."""
    spectra = bank.spectra(place)
    mine = bank.match(name, spectra)
    if not mine.drop > 0:
        return {}
    found = {}
    for other in outside:
        alike = min(bank.likeness(name, other), 1.0)
        if alike < settings.rival:
            continue
        theirs = bank.match(other, spectra)
        text = f"likeness of the patterns {alike:.3f}"
        found[f"candidate.{other}.for.{name}"] = plain(theirs.drop / mine.drop, reason=text)
        found[f"candidate.{other}.for.{name}.strain"] = plain(theirs.strain)
    return found
