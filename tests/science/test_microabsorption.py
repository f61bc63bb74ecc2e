"""What coarse grains do to weight fractions, against the series and the limits of Brindley's factor."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from autoxrd.science.microabsorption import Absorber, brindley_factor, corrected_fractions


@pytest.mark.parametrize("contrast", [-0.5, -0.1, -0.024, 0.0, 0.0249, 0.0251, 0.1, 0.8])
def test_the_factor_is_the_mean_over_chords_of_a_sphere(contrast: float) -> None:
    # parallel chords of a sphere of radius 1: those of length c hold a share of the volume that goes as c^2
    mean, _ = quad(lambda chord: math.exp(-contrast * chord) * chord**2, 0.0, 2.0)
    assert brindley_factor(contrast) == pytest.approx(mean / (8.0 / 3.0), rel=1e-6)


def test_equal_absorbers_keep_their_fractions() -> None:
    phases = [Absorber(0.3, 4.0, 200.0), Absorber(0.7, 5.0, 200.0)]
    assert corrected_fractions(phases, radius_um=10.0) == pytest.approx((0.3, 0.7))


@given(st.floats(0.05, 0.95), st.floats(50.0, 2000.0), st.floats(1.0, 5.0))
def test_the_strong_absorber_gains_and_the_sum_stays(share: float, absorption: float, radius_um: float) -> None:
    phases = [Absorber(share, 4.0, absorption), Absorber(1.0 - share, 4.0, absorption + 100.0)]
    weak, strong = corrected_fractions(phases, radius_um)
    assert weak + strong == pytest.approx(1.0)
    assert weak < share
    assert strong > 1.0 - share
