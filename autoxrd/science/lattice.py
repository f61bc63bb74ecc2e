"""Does the lattice of a profile match explain where lines are, or do free intensities fit whatever is there?

With enough lines any lattice fits any pattern: what tells a right one is that its lines are few and stand exactly where
lines are observed. De Wolff's figure of merit says both in one number, from the maxima of the data, not from the fit:
M = Q_N / (2 <|dQ|> N_calc), Q = 1/d^2 (de Wolff 1968, doi:10.1107/S002188986800508X). Lines that stand at random are
met to a quarter of their distance, M = 2; above 10 an indexing is believed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.signal import find_peaks

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Feature
from autoxrd.science.features import plain, unavailable
from autoxrd.science.frame import Frame
from autoxrd.science.inputs import FitArrays, ReflectionArrays
from autoxrd.science.settings import LatticeSettings

__all__ = ["FIGURE_OF_MERIT", "LINES", "SEEN_SHARE", "lattice_features", "without_structure"]

LINES = "match.lines"
SEEN_SHARE = "match.seen_share"
FIGURE_OF_MERIT = "match.figure_of_merit"
_STRUCTURAL = ("r_bragg.", "intensity.", "presence.", "absent_lines.", "phases_unsupported", "missing_peak_ratio")
_SMOOTH = 0.3
"""Standard deviation, in FWHM, of what smooths the data: near the matched filter, and it parts lines a FWHM apart."""
_MOST_POINTS = 3.0


def without_structure(features: Mapping[str, Feature]) -> dict[str, Feature]:
    """Return the features that a fit with free intensities has: none of what only a structure predicts."""
    return {name: feature for name, feature in features.items() if not name.startswith(_STRUCTURAL)}


def lattice_features(result: FitArrays, frame: Frame, settings: LatticeSettings) -> dict[str, Feature]:
    """Return ``match.lines``, ``match.lines_seen``, ``match.seen_share`` and ``match.figure_of_merit``.

    Args:
        result: a profile match.
        frame: of it, for the noise.
        settings: thresholds.
    """
    first = result.reflections.line == result.reflections.line.min(initial=0)
    order = np.argsort(result.reflections.position[first], kind="stable")
    position, fwhm, area = (
        np.asarray(column)[first][order]
        for column in (result.reflections.position, result.reflections.fwhm, result.reflections.intensity)
    )
    group = _groups(position, fwhm, settings.merge_fwhm)
    count = int(group[-1]) + 1 if group.size else 0
    if not count:
        return {name: unavailable("no line is calculated") for name in (LINES, SEEN_SHARE, FIGURE_OF_MERIT)}
    lead = np.flatnonzero(np.diff(group, prepend=-1))
    seen = np.bincount(group, weights=area) > settings.seen_sigmas * _noise(frame, position[lead], fwhm[lead])
    return {
        LINES: plain(float(count)),
        "match.lines_seen": plain(float(seen.sum())),
        SEEN_SHARE: plain(float(seen.mean()), n_used=count),
        FIGURE_OF_MERIT: _figure_of_merit(result, frame, position[lead], settings),
    }


def _groups(position: FloatArray, fwhm: FloatArray, merge: float) -> NDArray[np.int64]:
    """Return which group each of some lines, in order, belongs to: one ends a part of a width after its first line."""
    group, count, start = np.zeros(position.size, dtype=np.int64), -1, -np.inf
    for number, (at, width) in enumerate(zip(position.tolist(), fwhm.tolist(), strict=True)):
        if at - start > merge * width:
            count, start = count + 1, at
        group[number] = count
    return group


def _noise(frame: Frame, position: FloatArray, fwhm: FloatArray) -> FloatArray:
    """Return the esd by counting of the area of a lone line at each place: sqrt(variance x step x width / 0.5).

    The integral of the square of a line of unit area is 0.66 over its FWHM for a Gaussian, 0.32 for a Lorentzian.
    """
    variance, step = (np.interp(position, frame.x, column) for column in (frame.variance, frame.step))
    return np.asarray(np.sqrt(variance * step * fwhm / 0.5))


def _figure_of_merit(result: FitArrays, frame: Frame, lines: FloatArray, settings: LatticeSettings) -> Feature:
    """Return de Wolff's figure of merit of the observed lines of largest spacing."""
    if not (frame.angular or frame.timed):
        return unavailable("no law of Q on this axis")
    table = result.reflections
    order = np.argsort(table.position, kind="stable")
    every = table.position[order]
    width = np.interp(frame.x, every, table.fwhm[order])
    found = _maxima(frame, width, settings)
    found = _of_first_line(found, table, 0.5 * np.interp(found, frame.x, width))
    found = (found[::-1] if frame.timed else found)[: settings.lines]
    if found.size < settings.least_lines:
        return unavailable(f"only {found.size} lines stand out", n_used=int(found.size))
    away = np.abs(found - lines[_nearest(lines, found)])
    explained = away <= settings.reach_fwhm * np.interp(found, frame.x, width)
    text = f"{int(explained.sum())} of the first {found.size} observed lines explained"
    if np.sum(~explained) <= settings.strangers:  # lines of an impurity say nothing of the lattice
        found, away = found[explained], away[explained]
    last = found[-1]
    q, slope = _q(frame, found)
    reach = 0.5 * float(np.interp(last, frame.x, width))
    calculated = int(np.sum(lines >= last - reach) if frame.timed else np.sum(lines <= last + reach))
    # a maximum is not known better than to a part of a step
    spread = float(np.mean(slope * np.maximum(away, 0.1 * np.interp(found, frame.x, frame.step))))
    merit = float(q[-1]) / (2.0 * spread * calculated)
    return plain(merit, n_used=int(found.size), reason=f"{text}, {calculated} calculated as far")


