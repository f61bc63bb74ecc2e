"""What does a scale factor count? The engine's own statement, held against its reflections."""

from __future__ import annotations

import numpy as np
import pytest

from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import EngineCommand
from autoxrd.engines.registry import get_engine
from autoxrd.science.scales import scattered_mass
from tests.engines.samples import FLUORITE, LAB, ZINCITE, flat, values

_AMU_PER_A3 = 1.66053906660


@pytest.mark.parametrize("name", ["rietx", pytest.param("gsasii", marks=pytest.mark.gsasii)])
def test_scales_count_mass_as_the_engine_says(name: str, request: pytest.FixtureRequest) -> None:
    """The area of a line is K W m |F|^2 LP / (rho V^2): one K for both phases (Hill & Howard 1987)."""
    session: ProtocolSession = request.getfixturevalue(name)
    snapshot = session.prepare(flat(20.0, 120.0, 0.02), LAB, [FLUORITE, ZINCITE], {})
    edits = values(phase__fluorite__scale=3.0, phase__zincite__scale=11.0, profile__W=0.01)
    _, result = session.execute(snapshot, EngineCommand(cycles=0, edits=edits, gains=False))
    power = get_engine(name).capabilities().scale_volume_power
    assert power is not None
    found = scattered_mass(result, power)
    assert found is not None
    told = {p.name: p.value for p in result.parameters}
    lines = result.reflections
    theta = np.radians(lines.position) / 2.0
    lorentz = (1.0 + np.cos(2.0 * theta) ** 2) / (np.sin(theta) ** 2 * np.cos(theta))
    strength = lines.intensity / (lines.multiplicity * lines.f2_calc * lorentz)
    ratios = []
    for index, phase in enumerate(result.phases):
        mine = (lines.phase == index) & (lines.line == 0) & (lines.f2_calc > 1.0)
        assert np.ptp(strength[mine]) / strength[mine].mean() < 0.02
        density, volume = (told[f"phase.{phase.name}.{key}"] for key in ("density", "cell.volume"))
        assert found[0][index] == pytest.approx(
            told[f"phase.{phase.name}.scale"] * density * volume ** (1 + power), rel=1e-12
        )
        ratios.append(float(np.median(strength[mine])) * density * volume**2 / found[0][index])
    assert ratios[0] == pytest.approx(ratios[1], rel=0.005)
    shares = found[0] / found[0].sum()
    weights = [p.weight_fraction.value for p in result.phases if p.weight_fraction is not None]
    assert shares == pytest.approx(weights, rel=2e-4)
