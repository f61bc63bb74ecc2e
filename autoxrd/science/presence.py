"""Is each phase of a mixture there? Its scale against its esd, and its own lines against what they should be."""

from __future__ import annotations

import numpy as np

from autoxrd.domain.state import Feature
from autoxrd.science.features import plain, unavailable
from autoxrd.science.frame import Frame, phase_curve
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
    others are free, its presence is what a linear fit of all scales gives: a release that was refused would else leave
    its phase in the model at whatever it started from.
    """
    if len(result.phases) < 2:
        return {}
    features: dict[str, Feature] = {}
    unsupported = 0
    scales = {p.name: p for p in result.parameters if p.name.endswith(".scale")}
    some_free = any(p.released for p in scales.values())
    for index, phase in enumerate(result.phases):
        scale = scales.get(f"phase.{phase.name}.scale")
        known = scale is not None and scale.released and scale.esd is not None and scale.esd > 0
        presence = scale.value / scale.esd if known and scale is not None and scale.esd else None
        if scale is not None and not scale.released and some_free:
            presence = _linear_presence(frame, index, len(result.phases))
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


def _linear_presence(frame: Frame, index: int, phases: int) -> float | None:
    """Return the best scale of a phase over its esd, all scales free and all else as it is; None where it has no lines.

    The esd is that of the misfit at hand.
    """
    curves = np.stack([phase_curve(frame, number) for number in range(phases)], axis=1)
    root = np.sqrt(frame.weight)
    curves, observed = curves * root[:, None], frame.net_obs * root
    length = np.linalg.norm(curves, axis=0)
    if not length[index] > 0.0:
        return None
    scaled = curves / np.where(length > 0.0, length, 1.0)
    inverse = np.linalg.pinv(scaled.T @ scaled)
    best = inverse @ (scaled.T @ observed)
    misfit = np.sum(np.square(observed - scaled @ best)) / max(observed.size - phases, 1)
    return float(best[index] / np.sqrt(inverse[index, index] * max(misfit, 1.0)))


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
