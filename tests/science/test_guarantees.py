"""The guarantees of the unexplained-peak ratio, over seeds, counts and phases (DESIGN section 7)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoxrd.science.observe import measure
from tests.science.simulate import CORUNDUM, FLUORITE, ORTHO, ZINCITE, Phase, base, context, reflections, simulate

MONO = Phase("mono", (6.2, 8.9, 5.1, 90, 101, 90), "P 21/c", seed=21)
MODELS = {
    "one phase": base(CORUNDUM, upper=90.0),
    "three phases": base(CORUNDUM, FLUORITE, ZINCITE, upper=110.0),
    "crowded": base(MONO, upper=80.0),
}


def _look(truth, fit, seed):
    return measure(simulate(truth, fit, seed), context(fit))


def _share(truth, index):
    table = reflections(truth)
    return table.intensity[table.phase == index].sum() / table.intensity.sum()


@pytest.mark.parametrize("counts", [5e2, 5e3, 5e4])
@pytest.mark.parametrize("name", MODELS)
def test_noise_alone_leaves_nothing_unexplained_and_names_no_cause(name, counts):
    model = replace(MODELS[name], counts=counts)
    for seed in range(8):
        seen = _look(model, model, seed)
        assert seen.features["unexplained_peak_ratio"].value < 0.005
        assert seen.features["missing_peak_ratio"].value == 0.0
        loud = {k: f.significance for k, f in seen.features.items() if f.available and (f.significance or 0.0) > 4.5}
        assert loud == {}


@pytest.mark.parametrize("shift", [-1.0, -0.5, 0.3, 1.0, 1.5])
@pytest.mark.parametrize("name", MODELS)
def test_a_zero_shift_explains_its_own_residual(name, shift):
    model = MODELS[name]
    width = float(np.median(reflections(model).fwhm))
    for counts in (1e3, 5e4):
        fit = replace(model, counts=counts)
        seen = _look(replace(fit, zero=shift * width), fit, 3)
        assert seen.features["unexplained_peak_ratio"].value < 0.02


@pytest.mark.parametrize("scale", [1.0, 0.3, 0.1])
@pytest.mark.parametrize(
    ("main", "other"),
    [((CORUNDUM,), FLUORITE), ((CORUNDUM,), ZINCITE), ((ZINCITE, CORUNDUM), FLUORITE), ((CORUNDUM,), ORTHO)],
)
def test_a_missing_phase_gives_its_area_share_within_a_fifth(main, other, scale):
    truth, fit = base(*main, replace(other, scale=scale), upper=110.0), base(*main, upper=110.0)
    share = _share(truth, len(main))
    seen = _look(truth, fit, 1)
    assert seen.features["unexplained_peak_ratio"].value == pytest.approx(share, rel=0.2)


def test_a_missing_phase_is_found_beside_a_zero_shift_and_a_wrong_width():
    truth = replace(base(CORUNDUM, replace(FLUORITE, scale=0.3), upper=110.0), zero=0.05, w=0.012)
    fit = base(CORUNDUM, upper=110.0)
    seen = _look(truth, fit, 2)
    assert seen.features["unexplained_peak_ratio"].value == pytest.approx(_share(truth, 1), rel=0.25)


def test_a_trace_with_a_line_of_its_own_is_found():
    truth, fit = base(CORUNDUM, replace(FLUORITE, scale=0.01), upper=110.0), base(CORUNDUM, upper=110.0)
    assert _share(truth, 1) < 0.01
    seen = _look(truth, fit, 4)
    assert any(abs(peak.two_theta_deg - 28.27) < 0.06 for peak in seen.unexplained_peaks)


@pytest.mark.parametrize(
    "change",
    [
        {"w": 0.015},
        {"x": 0.06},
        {"x": 0.1},
        {"y": 0.08},
        {"w": 0.003, "x": 0.01, "y": 0.01},
        {"asymmetry": -0.3},
        {"asymmetry": 0.3},
    ],
)
def test_the_shape_of_strong_lines_is_no_peak(change):
    fit = MODELS["three phases"]
    seen = _look(replace(fit, **change), fit, 6)
    assert seen.features["unexplained_peak_ratio"].value < 0.01


def test_the_two_lines_of_a_doublet_are_one_peak():
    truth, fit = (
        base(CORUNDUM, replace(FLUORITE, scale=0.3), lower=80.0, upper=110.0),
        base(CORUNDUM, lower=80.0, upper=110.0),
    )
    seen = _look(truth, fit, 1)
    table = reflections(truth)
    first = table.position[(table.phase == 1) & (table.line == 0)]
    free = [at for at in first if np.abs(table.position[table.phase == 0] - at).min() > 0.2]
    for at in free:
        near = [p for p in seen.unexplained_peaks if -0.1 < p.two_theta_deg - at < 0.6]
        assert len(near) == 1, (at, near)
