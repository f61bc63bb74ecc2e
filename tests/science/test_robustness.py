"""Whatever an engine hands over, measuring it raises nothing, warns of nothing and gives finite figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoxrd.domain.pattern import AxisKind
from autoxrd.science.observe import measure
from tests.science.simulate import CORUNDUM, FLUORITE, base, context, simulate

MODEL = base(CORUNDUM, FLUORITE, upper=60.0)


@pytest.fixture(scope="module")
def fitted():
    return simulate(MODEL, MODEL)


def _net(result, factor):
    return replace(
        result,
        y_calc=result.background + factor * (result.y_calc - result.background),
        phase_patterns=factor * result.phase_patterns,
        reflections=replace(result.reflections, intensity=factor * result.reflections.intensity),
    )


def _table(result, **changes):
    return replace(result, reflections=replace(result.reflections, **changes))


def _points(result, keep):
    cut = {name: getattr(result, name)[keep] for name in ("x", "y_obs", "sigma", "y_calc", "background")}
    return replace(result, phase_patterns=result.phase_patterns[:, keep], **cut)


BROKEN = {
    "nothing calculated": lambda r: _net(r, 0.0),
    "scale a million times too small": lambda r: _net(r, 1e-6),
    "scale a million times too large": lambda r: _net(r, 1e6),
    "flat data": lambda r: replace(r, y_obs=np.full_like(r.y_obs, 50.0)),
    "no counts": lambda r: replace(r, y_obs=np.zeros_like(r.y_obs), sigma=np.ones_like(r.sigma)),
    "negative data": lambda r: replace(r, y_obs=r.y_obs - 500.0),
    "no noise given": lambda r: replace(r, sigma=np.full_like(r.sigma, 1e-6)),
    "huge noise": lambda r: replace(r, sigma=np.full_like(r.sigma, 1e9)),
    "reflections outside": lambda r: _table(r, position=r.reflections.position + 500.0),
    "nan in the table": lambda r: _table(
        r, intensity=np.where(r.reflections.line == 1, np.nan, r.reflections.intensity)
    ),
    "no eta": lambda r: _table(r, eta=np.full_like(r.reflections.eta, np.nan)),
    "negative intensity": lambda r: _table(r, intensity=-r.reflections.intensity),
    "one huge width": lambda r: _table(r, fwhm=np.full_like(r.reflections.fwhm, 300.0)),
    "tiny widths": lambda r: _table(r, fwhm=np.full_like(r.reflections.fwhm, 1e-6)),
    "all at one place": lambda r: _table(r, position=np.full_like(r.reflections.position, 30.0)),
    "few points": lambda r: _points(r, slice(0, 20)),
    "two points": lambda r: _points(r, slice(0, 2)),
    "a gap": lambda r: _points(r, (r.x < 30) | (r.x > 40)),
    "uneven steps": lambda r: _points(r, np.unique((np.arange(45) ** 2).clip(0, r.x.size - 1))),
    "wrong phase order": lambda r: replace(r, phase_patterns=r.phase_patterns[::-1]),
    "no covariance": lambda r: replace(r, covariance=np.full_like(r.covariance, np.nan)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_results_are_measured(fitted, name):
    result = BROKEN[name](fitted)
    for scene in (context(MODEL), replace(context(MODEL), axis=AxisKind.TOF)):
        seen = measure(result, scene)
        for key, feature in seen.features.items():
            assert feature.value is None or np.isfinite(feature.value), key
            assert feature.esd is None or np.isfinite(feature.esd), key
            assert feature.significance is None or np.isfinite(feature.significance), key
        assert (
            0 <= seen.features["unexplained_peak_ratio"].value <= 1
            if seen.features["unexplained_peak_ratio"].available
            else True
        )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    zero=st.floats(-0.5, 0.5),
    scale=st.floats(0.01, 100.0),
    width=st.floats(0.3, 3.0),
    seed=st.integers(0, 100),
)
def test_any_mixture_of_defects_is_measured(fitted, zero, scale, width, seed):
    rng = np.random.default_rng(seed)
    result = _net(fitted, scale)
    table = result.reflections
    result = _table(
        result,
        position=table.position + zero + rng.normal(0, 0.02, table.position.size),
        fwhm=table.fwhm * width,
    )
    seen = measure(result, context(MODEL))
    assert seen.features["rwp"].available
    assert 0 <= seen.features["unexplained_peak_ratio"].value <= 1
    assert measure(result, context(MODEL)) == seen  # the same twice
