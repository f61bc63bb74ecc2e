"""Small numerical tools against the libraries that they stand in for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from autoxrd.science.arrays import many_inverses, ordinary_median, quantiles, small_inverse
from autoxrd.science.noise import chi2_to_z


@pytest.mark.parametrize("dof", [1, 2, 3, 10, 60, 1000, 60_000])
def test_z_has_the_tail_of_chi2(dof: int) -> None:
    for z in (-3.0, -0.5, 0.0, 1.0, 3.0, 5.0, 8.0, 20.0):
        chi2 = float(stats.chi2.isf(stats.norm.sf(z), dof)) if z < 20.0 else _chi2_of(z, dof)
        assert chi2_to_z(chi2, dof) == pytest.approx(z, abs=2e-6)


def _chi2_of(z: float, dof: int) -> float:
    """chi2 with the tail of z where that is still a number, by bisection of its logarithm."""
    wanted, low, high = float(stats.norm.logsf(z)), float(dof), dof + 100.0 * z * (z + math.sqrt(dof))
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stats.chi2.logsf(middle, dof) > wanted else (low, middle)
    return low


def test_z_goes_on_where_the_tail_is_too_small_for_a_number() -> None:
    # of one squared normal deviate: the two tails of |z| are one tail here, a matter of ln(2) / z
    for z in (50.0, 1e3, 1e6):
        assert chi2_to_z(z * z, 1) == pytest.approx(z, abs=1.0 / z)
    # of many: the normal limit of sqrt(2 chi2) does not hold so far out, but z rises with chi2 and without a step
    for dof in (1, 7, 500, 60_000):
        values = [chi2_to_z(dof + step * math.sqrt(dof), dof) for step in np.linspace(0.0, 400.0, 2001)]
        steps = np.diff(values)
        assert np.all(steps > 0)
        assert np.all(np.abs(np.diff(steps)) < 0.2 * steps[0])


def test_no_chi2_at_all_is_no_deviate() -> None:
    assert chi2_to_z(10.0, 0) == 0.0
    assert chi2_to_z(0.0, 3) < -30.0


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_small_inverses(size: int) -> None:
    random = np.random.default_rng(size)
    columns = random.normal(size=(40, size)) * np.array([1e-3, 1.0, 1e4, 5.0, 1e-6, 2.0, 1e2])[:size]
    normal = columns.T @ columns
    scale = np.sqrt(np.outer(normal.diagonal(), normal.diagonal()))
    expected = np.linalg.inv(normal / scale)
    np.testing.assert_allclose(small_inverse(normal) * scale, expected, rtol=1e-9, atol=1e-9)


def test_an_absent_column_has_a_finite_inverse() -> None:
    for size in (1, 2, 3):
        normal = np.diag([4.0, 9.0, 25.0][:size])
        normal[0, 0] = 0.0
        inverse = small_inverse(normal)
        assert np.all(np.isfinite(inverse))
        assert inverse[size - 1, size - 1] == pytest.approx(1.0 / max(normal[-1, -1], 1e-12))


def test_two_nearly_equal_columns_keep_their_digits() -> None:
    normal = np.array([[1.0, 1.0 - 1e-9], [1.0 - 1e-9, 1.0]])
    np.testing.assert_allclose(small_inverse(normal), np.linalg.inv(normal), rtol=2e-3)


def test_many_inverses() -> None:
    random = np.random.default_rng(3)
    columns = random.normal(size=(200, 7, 12))
    normal = columns @ columns.transpose(0, 2, 1)
    unit = 1.0 / np.sqrt(np.einsum("pii->pi", normal))
    normal *= unit[:, :, None] * unit[:, None, :]
    np.testing.assert_allclose(many_inverses(normal), np.linalg.inv(normal), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 11])
def test_quantiles_and_median(size: int) -> None:
    values = np.random.default_rng(size).normal(size=size)
    shares = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
    np.testing.assert_allclose(quantiles(values, shares), np.quantile(values, shares), rtol=1e-12, atol=1e-15)
    assert ordinary_median(values) == np.median(values)