def _of_first_line(found: FloatArray, table: ReflectionArrays, near: FloatArray) -> FloatArray:
    """Return the observed lines less those that are a further emission line of another one.

    Where the emission lines stand to one another is read off the calculated lines, by their spacings.
    """
    kept = np.ones(found.size, dtype=bool)
    first = table.line == 0
    d, at = table.d_angstrom[first], table.position[first]
    spacing = np.interp(found, at[np.argsort(at)], d[np.argsort(at)])
    for line in range(1, int(table.line.max(initial=0)) + 1):
        mine = np.flatnonzero(table.line == line)
        mine = mine[np.argsort(table.d_angstrom[mine], kind="stable")]
        if mine.size:
            image = np.interp(spacing, table.d_angstrom[mine], table.position[mine])
            away = np.abs(found[:, None] - image[None, :])
            np.fill_diagonal(away, np.inf)
            kept &= ~np.any(away <= near[:, None], axis=1)
    return found[kept]


def _nearest(sorted_values: FloatArray, at: FloatArray) -> NDArray[np.int64]:
    place = np.clip(np.searchsorted(sorted_values, at), 1, max(sorted_values.size - 1, 1))
    left, right = sorted_values[place - 1], sorted_values[np.minimum(place, sorted_values.size - 1)]
    return np.where(at - left <= right - at, place - 1, np.minimum(place, sorted_values.size - 1))


def _q(frame: Frame, position: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Q = 1/d^2 in an arbitrary unit and |dQ/dposition|, shape (n,) each."""
    if frame.timed:
        q = position**-2.0
        return q, 2.0 * q / position
    half = np.radians(position / 2.0)
    return np.sin(half) ** 2, np.radians(np.sin(half) * np.cos(half))


def _maxima(frame: Frame, width: FloatArray, settings: LatticeSettings) -> FloatArray:
    """Return where the data have lines, in order of position: maxima of the smoothed net intensity."""
    # widths of a wrong model may be anything
    points = min(max(_SMOOTH * float(np.median(width / frame.step)), 0.5), _MOST_POINTS)
    net = gaussian_filter1d(frame.net_obs, points)
    # of white noise; the variance is nearly the same over the few points
    noise = np.sqrt(frame.variance / (2.0 * np.sqrt(np.pi) * points)) if points > 0.6 else np.sqrt(frame.variance)
    rise = net / noise
    at, _ = find_peaks(rise, height=settings.peak_sigmas, prominence=settings.peak_sigmas)
    strong = net[at] > settings.least_height * net.max(initial=0.0)
    inside = at[(at > 0) & (at < net.size - 1) & strong]
    before, here, after = net[inside - 1], net[inside], net[inside + 1]
    bend = before - 2.0 * here + after
    shift = np.where(bend < 0.0, 0.5 * (before - after) / np.where(bend < 0.0, bend, -1.0), 0.0)
    return np.asarray(frame.x[inside] + np.clip(shift, -0.5, 0.5) * frame.step[inside])
