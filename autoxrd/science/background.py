"""Is the background right between the peaks?"""

from __future__ import annotations

import numpy as np

from autoxrd.domain.state import Feature
from autoxrd.science.arrays import ordinary_median, piece_medians, quantiles, sum_by
from autoxrd.science.features import measured, unavailable
from autoxrd.science.frame import Frame
from autoxrd.science.noise import chi2_to_z
from autoxrd.science.settings import BackgroundSettings

__all__ = ["background_slow"]


def background_slow(frame: Frame, settings: BackgroundSettings) -> Feature:
    """Return ``background.slow``: the low-frequency share of the weighted squared residual away from peaks.

    The residual of channels where the calculated Bragg intensity is below the noise is averaged over pieces of many
    peak widths, single high channels (a peak nobody calculated) clipped off. The share is what the means explain beyond
    what noise would; 0 for noise, towards 1 for a wrong curve.

    A curve that was fitted with weights from the observed counts lies up to a count a channel too low, whatever its
    shape (Mighell 1999, doi:10.1086/307253): a mean residual between nothing and one count is no error of it.
    """
    sigma = np.sqrt(frame.variance)
    relative = frame.net_calc / sigma
    limit = max(settings.below_sigma, min(quantiles(relative, (settings.lowest_share,))[0], settings.at_most_sigma))
    away = relative < limit
    step = ordinary_median(frame.step)
    width = ordinary_median(frame.lines.fwhm) if frame.lines.fwhm.size else 6.0 * step
    size = max(int(settings.piece_fwhm * width / step), settings.min_points)
    at = np.flatnonzero(away)
    if at.size < settings.min_pieces * settings.min_points:
        return unavailable(f"{at.size} channels lie away from peaks", n_used=int(at.size))
    count = max(at.size // size, settings.min_pieces)
    piece = np.minimum(np.arange(at.size) // (at.size // count), count - 1)
    z = frame.residual[at] / sigma[at]
    level = piece_medians(z, count)
    keep = np.abs(z - level[piece]) < settings.clip_sigma
    number = np.maximum(sum_by(piece[keep], np.ones(int(keep.sum())), count), 1.0)
    mean = sum_by(piece[keep], z[keep], count) / number
    one_count = sum_by(piece[keep], frame.count_factor / sigma[at][keep], count) / number
    mean -= np.clip(mean, 0.0, one_count)
    chi2 = float(np.sum(number * np.square(mean)))
    total = float(np.sum(np.square(z[keep])))
    value = max(chi2 - count, 0.0) / total if total > 0 else 0.0
    esd = float(np.sqrt(2.0 * count)) / total if total > 0 else 0.0
    return measured(value, esd, n_used=int(keep.sum()), significance=max(chi2_to_z(chi2, count), 0.0))
