"""Is there calculated intensity where nothing is observed? The mark of a wrong phase."""

from __future__ import annotations

import numpy as np

from autoxrd.domain.state import Feature
from autoxrd.science.features import measured, unavailable
from autoxrd.science.frame import Frame
from autoxrd.science.reflections import PeakMeasures
from autoxrd.science.settings import UnexplainedSettings

__all__ = ["missing_peaks"]


def missing_peaks(
    frame: Frame, measures: PeakMeasures, settings: UnexplainedSettings, *, absent: tuple[int, ...]
) -> Feature:
    """Return the share of the calculated intensity that stands where nothing is observed.

    A peak is missing when, relative to its phase's typical intensity ratio, less than ``missing_ratio`` is there even
    within two esd. Of a phase that is not there at all no peak can be judged by itself: all of them are missing.

    Args:
        frame: aligned frame.
        measures: its peaks.
        settings: thresholds.
        absent: indices of the phases that are not there.
    """
    gone = np.isin(measures.phase, absent) & (measures.phase_share > 0.5)
    pure = measures.pure & ~gone
    lost = float(frame.peaks.area[gone].sum())
    total = float(frame.peaks.area[pure].sum()) + lost
    if total <= 0:
        return unavailable("no peak of its own", n_used=0)
    typical = np.ones(measures.ratio.size)
    for index in np.unique(measures.phase[pure]):
        own = pure & (measures.phase == index)
        level = np.sum(frame.peaks.area[own] * measures.ratio[own]) / np.sum(frame.peaks.area[own])
        typical[measures.phase == index] = max(float(level), settings.missing_scale_floor)
    bound = (measures.ratio + 2.0 * measures.ratio_esd) / typical
    missing = pure & (bound < settings.missing_ratio)
    value = (float(frame.peaks.area[missing].sum()) + lost) / total
    count = int(missing.sum()) + int(gone.sum())
    return measured(
        value,
        0.0,
        n_used=int(pure.sum()) + int(gone.sum()),
        significance=float(count),
        reason=f"{count} peaks absent",
    )
