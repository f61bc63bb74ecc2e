"""Is there intensity that no calculated reflection explains, and how much?

A residual bump counts as an unexplained peak when it is significant against counting noise at the local peak width,
lies further than max(0.5 FWHM, 2 steps) from every reflection of every phase, is not half of a +/- pair around one,
keeps its area in a local fit that also frees scale, shift, width, skew and tails of everything calculated nearby as far
as the other lines do not know them, bends more than a tail or a hump, and stands above what the neighbours of its line
show at the same distance (DESIGN section 7). What has been found is taken off and the rest searched again.

Where such peaks are found a phase is missing, and it has lines that are too weak for a peak of their own or lie under
calculated ones. Their area is estimated (``faint``, ``hidden``) and counts in the ratio, not in the list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Feature, UnexplainedPeak
from autoxrd.science.features import measured, unavailable
from autoxrd.science.frame import Frame
from autoxrd.science.inputs import MeasureContext
from autoxrd.science.unexplained.field import Field, field_of
from autoxrd.science.unexplained.hidden import area_beside
from autoxrd.science.unexplained.judge import Found
from autoxrd.science.unexplained.look import Search
from autoxrd.science.unexplained.matched import matched_filter
from autoxrd.science.unexplained.search import find_peaks

__all__ = ["Unexplained", "find_unexplained"]

_MIN_POINTS = 16
_MOST_BEYOND = 1.3


@dataclass(frozen=True, slots=True)
class Unexplained:
    """The ratio Q with the peaks behind it, strongest first."""

    feature: Feature
    peaks: tuple[UnexplainedPeak, ...]


def find_unexplained(frame: Frame, context: MeasureContext) -> Unexplained:
    """Return Q and the unexplained peaks of an aligned frame."""
    settings = context.settings.unexplained
    if frame.x.size < _MIN_POINTS:
        return Unexplained(unavailable("too few points"), ())
    field = field_of(frame, context)
    search = Search(frame, field, matched_filter(field, settings), settings)
    found = find_peaks(search)
    if found.area.size == 0:
        return Unexplained(measured(0.0, 0.0, n_used=0, significance=0.0), ())
    if found.breadth != 0.0:
        field = replace(field, widths=field.widths * np.exp(found.breadth))
        search = Search(frame, field, matched_filter(field, settings), settings)
    return _report(search, found)


def _report(search: Search, found: Found) -> Unexplained:
    frame, field = search.frame, search.field
    beside = area_beside(search, found)
    seen, unseen = float(found.area.sum()), beside.weak + beside.hidden
    # what is not seen lies anywhere: as far as it lies in the reach of calculated lines it is not theirs
    among = beside.hidden + float(field.near.mean()) * beside.weak
    total = _observed_area(field, found.model + beside.slow, among) + seen + unseen
    share = 1.0 / total if total > 0 else 0.0
    esd = float(np.sqrt(np.sum(np.square(found.esd))))
    position = found.bumps.position
    spacing = _spacing(frame, position)
    peaks = tuple(
        UnexplainedPeak(
            two_theta_deg=float(position[i]),
            d_angstrom=float(spacing[i]),
            area=float(found.area[i]),
            area_share=float(found.area[i] * share),
            significance=float(found.area[i] / found.esd[i]),
        )
        for i in np.argsort(-found.area, kind="stable")
    )
    feature = measured(
        (seen + unseen) * share,
        float(np.hypot(esd, beside.esd)) * share,
        n_used=len(peaks),
        significance=seen / esd,
        reason=f"{seen * share:.4f} in peaks, {beside.weak * share:.4f} estimated in weak and "
        f"{beside.hidden * share:.4f} in hidden ones; {float(field.covered.mean()):.0%} of the range lies under "
        "calculated reflections",
    )
    return Unexplained(feature, peaks)


def _observed_area(field: Field, other: FloatArray, among: float) -> float:
    """Return the observed net area of the calculated lines, never below what noise alone gives.

    The area in their reach, and as much more as the calculated lines have beyond it.

    Args:
        field: the field.
        other: slow part and unknown peaks, shape (n,).
        among: area of unseen lines in the reach of the calculated ones.
    """
    near, step = field.near, field.step[field.near]
    area = float(np.dot(field.net_obs[near] - other[near], step)) - among
    calculated, within = float(np.dot(field.net_calc, field.step)), float(np.dot(field.net_calc[near], step))
    beyond = min(max(calculated / within, 1.0), _MOST_BEYOND) if within > 0 else 1.0
    noise = float(np.sqrt(np.dot(field.variance[near], np.square(step))))
    return max(area * beyond, noise)


def _spacing(frame: Frame, position: FloatArray) -> FloatArray:
    if frame.angular:
        return np.asarray(frame.wavelength_angstrom / (2.0 * np.sin(np.deg2rad(position) / 2.0)))
    order = np.argsort(frame.reflections.position)
    places, spacings = frame.reflections.position[order], frame.reflections.d_angstrom[order]
    if not order.size:
        return np.full_like(position, np.nan)
    if frame.timed:  # nearly proportional, so that the factor may be carried beyond the last line
        return np.asarray(position * np.interp(position, places, spacings / places))
    return np.asarray(np.interp(position, places, spacings))
