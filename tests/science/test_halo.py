"""One broad maximum between the lines is found by place and width; lines, slopes and noise are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoxrd.science.halo import HALO, HALO_POSITION, HALO_WIDTH
from autoxrd.science.observe import measure
from tests.science.simulate import CORUNDUM, FLUORITE, ORTHO, ZINCITE, base, context, simulate

MODEL = base(CORUNDUM, FLUORITE, upper=110.0, counts=1e3)


def seen(truth=MODEL, fit=MODEL, *, place=30.0, width=9.0, height=0.0, seed=3):
    """Features of a fit of MODEL to a pattern with a halo."""
    clean = simulate(truth, fit, None)
    halo = height * np.exp(-4.0 * np.log(2.0) * ((clean.x - place) / width) ** 2)
    y = np.random.default_rng(seed).poisson(clean.y_obs + halo).astype(float)
    return measure(replace(clean, y_obs=y, sigma=np.sqrt(np.maximum(y, 1.0))), context(fit)).features


@pytest.mark.parametrize(("place", "width"), [(25.0, 7.0), (30.0, 10.0), (45.0, 14.0)])
def test_a_halo_is_found_where_it_is(place: float, width: float) -> None:
    features = seen(place=place, width=width, height=40.0)
    assert features[HALO_POSITION].value == pytest.approx(place, abs=0.2 * width)
    assert features[HALO_WIDTH].value == pytest.approx(width, rel=0.35)
    # what it would win between the lines, over the chi^2 of all: no more than a fit of it wins
    assert 0.1 < features[HALO].value < 0.6
    assert features[HALO].n_used == 3


def test_where_tails_of_lines_lie_everywhere_there_is_little_to_see() -> None:
    crowded = replace(MODEL, counts=5e4)
    assert HALO not in seen(crowded, crowded, place=30.0, width=10.0, height=40.0)


@pytest.mark.parametrize(
    "truth",
    [
        MODEL,
        replace(MODEL, background=(75.0, -35.0, 10.0)),  # a slope
        replace(MODEL, phases=(replace(CORUNDUM, scale=1.3), FLUORITE)),  # intensities
        replace(MODEL, phases=(replace(CORUNDUM, size_deg=0.15), FLUORITE)),  # broader lines
        replace(MODEL, displacement_mm=0.2),
    ],
)
def test_nothing_else_is_taken_for_one(truth) -> None:
    assert not {HALO, HALO_POSITION, HALO_WIDTH} & set(seen(truth))


@pytest.mark.parametrize("phase", [ZINCITE, ORTHO])
def test_lines_that_nobody_calculated_are_told_as_such(phase) -> None:
    features = seen(replace(MODEL, phases=(*MODEL.phases, phase)))
    # where many of them do look like a halo, the unexplained peaks say so first
    assert HALO not in features or features["unexplained_peak_ratio"].value > 0.05


def test_a_weak_one_is_not_told() -> None:
    assert HALO not in seen(height=1.0)
