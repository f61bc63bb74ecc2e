"""Are the lines as wide and as symmetric as calculated, at low and at high angle?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Feature
from autoxrd.science.arrays import bragg_angle
from autoxrd.science.features import measured, unavailable
from autoxrd.science.frame import Frame
from autoxrd.science.reflections import PeakMeasures
from autoxrd.science.trend import robust_fit, robust_line

__all__ = ["width_features"]

_MIN_PEAKS = 2
_MIN_LOW = 3


def width_features(frame: Frame, measures: PeakMeasures, names: Sequence[str]) -> dict[str, Feature]:
    """Return ``width.low/high/trend``, ``width.phase.PHASE`` and ``asymmetry.low_angle``.

    Widths are relative errors of the FWHM, observed / calculated - 1; the skewness is that of the observed profile
    beyond the calculated one, negative for a tail towards low angle.
    """
    third = (frame.x[-1] - frame.x[0]) / 3.0
    low = measures.shaped & (measures.position < frame.x[0] + third)
    high = measures.shaped & (measures.position > frame.x[-1] - third)
    features = {
        "width.low": _mean(measures.width, measures.width_esd, low),
        "width.high": _mean(measures.width, measures.width_esd, high),
        "width.trend": _trend(frame, measures),
        "asymmetry.low_angle": _asymmetry(measures, low) if frame.angular else unavailable("the axis is not 2theta"),
    }
    for index, name in enumerate(names):
        own = measures.shaped & (measures.phase == index) & (measures.phase_share > 0.9)
        features[f"width.phase.{name}"] = _mean(measures.width, measures.width_esd, own)
    return features


def _mean(values: FloatArray, esds: FloatArray, used: NDArray[np.bool_]) -> Feature:
    """Return the robust weighted mean."""
    n = int(used.sum())
    if n < _MIN_PEAKS:
        return unavailable(f"{n} usable peaks there", n_used=n)
    fit = robust_fit(np.ones((n, 1)), values[used], esds[used])
    return measured(float(fit.coefficient[0]), float(np.sqrt(fit.covariance[0, 0])), n_used=n)


def _trend(frame: Frame, measures: PeakMeasures) -> Feature:
    if not frame.angular:
        return unavailable("the axis is not 2theta")
    used = measures.shaped
    tangent = np.tan(bragg_angle(measures.position[used]))
    line = robust_line(tangent, measures.width[used], measures.width_esd[used])
    if line is None:
        return unavailable("fewer than three usable peaks", n_used=int(used.sum()))
    return measured(line.slope, line.slope_esd, n_used=line.n_used, unit="per tan(theta)")


def _asymmetry(measures: PeakMeasures, low: NDArray[np.bool_]) -> Feature:
    reason = ""
    if int(low.sum()) < _MIN_PEAKS and int(measures.shaped.sum()) >= _MIN_LOW:
        first = np.flatnonzero(measures.shaped)[np.argsort(measures.position[measures.shaped])[:_MIN_LOW]]
        low = np.zeros_like(low)
        low[first] = True
        reason = "the three lowest peaks; the lower third of the range has too few"
    return _mean(measures.skew, measures.skew_esd, low).model_copy(update={"reason": reason} if reason else {})
