"""The rietx backend finds the truth of simulated patterns, and says the same thing twice."""

from __future__ import annotations

import numpy as np
import pytest

from autoxrd.domain.action import Bound
from autoxrd.engines.executor import ProtocolSession, SessionSettings
from autoxrd.engines.protocol import EngineCommand, EngineResult, Snapshot
from autoxrd.engines.rietx import RietxEngine
from autoxrd.errors import EngineTimeout
from tests.engines.conftest import Mixture
from tests.engines.samples import (
    FLUORITE,
    LAB,
    NEUTRON,
    RUTILE,
    WUSTITE,
    ZINCITE,
    parameter,
    simulated,
    values,
)

BASIC = ("phase.*.scale", "background.*", "sample.displacement", "phase.*.cell")


@pytest.fixture(scope="module")
def fitted(rietx: ProtocolSession, mixture: Mixture) -> tuple[Snapshot, EngineResult]:
    return rietx.execute(mixture.root, EngineCommand(released=BASIC))


def test_a_fit_finds_the_truth_within_four_esds(fitted: tuple[Snapshot, EngineResult], mixture: Mixture) -> None:
    _, result = fitted
    assert result.convergence.converged
    assert result.convergence.dropped == ()
    for name in ("phase.fluorite.scale", "phase.zincite.cell.c", "phase.fluorite.cell.a", "sample.displacement"):
        value, esd = parameter(result, name)
        true, _ = parameter(mixture.truth, name)
        assert esd is not None
        assert 0.0 < esd < 0.1 * abs(true)
        assert abs(value - true) < 4.0 * esd
    assert 0.95 < result.engine_r["gof"] < 1.05


def test_esds_are_the_covariance_of_the_same_names(fitted: tuple[Snapshot, EngineResult]) -> None:
    _, result = fitted
    assert len(result.covariance_names) == 2 + 8 + 1 + 3
    for number, name in enumerate(result.covariance_names):
        _, esd = parameter(result, name)
        assert esd == pytest.approx(np.sqrt(result.covariance[number, number]), rel=1e-9)
    assert result.engine_r["esd_inflation"] == pytest.approx(1.0, abs=0.3)


def test_fractions_are_those_of_the_scales(fitted: tuple[Snapshot, EngineResult], mixture: Mixture) -> None:
    _, result = fitted
    for found, true in zip(result.phases, mixture.truth.phases, strict=True):
        assert found.weight_fraction is not None
        assert true.weight_fraction is not None
        assert found.weight_fraction.esd is not None
        assert abs(found.weight_fraction.value - true.weight_fraction.value) < 4.0 * found.weight_fraction.esd
    assert sum(item.weight_fraction.value for item in result.phases if item.weight_fraction) == pytest.approx(1.0)


def test_a_cell_follows_its_symmetry(fitted: tuple[Snapshot, EngineResult]) -> None:
    _, result = fitted
    assert result.selectors["phase.fluorite.cell"] == ("phase.fluorite.cell.a",)
    assert result.selectors["phase.zincite.cell"] == ("phase.zincite.cell.a", "phase.zincite.cell.c")
    cell = result.phases[0].structure.cell
    assert cell.a == cell.b == cell.c
    (b,) = [item for item in result.parameters if item.name == "phase.fluorite.cell.b"]
    assert b.derived
    assert not b.released
    assert b.esd == parameter(result, "phase.fluorite.cell.a")[1]
    volume, esd = parameter(result, "phase.fluorite.cell.volume")
    a, a_esd = parameter(result, "phase.fluorite.cell.a")
    assert volume == pytest.approx(a**3)
    assert a_esd is not None
    assert esd == pytest.approx(3 * a**2 * a_esd, rel=1e-5)


def test_the_pattern_is_background_plus_phases(fitted: tuple[Snapshot, EngineResult]) -> None:
    _, result = fitted
    total = result.background + result.phase_patterns.sum(axis=0)
    np.testing.assert_allclose(total, result.y_calc, rtol=1e-12)


def test_the_intensity_of_a_reflection_is_its_area(fitted: tuple[Snapshot, EngineResult]) -> None:
    _, result = fitted
    table = result.reflections
    areas = np.trapezoid(result.phase_patterns, result.x, axis=1)
    for number in range(2):
        mine = table.phase == number
        # a Lorentzian's tails leave the range and the windows: a few percent
        assert table.intensity[mine].sum() == pytest.approx(areas[number], rel=0.04)
    first = int(np.argmin(np.where((table.phase == 0) & (table.line == 0), table.position, np.inf)))
    assert tuple(abs(table.hkl[first])) == (1, 1, 1)
    assert table.multiplicity[first] == 8
    peak = result.x[np.argmax(result.phase_patterns[0] * (np.abs(result.x - table.position[first]) < 0.3))]
    assert abs(peak - table.position[first]) < 0.031
    half = result.x[(result.phase_patterns[0] > result.phase_patterns[0].max() / 2) & (np.abs(result.x - 28.3) < 1)]
    assert half.size == 0 or table.fwhm[first] < 0.3


