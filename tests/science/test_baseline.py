"""The estimated background: it follows what lies under the lines, is not lifted by them, and tells what it costs."""

from __future__ import annotations

import numpy as np
import pytest

from autoxrd.errors import UserInputError
from autoxrd.science.baseline import BaselineSettings, estimate_baseline

X = np.arange(10.0, 90.0, 0.02)
RANGE = float(X[-1] - X[0])


def smooth(*, hump: float = 0.0):
    """A background that falls, with a hump 8 degrees wide at 24."""
    return 120.0 + 300.0 * np.exp(-X / 12.0) + hump * np.exp(-4.0 * np.log(2.0) * ((X - 24.0) / 8.0) ** 2)


def lines(*, number: int, fwhm: float, lorentz: float = 0.5, seed: int = 1):
    """Pseudo-Voigts, as dense as powder lines: their number rises with the cube of sin(theta)."""
    rng = np.random.default_rng(seed)
    low, high = (np.sin(np.radians(end / 2.0)) ** 3 for end in (12.0, 90.0))
    y = np.zeros_like(X)
    for place, area in zip(np.cbrt(rng.uniform(low, high, number)), rng.exponential(300.0, number), strict=True):
        u = (X - np.degrees(2.0 * np.arcsin(place))) / fwhm
        gauss = np.sqrt(4.0 * np.log(2.0) / np.pi) * np.exp(-4.0 * np.log(2.0) * u**2)
        y += area / place * ((1.0 - lorentz) * gauss + lorentz * (2.0 / np.pi) / (1.0 + 4.0 * u**2))
    return y


def counted(expected, seed: int = 2):
    return np.random.default_rng(seed).poisson(expected).astype(float)


def rms(found, truth) -> float:
    """Root-mean-square error in units of the counting noise of the background."""
    return float(np.sqrt(np.mean((np.interp(X, found.x, found.y) - truth) ** 2 / truth)))


@pytest.mark.parametrize("hump", [0.0, 180.0])
@pytest.mark.parametrize(("fwhm", "noises"), [(0.1, 0.4), (0.2, 0.8)])
def test_the_curve_follows_a_background_with_a_hump_under_lines(hump: float, fwhm: float, noises: float) -> None:
    truth = smooth(hump=hump)
    found = estimate_baseline(X, counted(truth + lines(number=20, fwhm=fwhm)))
    assert found.fwhm == pytest.approx(fwhm, rel=0.25)
    assert found.wave == pytest.approx(max(20.0 * found.fwhm, RANGE / 20.0))
    assert rms(found, truth) < noises


@pytest.mark.parametrize(("lorentz", "share"), [(0.0, 0.03), (0.5, 0.09)])
def test_lines_hardly_leak_into_it(lorentz: float, share: float) -> None:
    truth, bragg = smooth(), lines(number=20, fwhm=0.1, lorentz=lorentz)
    bare, found = (estimate_baseline(X, counted(truth + more), wave=5.0) for more in (np.zeros_like(X), bragg))
    lifted = np.interp(X, found.x, found.y - bare.y)
    # what goes over is of their tails, which lie in the noise one by one
    assert float(np.trapezoid(lifted, X)) < share * float(np.trapezoid(bragg, X))
    assert np.max(lifted / np.sqrt(truth)) < 1.0


def test_a_hump_narrower_than_its_waves_is_left_to_others() -> None:
    truth = smooth(hump=180.0)
    found = estimate_baseline(X, counted(truth), wave=30.0)
    assert np.interp(24.0, found.x, found.y) < truth[np.searchsorted(X, 24.0)] - 100.0


def test_its_cost_is_the_trace_of_the_smoother() -> None:
    # as many waves as fit into the range, pi / sqrt(2) parameters each (the integral of the response)
    y = counted(smooth())
    for wave in (4.0, 8.0, 16.0):
        found = estimate_baseline(X, y, wave=wave)
        assert found.parameters == pytest.approx(np.pi / np.sqrt(2.0) * RANGE / wave, rel=0.15)


