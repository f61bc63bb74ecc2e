"""measure() end to end on simulated fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoxrd.science.observe import measure
from tests.science.simulate import CORUNDUM, FLUORITE, base, context, reflections, simulate


@pytest.fixture(scope="module")
def model():
    return base()


def test_a_perfect_model_shows_nothing(model):
    seen = measure(simulate(model, model), context(model))
    assert seen.quality.gof == pytest.approx(1.0, abs=0.05)
    assert seen.features["unexplained_peak_ratio"].value < 0.005
    assert seen.violations == ()
    for name in ("position.zero", "position.displacement", "position.cell"):
        assert seen.features[name].significance < 3
    assert seen.phases[0].intensity_share == 1.0
    assert 0 < seen.quality.r_bragg["corundum"] < 0.01


@pytest.mark.parametrize("zero", [0.01, 0.05, 0.1, 0.2, 0.6, -0.6])
def test_a_zero_shift_is_named_and_measured_and_no_peak_is_unexplained(model, zero):
    seen = measure(simulate(replace(model, zero=zero), model), context(model))
    found = seen.features["position.zero"]
    assert abs(found.value - zero) < max(3 * found.esd, 1e-3 * abs(zero))
    assert seen.features["position.separable"].value == 1.0
    assert seen.features["position.displacement"].significance < 3
    assert seen.features["unexplained_peak_ratio"].value < 0.02
    assert seen.features["position.alone.zero"].significance > seen.features["position.alone.displacement"].significance


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.03])
def test_a_missing_phase_gives_its_area_share(scale):
    truth = base(CORUNDUM, replace(FLUORITE, scale=scale), upper=140.0)
    fit = base(CORUNDUM, upper=140.0)
    table = reflections(truth)
    share = table.intensity[table.phase == 1].sum() / table.intensity.sum()
    seen = measure(simulate(truth, fit), context(fit))
    assert seen.features["unexplained_peak_ratio"].value == pytest.approx(share, rel=0.2)
    first = min(seen.unexplained_peaks, key=lambda peak: abs(peak.two_theta_deg - 28.27))
    assert first.two_theta_deg == pytest.approx(28.27, abs=0.04)
    assert np.isclose(first.d_angstrom, 3.154, atol=0.004)
    assert first.area_share > 0.5 * max(peak.area_share for peak in seen.unexplained_peaks)


def test_of_a_phase_with_a_scale_of_zero_nothing_can_be_told():
    truth, fit = base(CORUNDUM), base(CORUNDUM, replace(FLUORITE, scale=0.0))
    seen = measure(simulate(truth, fit), context(fit))
    assert "scale above zero" in seen.features["intensity.share.fluorite"].reason
