"""A Gaussian width is nowhere below nothing: the least squares keep it, whatever U, V and W would rather be."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from autoxrd.domain.instrument import Profile
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import EngineCommand, EngineResult
from tests.engines.samples import BANK, FLUORITE, LAB, parameter, simulated, timed, values

pytestmark = pytest.mark.gsasii

BASIC = ("phase.*.scale", "background.*")
SHAPE = ("profile.U", "profile.V", "profile.W", "phase.*.strain")


def variance(result: EngineResult) -> np.ndarray:
    tangent = np.tan(np.radians(np.linspace(result.x[0], result.x[-1], 300) / 2.0))
    u, v, w = (parameter(result, f"profile.{key}")[0] for key in "UVW")
    return np.asarray(u * tangent**2 + v * tangent + w)


def chi2(result: EngineResult) -> float:
    return float(np.sum(((result.y_obs - result.y_calc) / result.sigma) ** 2))


def test_the_variance_stays_above_nothing_over_the_range(gsasii: ProtocolSession) -> None:
    # lines that become sharper with angle, beyond what a pseudo-Voigt with a Gaussian part can be
    sharp = dataclasses.replace(LAB, profile=Profile(u=0.0, v=-0.0085, w=0.0112, x=0.05, y=0.0))
    truth = values(phase__fluorite__scale=40.0, background__0=100.0)
    pattern, _ = simulated(gsasii, sharp, (FLUORITE,), truth, upper=105.0)
    root = gsasii.prepare(pattern, LAB, (FLUORITE,), {})
    snapshot, before = gsasii.execute(root, EngineCommand(released=(*BASIC, "profile.W"), gains=False))
    # seen on less of the range, the same numbers would be below nothing beyond it
    snapshot, result = gsasii.execute(snapshot, EngineCommand(released=(*BASIC, *SHAPE, "profile.X"), gains=False))
    assert np.min(variance(result)) >= 0.0
    assert result.convergence.converged
    assert chi2(result) < chi2(before)
    # to go on from where the limit holds changes nothing
    _, again = gsasii.execute(snapshot, EngineCommand(released=(*BASIC, *SHAPE, "profile.X"), gains=False))
    assert chi2(again) == pytest.approx(chi2(result), rel=1e-6)


def test_a_variance_that_wants_to_be_negative_is_held_and_told(gsasii: ProtocolSession) -> None:
    # no Gaussian part at all, and an instrument file that says too much Lorentzian width: it is to be taken back
    thin = dataclasses.replace(LAB, profile=Profile(u=0.0, v=0.0, w=0.0004, x=0.06, y=0.0))
    truth = values(phase__fluorite__scale=40.0, background__0=100.0)
    pattern, _ = simulated(gsasii, thin, (FLUORITE,), truth)
    wide = dataclasses.replace(LAB, profile=Profile(u=0.01, v=-0.01, w=0.01, x=0.08, y=0.02))
    root = gsasii.prepare(pattern, wide, (FLUORITE,), {})
    released = (*BASIC, "profile.U", "profile.V", "profile.W")
    _, result = gsasii.execute(root, EngineCommand(released=released, gains=False))
    assert np.min(variance(result)) >= 0.0
    assert "width_held" in {notice.code for notice in result.notices}


def test_the_variance_over_the_time_of_flight_stays_above_nothing(gsasii: ProtocolSession) -> None:
    truth = values(**{"phase__fluorite__scale": 2000.0, "profile__sig-1": -60.0, "profile__sig-2": 30.0})
    pattern, _ = timed(gsasii, BANK, (FLUORITE,), truth, step=1.5e-3)
    root = gsasii.prepare(pattern, BANK, (FLUORITE,), {"background_terms": 2})
    released = (*BASIC, "profile.sig-0", "profile.sig-1", "profile.sig-2", "profile.sig-q")
    _, result = gsasii.execute(root, EngineCommand(released=released, gains=False))
    d = np.linspace(np.min(result.reflections.d_angstrom), np.max(result.reflections.d_angstrom), 300)
    parts = [parameter(result, f"profile.sig-{key}")[0] for key in "012q"]
    least = np.min(parts[0] + parts[1] * d**2 + parts[2] * d**4 + parts[3] * d)
    assert least >= 0.0