def test_the_trace_is_that_of_the_whole_matrix() -> None:
    from autoxrd.science.baseline import _effective_parameters

    weights = np.random.default_rng(0).random(80)
    second = np.diff(np.eye(80), n=2, axis=0)
    for stiffness in (0.1, 50.0, 1e5):
        whole = np.linalg.solve(np.diag(weights) + stiffness * second.T @ second, np.diag(weights))
        assert _effective_parameters(weights, stiffness) == pytest.approx(np.trace(whole), rel=1e-8)


def test_the_same_points_give_the_same_curve_to_the_bit() -> None:
    y = counted(smooth(hump=100.0) + lines(number=40, fwhm=0.15))
    first, second = estimate_baseline(X, y), estimate_baseline(X.copy(), y.copy())
    assert first.y.tobytes() == second.y.tobytes()
    assert (first.parameters, first.wave) == (second.parameters, second.wave)


def test_straight_lines_between_its_nodes_are_fine_enough() -> None:
    y = counted(smooth(hump=180.0) + lines(number=40, fwhm=0.1))
    coarse, fine = (estimate_baseline(X, y, settings=BaselineSettings(nodes=n)) for n in (32, 4096))
    assert coarse.x.size < 700
    difference = np.interp(X, coarse.x, coarse.y) - np.interp(X, fine.x, fine.y)
    assert np.max(np.abs(difference)) < 0.01 * np.sqrt(np.min(smooth()))


def test_over_a_gap_it_goes_on() -> None:
    truth = smooth()
    y = counted(truth + lines(number=20, fwhm=0.1))
    kept = (X < 40.0) | (X > 46.0)
    whole, parted = estimate_baseline(X, y, wave=6.0), estimate_baseline(X[kept], y[kept], wave=6.0)
    away = (whole.x < 37.0) | (whole.x > 49.0)
    np.testing.assert_allclose(np.interp(whole.x, parted.x, parted.y)[away], whole.y[away], atol=3.0)
    assert rms(parted, truth) < 0.6


def test_a_pattern_without_lines_has_a_background_too() -> None:
    truth = smooth()
    assert rms(estimate_baseline(X, counted(truth)), truth) < 0.6
    assert estimate_baseline(X, np.full(X.size, 50.0)).y == pytest.approx(50.0)


def test_finer_steps_change_nothing() -> None:
    fine = np.arange(10.0, 90.0, 0.001)
    truth = np.interp(fine, X, smooth(hump=180.0))
    found = estimate_baseline(fine, np.random.default_rng(3).poisson(truth).astype(float), wave=4.0)
    assert float(np.sqrt(np.mean((np.interp(fine, found.x, found.y) - truth) ** 2 / truth))) < 0.15
    assert found.parameters == pytest.approx(np.pi / np.sqrt(2.0) * RANGE / 4.0, rel=0.15)


@pytest.mark.parametrize(("counts", "wave"), [(1.0, None), (10.0, None), (100.0, 3.0)])
def test_a_hump_is_followed_at_all_counts(counts: float, wave: float | None) -> None:
    # the more counts, the less it takes for a hump to look like a line: then the waves must be shorter
    truth = smooth(hump=180.0)
    found = estimate_baseline(X, counted(counts * (truth + lines(number=20, fwhm=0.1))), wave=wave)
    assert float(np.sqrt(np.mean((np.interp(X, found.x, found.y) / counts / truth - 1.0) ** 2))) < 0.05


def test_what_cannot_be_is_refused_by_name() -> None:
    y = counted(smooth())
    for x, wave in ((X[:30], None), (X, 0.01), (X, 500.0)):
        with pytest.raises(UserInputError) as caught:
            estimate_baseline(x, y[: x.size], wave=wave)
        assert caught.value.code == "estimate_impossible"
