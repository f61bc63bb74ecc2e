"""Is a third column a standard uncertainty, or something else that stands there?

In the files that people have, it is often a background curve or a calculated profile. Taken as
uncertainties those weight the pattern by nonsense and no R factor shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.io.settings import ReadSettings

__all__ = ["EsdVerdict", "judge_third_column"]


@dataclass(frozen=True, slots=True)
class EsdVerdict:
    """Outcome.

    Args:
        is_esd: use it as standard uncertainties.
        code: code of the notice where it is not used.
        reason: one sentence.
        invalid: index of the first impossible value where the column claims to be uncertainties.
        n_invalid: how many are impossible.
    """

    is_esd: bool
    code: str = ""
    reason: str = ""
    invalid: int | None = None
    n_invalid: int = 0


def judge_third_column(
    y: FloatArray, third: FloatArray, *, named_esd: bool | None, settings: ReadSettings
) -> EsdVerdict:
    """Judge a column against the intensities beside it.

    Args:
        y: intensity, shape (n,).
        third: the column, shape (n,).
        named_esd: True or False where the header names it, None where it does not.
        settings: thresholds.
    """
    if named_esd is False:
        return EsdVerdict(
            False,
            "third_column_unused",
            "The third column is not an uncertainty by its name; counting statistics are used.",
        )
    bad = ~np.isfinite(third) | (third <= 0.0)
    if named_esd:
        return _named(y, third, bad)
    if np.any(bad):
        if _is_root(y, third, bad):
            return EsdVerdict(False, "third_column_is_root", _ROOT)
        reason = (
            f"The third column has {int(bad.sum())} values that are not > 0, so it is not an uncertainty; "
            "counting statistics are used."
        )
        return EsdVerdict(False, "third_column_unused", reason)
    return _plausible(y, third, settings)


_ROOT = (
    "The third column is sqrt(intensity) with zeros where nothing was counted; sqrt(max(y, 1)) is used for all points."
)


def _named(y: FloatArray, third: FloatArray, bad: np.ndarray) -> EsdVerdict:
    """Judge a column whose name says that it is the uncertainty."""
    if not np.any(bad):
        return EsdVerdict(True)
    if _is_root(y, third, bad):
        return EsdVerdict(False, "third_column_is_root", _ROOT)
    n_bad = int(bad.sum())
    reason = (
        f"{n_bad} of {y.size} standard uncertainties are not > 0; correct them, "
        "or remove the third column to use counting statistics, sqrt(y)."
    )
    return EsdVerdict(False, "pattern_esd_invalid", reason, invalid=int(np.argmax(bad)), n_invalid=n_bad)


def _is_root(y: FloatArray, third: FloatArray, bad: np.ndarray) -> bool:
    """Whether zeros stand only where y is zero and the rest is sqrt(y) as printed."""
    good = ~bad
    if not np.any(good) or np.any(third[bad] != 0.0) or np.any(y[bad] != 0.0) or np.any(y[good] <= 0.0):
        return False
    return bool(np.all(np.abs(third[good] - np.sqrt(y[good])) <= 0.02 * np.sqrt(y[good]) + 0.01))


def _plausible(y: FloatArray, third: FloatArray, settings: ReadSettings) -> EsdVerdict:
    """Judge an unnamed column by size and by how it follows the peaks."""
    positive = y > 0.0
    if not np.any(positive) or not np.all(np.isfinite(y)):
        return EsdVerdict(
            False,
            "third_column_unused",
            "The third column has no name and cannot be judged; counting statistics are used.",
        )
    intensity, column = y[positive], third[positive]
    root_ratio = float(np.median(column / np.sqrt(np.maximum(intensity, 1.0))))
    relative = float(np.median(column / intensity))
    low_counts = float(np.median(intensity)) < 4.0
    if relative > settings.esd_ratio_max and not (low_counts and root_ratio < settings.esd_flat_ratio):
        reason = (
            f"The third column is not an uncertainty: its median is {relative:.2g} of the intensity and "
            f"{root_ratio:.2g} times sqrt(intensity), like a background or a "
            "calculated curve; counting statistics are used."
        )
        return EsdVerdict(False, "third_column_not_esd", reason)
    slope, dynamic = _log_slope(intensity, column)
    local = _local_slope(intensity, column)
    if dynamic < settings.esd_dynamic_range:
        if 1.0 / settings.esd_flat_ratio <= root_ratio <= settings.esd_flat_ratio:
            return EsdVerdict(True)
    elif any(settings.esd_slope_min <= value <= settings.esd_slope_max for value in (slope, local)):
        return EsdVerdict(True)
    reason = (
        f"The third column has no name and does not follow the intensity as an uncertainty does "
        f"(log-log slope {slope:.2f} overall, {local:.2f} from point to point); counting statistics are used."
    )
    return EsdVerdict(False, "third_column_not_esd", reason)


def _log_slope(intensity: FloatArray, column: FloatArray) -> tuple[float, float]:
    """Slope of log(column) on log(intensity) between the outer deciles, and the ratio of their intensities."""
    order = np.argsort(intensity, kind="stable")
    tenth = max(1, intensity.size // 10)
    low, high = order[:tenth], order[-tenth:]
    y_low, y_high = float(np.median(intensity[low])), float(np.median(intensity[high]))
    c_low, c_high = float(np.median(column[low])), float(np.median(column[high]))
    dynamic = y_high / y_low
    if dynamic <= 1.0:
        return 0.0, dynamic
    return float(np.log(c_high / c_low) / np.log(dynamic)), dynamic


def _local_slope(intensity: FloatArray, column: FloatArray) -> float:
    """Slope of log(column) on log(intensity) from point to point.

    It stays 0.5 where the counting time varies along the scan, which hides the overall slope.
    """
    step = np.diff(np.log(intensity))
    norm = float(np.dot(step, step))
    return float(np.dot(step, np.diff(np.log(column)))) / norm if norm > 0.0 else 0.0
