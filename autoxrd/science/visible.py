"""How much of the observed intensity is each phase's, and of which is nothing to be seen?

All strong lines of a phase must show if it is there; an absent one finds intensity only where its lines happen to lie
under others'. So the amount is the weighted median over its strongest lines, each fitted by itself beside everything
else calculated there: the unit is what the model calculates, so that a scale of next to nothing is no obstacle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Feature
from autoxrd.science.arrays import ordinary_median
from autoxrd.science.features import unavailable
from autoxrd.science.frame import Frame, phase_curve
from autoxrd.science.reflections import PeakMeasures, local_fits
from autoxrd.science.settings import ShareSettings
from autoxrd.science.shapes import windows_between

__all__ = ["absent_phases", "share_features"]

IntArray = NDArray[np.int64]

_PREFIX = "intensity.share."
_MEDIAN_ESD = 1.2533
"""Esd of a median over that of a mean, of normal values."""
_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, slots=True)
class _Amount:
    """Observed over calculated intensity of a phase, by so many lines."""

    value: float
    esd: float
    lines: int


def share_features(
    frame: Frame, measures: PeakMeasures, names: Sequence[str], unexplained_area: float, settings: ShareSettings
) -> dict[str, Feature]:
    """Return ``intensity.share.PHASE``: the phase's share of the observed Bragg intensity, 0 to 1.

    Args:
        frame: aligned frame.
        measures: its peaks.
        names: phase names in order.
        unexplained_area: area of the peaks that no phase explains; they are part of the whole.
        settings: which lines are looked at.
    """
    calculated = [float(frame.reflections.area[frame.reflections.phase == i].sum()) for i in range(len(names))]
    amounts = [_amount(frame, measures, i, settings) if calculated[i] > 0 else None for i in range(len(names))]
    parts = [
        area * (1.0 if amount is None else max(amount.value, 0.0))
        for area, amount in zip(calculated, amounts, strict=True)
    ]
    total = sum(parts) + unexplained_area
    return {
        f"{_PREFIX}{name}": _feature(amount, area / total if total > 0 else 0.0)
        for name, amount, area in zip(names, amounts, calculated, strict=True)
    }


def absent_phases(features: Mapping[str, Feature], settings: ShareSettings) -> frozenset[str]:
    """Return the phases of which nothing is seen although it would be.

    A share must be compatible with nothing, and with nothing but little: less than the largest that may hide, or
    less than what the pattern holds of unexplained peaks, so that another phase is the better bet.
    """
    unknown = features.get("unexplained_peak_ratio")
    hidden = max(settings.largest_hidden, (unknown.value or 0.0) if unknown is not None else 0.0)
    found = set()
    for key, feature in features.items():
        if key.startswith(_PREFIX) and feature.value is not None and feature.esd is not None:
            unseen = feature.value < settings.seen_sigmas * feature.esd
            if unseen and feature.value + 2.0 * feature.esd < hidden:
                found.add(key.removeprefix(_PREFIX))
    return frozenset(found)


def _feature(amount: _Amount | None, share: float) -> Feature:
    if share <= 0:
        return unavailable("nothing is calculated for this phase: give it a scale above zero")
    if amount is None:
        return unavailable("no line of this phase can be told from the others")
    reason = f"median of its {amount.lines} strongest lines"
    # no significance: that is of errors, and it is none that a phase is there
    return Feature(value=amount.value * share, esd=amount.esd * share, n_used=amount.lines, reason=reason)


def _amount(frame: Frame, measures: PeakMeasures, index: int, settings: ShareSettings) -> _Amount | None:
    own = np.flatnonzero(measures.pure & (measures.phase == index) & (measures.phase_share > settings.own_share))
    if own.size >= settings.min_lines:
        strongest = own[np.argsort(-frame.peaks.area[own], kind="stable")[: settings.lines]]
        return _median(measures.ratio[strongest], measures.ratio_esd[strongest])
    return _from_lines(frame, index, settings)


def _from_lines(frame: Frame, index: int, settings: ShareSettings) -> _Amount | None:
    """Fit the phase's strongest reflections, which are too low or too hidden to be measured as peaks."""
    table, lines = frame.reflections, frame.lines
    own = np.flatnonzero((table.phase == index) & (table.area > 0))
    strongest = own[np.argsort(-(table.area / table.fwhm)[own], kind="stable")[: settings.lines]]
    rank = np.full(table.phase.size, -1)
    rank[strongest] = np.arange(strongest.size)
    at = np.flatnonzero(rank[lines.reflection] >= 0)
    low, high = np.full(strongest.size, np.inf), np.full(strongest.size, -np.inf)
    half = frame.settings.window_fwhm * lines.fwhm[at]
    np.minimum.at(low, rank[lines.reflection[at]], lines.position[at] - half)
    np.maximum.at(high, rank[lines.reflection[at]], lines.position[at] + half)
    windows = windows_between(frame.x, low, high)
    enough = windows.length >= 3 + frame.settings.min_free_points
    windows = windows_between(frame.x, low[enough], high[enough])
    if windows.size == 0:
        return None
    curve, point = phase_curve(frame, index), windows.point
    columns = np.stack((curve[point], (frame.totals.value - curve)[point], np.ones(point.size)))
    ridge = frame.settings.condition_ridge
    fit = local_fits(columns, frame.residual[point], frame.weight[point], windows.start, ridge=ridge)
    esd = np.sqrt(np.maximum(fit.variance[:, 0], 0.0) * np.maximum(fit.chi2_reduced, 1.0))
    known = np.isfinite(esd) & (esd > 0)
    return _median(1.0 + fit.coefficient[known, 0], esd[known]) if known.any() else None


def _median(values: FloatArray, esds: FloatArray) -> _Amount:
    """Return the weighted median; its esd from the esds or from the scatter, whichever is larger."""
    order = np.argsort(values)
    weight = np.cumsum(1.0 / np.square(esds[order]))
    middle = float(values[order][np.searchsorted(weight, 0.5 * weight[-1])])
    formal = 1.0 / float(np.sqrt(weight[-1]))
    left = np.abs(values - middle)
    scatter = _MAD_TO_SIGMA * ordinary_median(left) / float(np.sqrt(values.size))
    return _Amount(middle, _MEDIAN_ESD * max(formal, scatter), int(values.size))
