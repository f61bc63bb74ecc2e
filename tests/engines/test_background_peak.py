"""A halo is found as a single broad peak in the background of both engines."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from autoxrd.domain.action import Bound
from autoxrd.domain.pattern import Pattern
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import Edit, EngineCommand
from autoxrd.errors import UserInputError
from tests.engines.samples import FLUORITE, LAB, parameter, simulated, values

BASIC = ("phase.*.scale", "background")
SCALES = {"rietx": 1e-3, "gsasii": 20.0}
PEAK = Edit("background_peak", {"position_deg": 44.0, "width_deg": 8.0})


def haloed(session: ProtocolSession) -> Pattern:
    """Fluorite on a level of 200 with a Gaussian halo 10 degrees wide at 42."""
    truth = values(phase__fluorite__scale=SCALES[session.name], background__0=200.0)
    pattern, _ = simulated(session, LAB, (FLUORITE,), truth, seed=None)
    halo = 250.0 * np.exp(-4.0 * np.log(2.0) * ((pattern.x - 42.0) / 10.0) ** 2)
    y = np.random.default_rng(3).poisson(pattern.y + halo).astype(float)
    return dataclasses.replace(pattern, y=y, sigma=np.sqrt(np.maximum(y, 1.0)))


def test_a_halo_takes_its_place_and_width(either: ProtocolSession) -> None:
    root = either.prepare(haloed(either), LAB, (FLUORITE,), {"background_terms": 2})
    before, plain = either.execute(root, EngineCommand(released=BASIC, gains=False))
    snapshot, result = either.execute(before, EngineCommand(released=BASIC, edits=(PEAK,)))
    assert result.convergence.converged
    assert result.convergence.dropped == ()
    assert result.engine_r["gof"] < 1.1 < plain.engine_r["gof"]
    place, esd = parameter(result, "background.peak1_position")
    assert esd is not None
    assert abs(place - 42.0) < 4.0 * esd
    assert parameter(result, "background.peak1_gauss")[0] == pytest.approx(10.0, abs=0.8)
    # all of the background is freed as one, the peak with it, and it is part of the background
    assert {"background.0", "background.peak1_position", "background.peak1_gauss"} <= set(result.covariance_names)
    middle = int(np.argmin(np.abs(result.x - 42.0)))
    assert result.background[middle] == pytest.approx(450.0, rel=0.03)
    _, again = either.execute(snapshot, EngineCommand(cycles=0, gains=False))
    assert np.array_equal(again.y_calc, result.y_calc)


def test_its_limits_hold(either: ProtocolSession) -> None:
    root = either.prepare(haloed(either), LAB, (FLUORITE,), {"background_terms": 2})
    bounds = (
        Bound(selector="background.peak1_position", lower=43.0, upper=46.0),
        Bound(selector="background.peak1_gauss", lower=3.0, upper=7.0),
    )
    _, result = either.execute(root, EngineCommand(released=BASIC, bounds=bounds, edits=(PEAK,), gains=False))
    for bound in bounds:
        value, _ = parameter(result, bound.selector)
        assert bound.lower - 1e-9 <= value <= bound.upper + 1e-9


def test_two_peaks_are_told_apart_by_number(either: ProtocolSession) -> None:
    root = either.prepare(haloed(either), LAB, (FLUORITE,), {"background_terms": 2})
    second = Edit("background_peak", {"position_deg": 70.0, "width_deg": 12.0})
    _, result = either.execute(root, EngineCommand(cycles=0, edits=(PEAK, second), gains=False))
    assert parameter(result, "background.peak1_position")[0] == 44.0
    assert parameter(result, "background.peak2_position")[0] == 70.0


@pytest.mark.parametrize(("place", "width"), [(142.0, 8.0), (10.0, 8.0), (40.0, 0.0), (40.0, 500.0)])
def test_where_there_can_be_none_it_is_refused(either: ProtocolSession, place: float, width: float) -> None:
    root = either.prepare(haloed(either), LAB, (FLUORITE,), {})
    wrong = Edit("background_peak", {"position_deg": place, "width_deg": width})
    with pytest.raises(UserInputError) as caught:
        either.execute(root, EngineCommand(edits=(wrong,)))
    assert caught.value.code == "edit_invalid"


def test_a_profile_match_has_it_too(either: ProtocolSession) -> None:
    root = either.prepare(haloed(either), LAB, (FLUORITE,), {"background_terms": 2})
    snapshot, result = either.execute(root, EngineCommand(released=BASIC, edits=(PEAK,), gains=False))
    _, matched = either.execute(snapshot, EngineCommand(cycles=20, mode="lebail", gains=False))
    np.testing.assert_allclose(matched.background, result.background, rtol=0.02)
