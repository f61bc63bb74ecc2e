"""Global statistics against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoxrd.science.noise import larger_sigma
from autoxrd.science.statistics import fit_statistics, structured_fraction


def _fit(y, yc, sigma=None, background=None, p=0):
    y, yc = np.asarray(y, float), np.asarray(yc, float)
    x = np.linspace(10.0, 100.0, y.size)
    sigma = np.sqrt(np.maximum(y, 1.0)) if sigma is None else np.asarray(sigma, float)
    background = np.zeros_like(y) if background is None else np.asarray(background, float)
    return fit_statistics(x, y, sigma, yc, background, n_parameters=p)


def test_r_factors_are_those_of_the_definitions():
    rng = np.random.default_rng(1)
    y, yc, b = rng.uniform(50, 900, 400), rng.uniform(50, 900, 400), np.full(400, 30.0)
    sigma = rng.uniform(1, 20, 400)
    w = 1 / sigma**2
    got = _fit(y, yc, sigma, b, p=7)
    assert got.chi2 == pytest.approx(np.sum(w * (y - yc) ** 2))
    assert got.rwp == pytest.approx(np.sqrt(np.sum(w * (y - yc) ** 2) / np.sum(w * y**2)))
    assert got.rexp == pytest.approx(np.sqrt((400 - 7) / np.sum(w * y**2)))
    assert got.gof == pytest.approx(got.rwp / got.rexp)
    assert got.rwp_no_background == pytest.approx(np.sqrt(np.sum(w * (y - yc) ** 2) / np.sum(w * (y - b) ** 2)))
    assert got.abs_residual == got.rp == pytest.approx(np.abs(y - yc).sum() / np.abs(y).sum())
    e = y - yc - np.mean(y - yc)
    assert got.lag1 == pytest.approx(np.sum(e[1:] * e[:-1]) / np.sum(e**2))


def test_bias_is_of_thirds_of_the_range_not_of_the_points():
    x = np.concatenate((np.linspace(0, 10, 1000), np.linspace(10.1, 90, 100)))
    y = np.full(x.size, 100.0)
    yc = np.where(x <= 30.0, 90.0, 100.0)
    got = fit_statistics(x, y, np.full(x.size, 10.0), yc, np.zeros(x.size), n_parameters=0)
    assert got.bias_low == pytest.approx(0.1)
    assert got.bias_high == pytest.approx(0.0)


def test_structured_fraction_counts_runs_of_one_sign():
    z = np.zeros(100)
    z[10] = 9.0  # alone
    z[20:23] = 6.0
    z[30:32] = (6.0, -6.0)  # two signs, no run
    z[40:42] = -5.0
    assert structured_fraction(z) == pytest.approx(0.05)


def test_a_background_misfit_of_35_percent_shows_in_counting_sigma_although_it_inflates_the_mad():
    x = np.linspace(0, 1, 4000)
    truth = 2000.0 * (1 + 0.45 * np.sin(6 * x))
    y = np.random.default_rng(3).poisson(truth).astype(float)
    got = _fit(y, np.full(y.size, y.mean()))
    assert got.rwp == pytest.approx(0.35, abs=0.1)
    assert got.structured_fraction_counting > 0.5
    assert got.structured_fraction < 0.1


@pytest.mark.parametrize("counts", [1e2, 1e3, 1e5])
@pytest.mark.parametrize("shape", ["flat", "slope", "hump"])
def test_a_wrong_background_shows_whatever_its_shape_and_however_low_the_counts(counts, shape):
    x = np.linspace(0, 1, 4000)
    lift = {"flat": np.ones_like(x), "slope": 1.0 - x, "hump": np.exp(-np.square((x - 0.3) / 0.28))}[shape]
    model = counts * (0.2 + 0.8 * np.exp(-np.square((x - 0.6) / 0.003)))
    size = 0.35 / np.sqrt(np.mean(np.square(lift / (1.0 + lift))))  # of the background, near enough
    y = np.random.default_rng(3).poisson(model + 0.2 * counts * size * lift).astype(float)
    got = _fit(y, model)
    assert got.rwp > 0.2
    assert got.structured_fraction_counting > 0.5


@pytest.mark.parametrize("mean", [0.3, 3.0, 30.0, 1e4])
def test_counting_noise_has_no_structure(mean):
    for seed in range(5):
        y = np.random.default_rng(seed).poisson(mean, 20_000).astype(float)
        assert _fit(y, np.full(y.size, mean)).structured_fraction_counting == 0.0


def test_a_channel_without_counts_weighs_by_what_was_expected_there():
    calculated = np.full(100, 9.0)
    observed = calculated.copy()
    observed[10:13] = 0.0  # 9 esds of one count, but 3 of nine
    sigma = np.sqrt(np.maximum(observed, 1.0))
    assert larger_sigma(observed, sigma, calculated) == pytest.approx(np.full(100, 3.0))
    assert _fit(observed, calculated, sigma).structured_fraction_counting == 0.0


@given(st.lists(st.integers(0, 3), min_size=20, max_size=60))
def test_zero_counts_give_finite_figures(counts):
    got = _fit(counts, np.full(len(counts), 0.5), p=2)
    figures = (got.rwp, got.rexp, got.gof, got.lag1, got.structured_fraction, got.structured_fraction_counting)
    assert all(np.isfinite(figures)) or not any(counts)
    assert 0 <= got.structured_fraction_counting <= 1


def test_a_perfect_fit_has_no_structure():
    got = _fit(np.full(50, 10.0), np.full(50, 10.0))
    assert got.structured_fraction == got.structured_fraction_counting == got.rwp == got.lag1 == 0
