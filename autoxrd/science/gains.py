"""What would be gained by releasing more parameters? The engine's Gauss-Newton predictions as features."""

from __future__ import annotations

from autoxrd.domain.state import Feature
from autoxrd.science.features import unavailable
from autoxrd.science.inputs import FitArrays
from autoxrd.science.statistics import FitStatistics

__all__ = ["gain_features"]


def gain_features(result: FitArrays, statistics: FitStatistics) -> dict[str, Feature]:
    """Return ``release_gain.SELECTOR``: relative drop of chi2, 0 to 1.

    Significance is the drop over reduced chi2 and number of parameters, i.e. an F value per parameter.
    """
    features = {}
    for selector, drop in sorted(result.gains.items()):
        count = int(result.gain_counts.get(selector, 1))
        key = f"release_gain.{selector}"
        if not (drop == drop and abs(drop) != float("inf")) or statistics.chi2 <= 0:
            features[key] = unavailable("the engine gave no finite gain", n_used=count)
            continue
        held = min(max(drop, 0.0), statistics.chi2)
        features[key] = Feature(
            value=held / statistics.chi2,
            significance=held / (statistics.chi2_reduced * max(count, 1)) if statistics.chi2_reduced > 0 else 0.0,
            n_used=count,
        )
    return features
