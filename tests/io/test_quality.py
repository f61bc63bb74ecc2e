"""What the quick judgement of a pattern says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from autoxrd.domain.pattern import AxisKind, Pattern
from autoxrd.io import assess_pattern
from tests.io.samples import peaks


def _pattern(scale: float = 5.0, n: int = 1000, step: float = 0.05) -> Pattern:
    x, _ = peaks(n=n, step=step)
    y = np.full(n, 100.0 * scale)
    for centre in (13.0, 18.0, 24.0, 40.0):
        y += 2000.0 * scale * np.exp(-4 * np.log(2) * ((x - centre) / 0.4) ** 2)
    y = np.random.default_rng(3).poisson(y).astype(float)
    return Pattern(x=x, y=y, sigma=np.sqrt(np.maximum(y, 1.0)))


def _codes(pattern: Pattern) -> set[str]:
    return {notice.code for notice in assess_pattern(pattern)}


def test_a_good_pattern_gives_nothing() -> None:
    assert _codes(_pattern()) == set()


def test_each_shortcoming_is_named() -> None:
    good = _pattern()
    assert "low_counts" in _codes(_pattern(scale=0.05))
    assert "zero_counts" in _codes(_pattern(scale=0.01))
    assert "step_coarse" in _codes(_pattern(n=100, step=0.4))
    assert "step_fine" in _codes(_pattern(n=8000, step=0.006))
    assert "range_short" in _codes(_pattern(n=300))
    assert "sigma_too_small" in _codes(replace(good, sigma=good.sigma / 5.0))
    assert "sigma_too_large" in _codes(replace(good, sigma=good.sigma * 5.0))
    keep = (good.x < 30.0) | (good.x > 32.0)
    assert "axis_gap" in _codes(replace(good, x=good.x[keep], y=good.y[keep], sigma=good.sigma[keep]))
    high = replace(good, y=good.y + 1e6, sigma=np.sqrt(good.y + 1e6))
    assert "weak_peaks" in _codes(high)


def test_the_scale_of_the_intensities_does_not_matter() -> None:
    good = _pattern()
    assert _codes(replace(good, y=good.y * 1e-3, sigma=good.sigma * 1e-3)) == set()


def test_time_of_flight_is_judged_by_counts_only() -> None:
    good = _pattern()
    tof = replace(good, x=good.x * 1000.0, axis=AxisKind.TOF)
    assert _codes(tof) == set()
