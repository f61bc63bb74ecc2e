"""What a wrong line shape leaves beside strong lines is no unexplained peak; an impurity's lines still are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoxrd.domain.state import UnexplainedPeak
from autoxrd.science.observe import measure
from tests.science.simulate import (
    CORUNDUM,
    FLUORITE,
    Model,
    Phase,
    axis,
    base,
    context,
    phase_patterns,
    reflections,
    simulate,
)

LAYERED = Phase("layered", (2.83, 2.83, 10.92, 90, 90, 120), "P 63/m m c", march=0.35, seed=2)
"""Platelets: its 002 line at 16.2 degrees is an order of magnitude stronger than all others."""


def _peaks(truth: Model, fit: Model, seed: int = 1) -> tuple[float, tuple[UnexplainedPeak, ...]]:
    seen = measure(simulate(truth, fit, seed), context(fit))
    value = seen.features["unexplained_peak_ratio"].value
    assert value is not None
    return value, seen.unexplained_peaks


@pytest.mark.parametrize("axial", [0.06, 0.08, 0.1])
@pytest.mark.parametrize("counts", [5e3, 5e4])
def test_tails_of_axial_divergence_that_many_lines_show(axial: float, counts: float) -> None:
    fit = base(CORUNDUM, counts=counts, x=0.06, y=0.06)
    ratio, _ = _peaks(replace(fit, axial=axial), fit)
    assert ratio < 0.005


@pytest.mark.parametrize("axial", [0.05, 0.07, 0.09])
@pytest.mark.parametrize("counts", [2e3, 2e4])
def test_tails_of_one_line_that_is_far_stronger_than_all_others(axial: float, counts: float) -> None:
    fit = base(LAYERED, lower=10.0, upper=90.0, counts=counts)
    assert phase_patterns(fit, reflections(fit)).max() > 3e4
    for seed in range(3):
        ratio, peaks = _peaks(replace(fit, axial=axial), fit, seed)
        assert ratio < 0.005, peaks


@pytest.mark.parametrize("foot", [0.02, 0.05])
def test_a_foot_that_all_lines_stand_on(foot: float) -> None:
    """Scattered light of a monochromator or a second size fraction: a share of every line is five times as broad."""
    fit = base(CORUNDUM, FLUORITE)
    result = simulate(fit, fit, None)
    broad = reflections(fit)
    broad = replace(broad, fwhm=5.0 * broad.fwhm)
    mean = result.y_calc + foot * (phase_patterns(fit, broad).sum(axis=0) - (result.y_calc - result.background))
    y = np.random.default_rng(4).poisson(mean).astype(float)
    seen = measure(replace(result, y_obs=y, sigma=np.sqrt(np.maximum(y, 1.0))), context(fit))
    assert seen.features["unexplained_peak_ratio"].value == 0.0


def test_lines_far_too_wide_leave_a_plateau_and_no_peaks() -> None:
    truth = base(CORUNDUM)
    result = simulate(truth, truth, None)
    x = axis(truth)
    # what is left between lines that were calculated too wide: a smooth rise between two dips
    smooth = 60.0 * np.exp(-np.square((x - 33.0) / 1.5)) - 60.0 * np.exp(-np.square((x - 37.0) / 1.0))
    y = np.random.default_rng(5).poisson(np.maximum(result.y_calc + smooth, 1.0)).astype(float)
    seen = measure(replace(result, y_obs=y, sigma=np.sqrt(np.maximum(y, 1.0))), context(truth))
    assert seen.unexplained_peaks == ()


@pytest.mark.parametrize("scale", [0.03, 0.1, 0.3])
def test_an_impurity_is_measured_beside_such_tails(scale: float) -> None:
    truth = base(CORUNDUM, replace(FLUORITE, scale=scale), upper=110.0, axial=0.07)
    table = reflections(truth)
    share = table.intensity[table.phase == 1].sum() / table.intensity.sum()
    ratio, peaks = _peaks(truth, base(CORUNDUM, upper=110.0))
    assert ratio == pytest.approx(share, rel=0.25)
    assert any(abs(peak.two_theta_deg - 28.27) < 0.06 for peak in peaks)