def test_a_displacement_moves_lines_as_the_contract_says(fitted: tuple[Snapshot, EngineResult]) -> None:
    _, result = fitted
    table = result.reflections
    wavelengths = np.array([line.wavelength_angstrom for line in LAB.lines])[table.line]
    bragg = 2.0 * np.degrees(np.arcsin(wavelengths / (2.0 * table.d_angstrom)))
    displacement, _ = parameter(result, "sample.displacement")
    shift = -np.degrees(2.0 * displacement / 200.0 * np.cos(np.radians(bragg / 2.0)))
    np.testing.assert_allclose(table.position - bragg, shift, atol=1e-9)


def test_the_same_command_gives_the_same_bits_in_this_and_in_a_fresh_process(
    rietx: ProtocolSession, mixture: Mixture, fitted: tuple[Snapshot, EngineResult]
) -> None:
    command = EngineCommand(released=BASIC)
    fresh = RietxEngine().start()
    try:
        for session in (rietx, fresh):
            snapshot, result = session.execute(mixture.root, command)
            assert snapshot.payload == fitted[0].payload
            np.testing.assert_array_equal(result.y_calc, fitted[1].y_calc)
            np.testing.assert_array_equal(result.covariance, fitted[1].covariance)
            assert result.parameters == fitted[1].parameters
            assert result.gains == fitted[1].gains
        again = fresh.prepare(mixture.pattern, LAB, (FLUORITE, ZINCITE), {})
        assert again.payload == mixture.root.payload
    finally:
        fresh.close()


def test_evaluating_changes_nothing(rietx: ProtocolSession, fitted: tuple[Snapshot, EngineResult]) -> None:
    snapshot, result = rietx.execute(fitted[0], EngineCommand(released=BASIC, cycles=0))
    assert snapshot.payload == fitted[0].payload
    np.testing.assert_array_equal(result.y_calc, fitted[1].y_calc)
    assert result.covariance.shape == (0, 0)
    assert result.convergence.cycles == 0


def test_limits_are_honoured(rietx: ProtocolSession, mixture: Mixture) -> None:
    bounds = (
        Bound(selector="phase.fluorite.cell.a", lower=5.4600, upper=5.4640),
        Bound(selector="sample.displacement", lower=-0.2, upper=0.2),
    )
    _, result = rietx.execute(mixture.root, EngineCommand(released=BASIC, bounds=bounds))
    (cell,) = [item for item in result.parameters if item.name == "phase.fluorite.cell.a"]
    assert (cell.lower, cell.upper) == (5.4600, 5.4640)
    assert cell.value == pytest.approx(5.4640, abs=1e-9)
    _, free = rietx.execute(mixture.root, EngineCommand(released=BASIC))
    assert parameter(free, "phase.fluorite.cell.a")[0] > 5.4640


def test_coordinates_and_their_limits(rietx: ProtocolSession) -> None:
    truth = values(phase__rutile__scale=5e-3, background__0=100.0, phase__rutile__atom__O1__x=0.31) + values(
        phase__rutile__atom__O1__y=0.31
    )
    pattern, _ = simulated(rietx, LAB, (RUTILE,), truth)
    root = rietx.prepare(pattern, LAB, (RUTILE,), {})
    released = ("phase.*.scale", "background.*", "phase.*.atom.*.position")
    _, result = rietx.execute(root, EngineCommand(released=released))
    x, esd = parameter(result, "phase.rutile.atom.O1.x")
    assert esd is not None
    assert abs(x - 0.31) < 4 * esd
    assert parameter(result, "phase.rutile.atom.O1.y")[0] == pytest.approx(x, abs=1e-12)
    assert result.selectors["phase.rutile.atom.O1.position"] == ("phase.rutile.atom.O1.x",)
    assert result.selectors["phase.rutile.atom.Ti1.position"] == ()
    bound = Bound(selector="phase.rutile.atom.O1.position", lower=0.29, upper=0.3070)
    _, held = rietx.execute(root, EngineCommand(released=released, bounds=(bound,)))
    assert parameter(held, "phase.rutile.atom.O1.x")[0] == pytest.approx(0.3070, abs=1e-7)


def test_displacement_parameters_come_back_as_u(rietx: ProtocolSession) -> None:
    truth = values(phase__rutile__scale=5e-3, background__0=100.0, phase__rutile__atom__O1__uiso=0.02)
    pattern, _ = simulated(rietx, LAB, (RUTILE,), truth)
    root = rietx.prepare(pattern, LAB, (RUTILE,), {})
    released = ("phase.*.scale", "background.*", "phase.rutile.uiso")
    _, result = rietx.execute(root, EngineCommand(released=released))
    value, esd = parameter(result, "phase.rutile.atom.O1.uiso")
    assert esd is not None
    assert abs(value - 0.02) < 4 * esd < 0.02
    (row,) = [item for item in result.parameters if item.name == "phase.rutile.atom.O1.uiso"]
    assert row.unit == "angstrom^2"


