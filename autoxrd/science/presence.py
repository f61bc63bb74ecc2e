"""Is each phase of a mixture there? Its scale against its esd, and its own lines against what they should be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from autoxrd.domain.state import Feature, ParameterValue
from autoxrd.science.features import plain, unavailable
from autoxrd.science.frame import Frame
from autoxrd.science.inputs import FitArrays
from autoxrd.science.reflections import PeakMeasures
from autoxrd.science.settings import UnexplainedSettings

__all__ = ["UNSUPPORTED", "presence_features"]

UNSUPPORTED = "phases_unsupported"
"""Number of phases whose presence the data do not show."""

_FEWEST_LINES = 2


def presence_features(
    result: FitArrays, frame: Frame, measures: PeakMeasures, settings: UnexplainedSettings
) -> dict[str, Feature]:
    """Return ``presence.P`` (scale over its esd), ``absent_lines.P`` and ``phases_unsupported`` of a mixture.

    ``absent_lines.P`` is the share of the intensity of the lines of P alone, where such a line would stand out of the
    noise, that is not there: less than ``missing_ratio`` of it even within two esd. A phase is not supported when its
    scale is below ``presence_esd`` esd, or more than half of its own lines are absent. Where a scale is held while
    others are free, its presence is what a linear fit of all scales gives, with esds as much larger as those of the
    free scales are in the whole fit: a release that was refused would else leave its phase in the model at whatever it
    started from.
    """
    if len(result.phases) < 2:
        return {}
    features: dict[str, Feature] = {}
    unsupported = 0
    scales = {p.name: p for p in result.parameters if p.name.endswith(".scale")}
    linear = _linear_presences(result, frame, scales)
    for index, phase in enumerate(result.phases):
        scale = scales.get(f"phase.{phase.name}.scale")
        known = scale is not None and scale.released and scale.esd is not None and scale.esd > 0
        presence = scale.value / scale.esd if known and scale is not None and scale.esd else None
        if scale is not None and not scale.released:
            presence = linear.get(phase.name)
        absent = _absent_lines(frame, measures, index, settings)
        features[f"presence.{phase.name}"] = (
            plain(presence) if presence is not None else unavailable("its scale has no uncertainty")
        )
        features[f"absent_lines.{phase.name}"] = absent
        if (presence is not None and presence < settings.presence_esd) or (
            absent.value is not None and absent.value > settings.absent_share
        ):
            unsupported += 1
    features[UNSUPPORTED] = plain(float(unsupported), n_used=len(result.phases))
    return features


def _linear_presences(result: FitArrays, frame: Frame, scales: Mapping[str, ParameterValue]) -> dict[str, float]:
    """Return the best scale of each phase that has lines over its esd, all scales free and all else as it is.

    The patterns are the engine's: at low angles a symmetric line would leave a tail that any phase could claim. The esd
    is that of the misfit at hand, times what the esds of the free scales are more in the whole fit, where other
    parameters give way and residuals are serially correlated; of several factors the least. Empty where no scale is
    free.
    """
    names = [phase.name for phase in result.phases]
    free = {name: scale for name in names if (scale := scales.get(f"phase.{name}.scale")) and scale.released}
    if not free or len(free) == len(names):
        return {}
    root = np.sqrt(frame.weight)
    curves, observed = result.phase_patterns.T * root[:, None], frame.net_obs * root
    length = np.linalg.norm(curves, axis=0)
    scaled = curves / np.where(length > 0.0, length, 1.0)
    inverse = np.linalg.pinv(scaled.T @ scaled)
    best = inverse @ (scaled.T @ observed)
    misfit = np.sum(np.square(observed - scaled @ best)) / max(observed.size - len(names), 1)
    esds = np.sqrt(np.diag(inverse) * max(misfit, 1.0))
    found = {name: float(best[i] / esds[i]) for i, name in enumerate(names) if length[i] > 0.0}
    factors = [found[n] * s.esd / s.value for n, s in free.items() if n in found and s.esd and s.value > 0.0]
    factor = max(min(factors, default=1.0), 1.0)
    return {name: value / factor for name, value in found.items()}


def _absent_lines(frame: Frame, measures: PeakMeasures, index: int, settings: UnexplainedSettings) -> Feature:
    """Return the share of a phase's own expected intensity that is not observed."""
    own = measures.pure & (measures.phase == index) & (measures.phase_share > settings.own_line_share)
    own &= measures.ratio_esd * settings.expected_z < 1.0
    count = int(own.sum())
    if count < _FEWEST_LINES:
        return unavailable("too few lines of its own would stand out of the noise", n_used=count)
    area = frame.peaks.area
    gone = own & (measures.ratio + 2.0 * measures.ratio_esd < settings.missing_ratio)
    return plain(float(np.sum(area[gone]) / np.sum(area[own])), n_used=count)
