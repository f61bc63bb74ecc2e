"""What a range can tell apart, against closed forms and a least-squares fit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from autoxrd.domain.state import Feature
from autoxrd.gates.geometry import AngularRange, range_of
from tests.gates.factory import state


def test_the_span_of_s_squared() -> None:
    span = AngularRange(20.0, 60.0, 1.5406).s2_span
    assert span == pytest.approx((0.5**2 - math.sin(math.radians(10)) ** 2) / 1.5406**2)
    assert AngularRange(20.0, 60.0).s2_span is None


@pytest.mark.parametrize(("low", "high"), [(15.0, 130.0), (28.0, 40.0), (5.0, 60.0)])
def test_correlations_are_those_of_a_fit(low: float, high: float) -> None:
    theta = np.radians(np.linspace(low, high, 4001) / 2)
    laws = {"zero": np.ones_like(theta), "displacement": np.cos(theta), "cell": np.tan(theta)}
    for first, second in (("zero", "cell"), ("zero", "displacement"), ("displacement", "cell")):
        design = np.column_stack([laws[first], laws[second]])
        covariance = np.linalg.inv(design.T @ design)
        expected = abs(covariance[0, 1]) / math.sqrt(covariance[0, 0] * covariance[1, 1])
        assert AngularRange(low, high).correlation(first, second) == pytest.approx(expected, abs=2e-3)


def test_wider_is_better_told() -> None:
    r = [AngularRange(20.0, high).correlation("zero", "cell") for high in (30.0, 60.0, 120.0)]
    assert r == sorted(r, reverse=True)
    assert r[0] > 0.98 > r[1]


def test_the_range_is_read_from_the_record() -> None:
    ends = {"range.two_theta_min": 15.0, "range.two_theta_max": 130.0}
    assert range_of(state(features=ends, values={"instrument.wavelength": 1.54})) == AngularRange(15.0, 130.0, 1.54)
    assert range_of(state()) is None
    assert range_of(state(features={**ends, "range.two_theta_max": 10.0})) is None
    absent = Feature(value=None, available=False, reason="d axis")
    assert range_of(state(features={**ends, "range.two_theta_max": absent})) is None