def test_one_site_with_two_species_is_one_site(rietx: ProtocolSession) -> None:
    truth = values(phase__wustite__scale=5e-3, background__0=100.0, phase__wustite__atom__Mg1__occupancy=0.6)
    pattern, _ = simulated(rietx, LAB, (WUSTITE,), truth, upper=120.0)
    start = rietx.prepare(pattern, LAB, (WUSTITE,), {})
    released = ("phase.*.scale", "background.*", "phase.*.uiso", "phase.wustite.atom.Mg1.occupancy")
    edits = values(phase__wustite__atom__Mg1__uiso=0.02)
    _, result = rietx.execute(start, EngineCommand(released=released, edits=edits))
    mg, fe = (parameter(result, f"phase.wustite.atom.{label}.occupancy") for label in ("Mg1", "Fe1"))
    assert mg[0] + fe[0] == pytest.approx(1.0, abs=1e-12)
    assert mg[1] is not None
    assert abs(mg[0] - 0.6) < 4 * mg[1]
    assert mg[1] == pytest.approx(fe[1])
    assert parameter(result, "phase.wustite.atom.Mg1.uiso") == parameter(result, "phase.wustite.atom.Fe1.uiso")
    assert result.selectors["phase.wustite.uiso"] == ("phase.wustite.atom.Mg1.uiso", "phase.wustite.atom.O1.uiso")


def test_the_origin_of_a_polar_phase_is_held(rietx: ProtocolSession, mixture: Mixture) -> None:
    released = (*BASIC, "phase.zincite.atom.*.position")
    _, result = rietx.execute(mixture.root, EngineCommand(released=released))
    assert result.selectors["phase.zincite.atom.Zn1.position"] == ()
    assert result.selectors["phase.zincite.atom.O1.position"] == ("phase.zincite.atom.O1.z",)
    assert parameter(result, "phase.zincite.atom.Zn1.z")[0] == 0.0
    z, esd = parameter(result, "phase.zincite.atom.O1.z")
    assert esd is not None
    assert abs(z - 0.3826) < 4 * esd


def test_a_wavelength_is_not_freed_beside_a_cell(rietx: ProtocolSession, mixture: Mixture) -> None:
    _, result = rietx.execute(mixture.root, EngineCommand(released=(*BASIC, "instrument.wavelength")))
    assert "instrument.wavelength" in result.convergence.dropped
    assert parameter(result, "instrument.wavelength")[0] == LAB.lines[0].wavelength_angstrom


def test_a_selector_that_is_not_there_is_told(rietx: ProtocolSession, mixture: Mixture) -> None:
    command = EngineCommand(released=("phase.*.scale", "phase.rutile.cell"))
    _, result = rietx.execute(mixture.root, command)
    assert result.convergence.dropped == ("phase.rutile.cell",)
    assert "selector_unmatched" in {notice.code for notice in result.notices}


def test_a_phase_that_is_not_in_the_data_is_held(rietx: ProtocolSession, mixture: Mixture) -> None:
    root = rietx.prepare(mixture.pattern, LAB, (FLUORITE, ZINCITE, RUTILE), {})
    _, result = rietx.execute(root, EngineCommand(released=BASIC))
    fraction = result.phases[2].weight_fraction
    assert fraction is not None
    assert fraction.value < 0.01
    assert any(name.startswith("phase.rutile.cell") for name in result.convergence.dropped)
    assert abs(parameter(result, "phase.rutile.cell.a")[0] - 4.5937) < 1e-9


def test_neutrons_and_a_capillary_off_centre(rietx: ProtocolSession) -> None:
    truth = values(phase__rutile__scale=1e-2, background__0=100.0, sample__offset_along=0.8, sample__offset_across=-0.5)
    pattern, drawn = simulated(rietx, NEUTRON, (RUTILE,), truth, upper=150.0, step=0.05)
    root = rietx.prepare(pattern, NEUTRON, (RUTILE,), {})
    released = ("phase.*.scale", "background.*", "sample.offset", "phase.*.cell")
    _, result = rietx.execute(root, EngineCommand(released=released))
    for name in ("sample.offset_along", "sample.offset_across", "phase.rutile.cell.a"):
        value, esd = parameter(result, name)
        assert esd is not None
        assert abs(value - parameter(drawn, name)[0]) < 4 * esd
    assert "sample.displacement" not in result.selectors


def test_the_soft_limit_keeps_the_process(mixture: Mixture) -> None:
    session = RietxEngine(session=SessionSettings(command_seconds=60.0, soft_share=1e-3)).start()
    try:
        with pytest.raises(EngineTimeout) as caught:
            session.execute(mixture.root, EngineCommand(released=(*BASIC, "phase.*.uiso", "profile.U", "profile.W")))
        assert caught.value.code == "soft_limit"
        session.execute(mixture.root, EngineCommand(cycles=0, gains=False))
        assert session.starts == 1
    finally:
        session.close()
