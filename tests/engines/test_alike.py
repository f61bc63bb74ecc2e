"""What both engines do alike: a rough surface, and atoms that share a displacement parameter."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from autoxrd.domain.action import Bound
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult
from autoxrd.errors import UserInputError
from tests.engines.samples import FLUORITE, LAB, NEUTRON, RUTILE, ZINCITE, parameter, simulated, values

BASIC = ("phase.*.scale", "background.*")
SCALES = {
    "rietx": {"fluorite": 1e-3, "zincite": 1e-3, "rutile": 0.05, "neutron": 1e-3},
    "gsasii": {"fluorite": 20.0, "zincite": 30.0, "rutile": 30.0, "neutron": 1e4},
}
"""The engines' units of a scale."""


def chi2(result: EngineResult) -> float:
    return float(np.sum(((result.y_obs - result.y_calc) / result.sigma) ** 2))


@pytest.mark.parametrize("depth", [0.0, 0.03, 0.1])
def test_a_rough_surface_starts_from_none(either: ProtocolSession, depth: float) -> None:
    scales = SCALES[either.name]
    truth = values(
        phase__fluorite__scale=scales["fluorite"], phase__zincite__scale=scales["zincite"], background__0=100.0
    )
    pattern, even = simulated(either, LAB, (FLUORITE, ZINCITE), truth, seed=None)
    # in rietx it is in the model once it is asked for
    assert ("sample.roughness" in {p.name for p in even.parameters}) == (either.name == "gsasii")
    kept = np.exp(-depth / np.sin(np.radians(0.5 * even.x)))
    expected = even.background + even.phase_patterns.sum(axis=0) * kept
    y = np.random.default_rng(5).poisson(expected).astype(float)
    pattern = dataclasses.replace(pattern, y=y, sigma=np.sqrt(np.maximum(y, 1.0)))
    root = either.prepare(pattern, LAB, (FLUORITE, ZINCITE), {})
    snapshot, start = either.execute(root, EngineCommand(released=BASIC))
    bounds = (Bound(selector="sample.roughness", lower=0.0, upper=0.5),)
    _, result = either.execute(snapshot, EngineCommand(released=(*BASIC, "sample.roughness"), bounds=bounds))
    found, esd = parameter(result, "sample.roughness")
    if depth == 0.0:
        assert found < 4 * (esd or 1e-3)
        assert start.gains["sample.roughness"] < 15.0
        return
    assert esd is not None
    assert abs(found - depth) < 4 * esd
    assert start.gains["sample.roughness"] == pytest.approx(chi2(start) - chi2(result), rel=0.25)


def test_only_x_rays_on_a_flat_plate_meet_a_surface(either: ProtocolSession) -> None:
    truth = values(phase__fluorite__scale=SCALES[either.name]["neutron"])
    pattern, _ = simulated(either, NEUTRON, (FLUORITE,), truth)
    snapshot = either.prepare(pattern, NEUTRON, (FLUORITE,), {})
    _, result = either.execute(snapshot, EngineCommand(released=("phase.*.scale", "sample.roughness")))
    assert "sample.roughness" not in result.gains
    assert [n.code for n in result.notices if "sample.roughness" in n.text] == ["selector_unmatched"]


@pytest.mark.parametrize(("oxygen", "apart"), [(0.008, False), (0.03, True)])
def test_atoms_that_share_a_displacement_parameter_are_parted_where_they_differ(
    either: ProtocolSession, oxygen: float, apart: bool
) -> None:
    truth = values(
        phase__rutile__scale=SCALES[either.name]["rutile"], background__0=100.0, phase__rutile__atom__O1__uiso=oxygen
    )
    pattern, _ = simulated(either, LAB, (RUTILE,), truth)
    root = either.prepare(pattern, LAB, (RUTILE,), {})
    free, phases = (*BASIC, "phase.rutile.uiso"), {"phases": ["rutile"]}
    with pytest.raises(UserInputError) as caught:
        either.execute(root, EngineCommand(released=free, edits=(Edit("apart_uiso", phases),)))
    assert caught.value.code == "edit_invalid"
    snapshot, shared = either.execute(root, EngineCommand(released=free, edits=(Edit("equal_uiso", phases),)))
    gain = shared.gains["phase.rutile.uiso@apart"]
    assert shared.gain_counts["phase.rutile.uiso@apart"] == 1
    assert (gain > 25.0) == apart
    _, parted = either.execute(snapshot, EngineCommand(released=free, edits=(Edit("apart_uiso", phases),)))
    assert chi2(shared) - chi2(parted) == pytest.approx(gain, rel=0.3, abs=0.5)
    for name, true in (("Ti1", 0.008), ("O1", oxygen)):
        value, esd = parameter(parted, f"phase.rutile.atom.{name}.uiso")
        assert esd is not None
        assert abs(value - true) < 4.0 * esd
    # what is left of it once they are parted
    assert parted.gain_counts["phase.rutile.uiso@apart"] == 0
    assert parted.gains["phase.rutile.uiso@apart"] < 1e-3 * max(gain, 1.0)
