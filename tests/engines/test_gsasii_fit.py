"""The GSAS-II backend finds the truth of simulated patterns, and says the same thing twice."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from autoxrd.domain.action import Bound
from autoxrd.engines.executor import ProtocolSession, SessionSettings
from autoxrd.engines.gsasii import GsasiiEngine
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult, Snapshot
from autoxrd.errors import EngineTimeout, UserInputError
from tests.engines.conftest import Mixture
from tests.engines.samples import (
    FLUORITE,
    LAB,
    NEUTRON,
    RUTILE,
    WUSTITE,
    ZINCITE,
    flat,
    parameter,
    simulated,
    values,
)

pytestmark = pytest.mark.gsasii

BASIC = ("phase.*.scale", "background.*", "sample.displacement", "phase.*.cell")


@pytest.fixture(scope="module")
def mixed(gsasii: ProtocolSession) -> Mixture:
    """Fluorite and zincite, displaced by 0.1 mm, cells a little off the start values."""
    truth = values(
        phase__fluorite__scale=10.0,
        phase__zincite__scale=30.0,
        phase__fluorite__cell__a=5.4648,
        phase__zincite__cell__a=3.2502,
        phase__zincite__cell__c=5.2070,
        sample__displacement=0.1,
        background__0=200.0,
        background__1=-30.0,
    )
    pattern, result = simulated(gsasii, LAB, (FLUORITE, ZINCITE), truth)
    return Mixture(pattern, result, gsasii.prepare(pattern, LAB, (FLUORITE, ZINCITE), {}))


@pytest.fixture(scope="module")
def fitted(gsasii: ProtocolSession, mixed: Mixture) -> tuple[Snapshot, EngineResult]:
    return gsasii.execute(mixed.root, EngineCommand(released=BASIC))


def test_a_fit_finds_the_truth_within_four_esds(fitted: tuple[Snapshot, EngineResult], mixed: Mixture) -> None:
    _, result = fitted
    assert result.convergence.converged
    assert result.convergence.dropped == ()
    for name in ("phase.fluorite.scale", "phase.zincite.cell.c", "phase.fluorite.cell.a", "sample.displacement"):
        value, esd = parameter(result, name)
        true, _ = parameter(mixed.truth, name)
        assert esd is not None
        assert 0.0 < esd < 0.1 * abs(true)
        assert abs(value - true) < 4.0 * esd
    assert 0.95 < result.engine_r["gof"] < 1.05


def test_esds_are_the_covariance_of_the_same_names(fitted: tuple[Snapshot, EngineResult]) -> None:
    _, result = fitted
    assert len(result.covariance_names) == 2 + 8 + 1 + 3
    for number, name in enumerate(result.covariance_names):
        assert parameter(result, name)[1] == pytest.approx(np.sqrt(result.covariance[number, number]), rel=1e-9)


def test_fractions_are_those_of_the_scales(fitted: tuple[Snapshot, EngineResult], mixed: Mixture) -> None:
    _, result = fitted
    for found, true in zip(result.phases, mixed.truth.phases, strict=True):
        assert found.weight_fraction is not None
        assert true.weight_fraction is not None
        assert found.weight_fraction.esd is not None
        assert abs(found.weight_fraction.value - true.weight_fraction.value) < 4.0 * found.weight_fraction.esd
    assert sum(item.weight_fraction.value for item in result.phases if item.weight_fraction) == pytest.approx(1.0)


def test_a_cell_follows_its_symmetry(fitted: tuple[Snapshot, EngineResult]) -> None:
    _, result = fitted
    assert result.selectors["phase.fluorite.cell"] == ("phase.fluorite.cell.a",)
    assert result.selectors["phase.zincite.cell"] == ("phase.zincite.cell.a", "phase.zincite.cell.c")
    (b,) = [item for item in result.parameters if item.name == "phase.fluorite.cell.b"]
    a, a_esd = parameter(result, "phase.fluorite.cell.a")
    assert (b.value, b.esd, b.derived, b.released) == (a, a_esd, True, False)
    volume, esd = parameter(result, "phase.fluorite.cell.volume")
    assert a_esd is not None
    assert volume == pytest.approx(a**3)
    assert esd == pytest.approx(3 * a**2 * a_esd, rel=1e-4)


def test_the_intensity_of_a_reflection_is_its_area(fitted: tuple[Snapshot, EngineResult]) -> None:
    _, result = fitted
    table = result.reflections
    areas = np.trapezoid(result.phase_patterns, result.x, axis=1)
    for number in range(2):
        # a Lorentzian's tails leave the range and the windows: a few percent
        assert table.intensity[table.phase == number].sum() == pytest.approx(areas[number], rel=0.04)
    first = int(np.argmin(np.where((table.phase == 0) & (table.line == 0), table.position, np.inf)))
    assert sorted(abs(table.hkl[first])) == [1, 1, 1]
    assert table.multiplicity[first] == 8


def test_a_displacement_moves_lines_as_the_contract_says(fitted: tuple[Snapshot, EngineResult]) -> None:
    _, result = fitted
    table = result.reflections
    first = table.line == 0
    bragg = 2.0 * np.degrees(np.arcsin(LAB.lines[0].wavelength_angstrom / (2.0 * table.d_angstrom[first])))
    displacement, _ = parameter(result, "sample.displacement")
    shift = -np.degrees(2.0 * displacement / 200.0 * np.cos(np.radians(bragg / 2.0)))
    np.testing.assert_allclose(table.position[first] - bragg, shift, atol=1e-9)


def test_the_same_command_gives_the_same_bits_in_this_and_in_a_fresh_process(
    gsasii: ProtocolSession, mixed: Mixture, fitted: tuple[Snapshot, EngineResult]
) -> None:
    fresh = GsasiiEngine().start()
    try:
        for session in (gsasii, fresh):
            snapshot, result = session.execute(mixed.root, EngineCommand(released=BASIC))
            assert snapshot.payload == fitted[0].payload
            np.testing.assert_array_equal(result.y_calc, fitted[1].y_calc)
            np.testing.assert_array_equal(result.covariance, fitted[1].covariance)
            assert result.parameters == fitted[1].parameters
            assert result.gains == fitted[1].gains
        assert fresh.prepare(mixed.pattern, LAB, (FLUORITE, ZINCITE), {}).payload == mixed.root.payload
    finally:
        fresh.close()


def test_evaluating_changes_nothing(gsasii: ProtocolSession, fitted: tuple[Snapshot, EngineResult]) -> None:
    snapshot, result = gsasii.execute(fitted[0], EngineCommand(released=BASIC, cycles=0))
    assert snapshot.payload == fitted[0].payload
    np.testing.assert_array_equal(result.y_calc, fitted[1].y_calc)
    assert result.covariance.shape == (0, 0)
    assert result.convergence.cycles == 0


def test_limits_are_honoured_during_the_fit(gsasii: ProtocolSession, mixed: Mixture) -> None:
    bounds = (Bound(selector="phase.fluorite.cell.a", lower=5.4600, upper=5.4640),)
    _, result = gsasii.execute(mixed.root, EngineCommand(released=BASIC, bounds=bounds))
    (cell,) = [item for item in result.parameters if item.name == "phase.fluorite.cell.a"]
    assert (cell.lower, cell.upper) == (5.4600, 5.4640)
    assert cell.value == 5.4640
    assert result.convergence.converged
    # the model that was computed is the one with the limit, not an unclamped one
    _, again = gsasii.execute(mixed.root, EngineCommand(released=BASIC, bounds=bounds, cycles=40, gains=False))
    np.testing.assert_array_equal(again.y_calc, result.y_calc)


def test_coordinates_and_their_limits(gsasii: ProtocolSession) -> None:
    truth = values(phase__rutile__scale=30.0, background__0=100.0, phase__rutile__atom__O1__x=0.31)
    pattern, _ = simulated(gsasii, LAB, (RUTILE,), truth + values(phase__rutile__atom__O1__y=0.31))
    root = gsasii.prepare(pattern, LAB, (RUTILE,), {})
    released = ("phase.*.scale", "background.*", "phase.*.atom.*.position")
    _, result = gsasii.execute(root, EngineCommand(released=released))
    x, esd = parameter(result, "phase.rutile.atom.O1.x")
    assert esd is not None
    assert abs(x - 0.31) < 4 * esd
    assert parameter(result, "phase.rutile.atom.O1.y")[0] == pytest.approx(x, abs=1e-12)
    assert result.selectors["phase.rutile.atom.O1.position"] == ("phase.rutile.atom.O1.x",)
    assert result.selectors["phase.rutile.atom.Ti1.position"] == ()
    bounds = (Bound(selector="phase.rutile.atom.O1.y", lower=0.300, upper=0.308),)
    _, held = gsasii.execute(root, EngineCommand(released=released, bounds=bounds))
    assert parameter(held, "phase.rutile.atom.O1.x")[0] == pytest.approx(0.308, abs=1e-12)


def test_atoms_of_one_site_share_it(gsasii: ProtocolSession) -> None:
    truth = values(phase__wustite__scale=30.0, background__0=100.0, phase__wustite__atom__Mg1__occupancy=0.7)
    pattern, simulation = simulated(gsasii, LAB, (WUSTITE,), truth)
    assert parameter(simulation, "phase.wustite.atom.Fe1.occupancy")[0] == pytest.approx(0.3)
    root = gsasii.prepare(pattern, LAB, (WUSTITE,), {})
    released = ("phase.*.scale", "background.*", "phase.wustite.atom.Mg1.occupancy", "phase.wustite.atom.Mg1.uiso")
    _, result = gsasii.execute(root, EngineCommand(released=released))
    value, esd = parameter(result, "phase.wustite.atom.Mg1.occupancy")
    assert esd is not None
    assert abs(value - 0.7) < 4 * esd
    assert parameter(result, "phase.wustite.atom.Fe1.occupancy") == (pytest.approx(1.0 - value), pytest.approx(esd))
    iron = parameter(result, "phase.wustite.atom.Fe1.uiso")
    assert iron == parameter(result, "phase.wustite.atom.Mg1.uiso")


def test_neutrons_and_the_offset_of_a_capillary(gsasii: ProtocolSession) -> None:
    truth = values(phase__rutile__scale=3e4, background__0=100.0, sample__offset_along=0.3, instrument__zero=0.05)
    pattern, _ = simulated(gsasii, NEUTRON, (RUTILE,), truth, lower=15.0, upper=150.0, step=0.05)
    root = gsasii.prepare(pattern, NEUTRON, (RUTILE,), {})
    released = ("phase.*.scale", "background.*", "instrument.zero", "sample.offset_along")
    _, result = gsasii.execute(root, EngineCommand(released=released))
    for name, true in (("sample.offset_along", 0.3), ("instrument.zero", 0.05)):
        value, esd = parameter(result, name)
        assert esd is not None
        assert abs(value - true) < 4 * esd


def test_a_texture_is_seen_along_its_axis_and_found(gsasii: ProtocolSession) -> None:
    texture = Edit("texture", {"phase": "zincite", "axis": (0.0, 0.0, 1.0)})
    truth = (texture, *values(phase__zincite__scale=30.0, background__0=100.0))
    truth += values(phase__zincite__preferred_orientation=0.8)
    pattern, _ = simulated(gsasii, LAB, (ZINCITE,), truth)
    snapshot = gsasii.prepare(pattern, LAB, (ZINCITE,), {})
    snapshot, plain = gsasii.execute(snapshot, EngineCommand(released=("phase.*.scale", "background.*")))
    stem = "phase.zincite.preferred_orientation"
    axes = {name: gain for name, gain in plain.gains.items() if name.startswith(stem + "@")}
    assert max(axes, key=lambda name: axes[name]) == f"{stem}@0,0,1"
    assert plain.gains[stem] == max(axes.values()) > 100.0
    _, result = gsasii.execute(
        snapshot, EngineCommand(released=("phase.*.scale", "background.*", stem), edits=(texture,))
    )
    value, esd = parameter(result, stem)
    assert esd is not None
    assert abs(value - 0.8) < 4 * esd


def test_gains_promise_what_a_release_then_wins(gsasii: ProtocolSession, mixed: Mixture) -> None:
    snapshot, before = gsasii.execute(mixed.root, EngineCommand(released=BASIC[:3]))
    _, after = gsasii.execute(snapshot, EngineCommand(released=(*BASIC[:3], "phase.fluorite.cell")))
    weight = before.sigma**-2.0
    chi2 = [float(np.sum(weight * (r.y_obs - r.y_calc) ** 2)) for r in (before, after)]
    assert before.gains["phase.fluorite.cell"] == pytest.approx(chi2[0] - chi2[1], rel=0.15)
    assert all(gain < 1.0 for name, gain in after.gains.items() if after.gain_counts[name] == 0)


def test_a_fit_past_its_soft_limit_is_stopped(mixed: Mixture) -> None:
    session = GsasiiEngine(session=SessionSettings(command_seconds=30.0, soft_share=1e-4)).start()
    try:
        session.hello()
        with pytest.raises(EngineTimeout) as caught:
            session.execute(mixed.root, EngineCommand(released=BASIC))
        assert caught.value.code == "soft_limit"
        assert session.starts == 1
    finally:
        session.close()


def test_the_capabilities_are_those_of_the_backend(gsasii: ProtocolSession) -> None:
    told, stated = gsasii.hello(), GsasiiEngine().capabilities()
    assert told["version"] == stated.version
    assert told["selectors"] == list(stated.selectors)
    assert told["edits"] == sorted(stated.edits)
    assert told["export_kinds"] == list(stated.export_kinds)


def test_a_state_of_the_other_engine_is_refused(gsasii: ProtocolSession) -> None:
    with pytest.raises(UserInputError) as caught:
        gsasii.execute(Snapshot("gsasii", b"AUTOXRD-RIETX-STATE 1\n"), EngineCommand())
    assert caught.value.code == "snapshot_unreadable"


def test_an_excluded_region_enters_no_figure(gsasii: ProtocolSession, mixed: Mixture) -> None:
    junk = mixed.pattern.y.copy()
    inside = (mixed.pattern.x >= 40.0) & (mixed.pattern.x <= 42.0)
    junk[inside] *= 6.0
    spoiled = dataclasses.replace(mixed.pattern, y=junk)
    results = []
    for pattern in (mixed.pattern, spoiled):
        root = gsasii.prepare(pattern, LAB, (FLUORITE, ZINCITE), {"excluded_regions": [[40.0, 42.0]]})
        results.append(gsasii.execute(root, EngineCommand(released=BASIC, gains=False))[1])
    assert results[0].engine_r == results[1].engine_r
    assert results[0].parameters == results[1].parameters
    assert not np.any((results[0].x >= 40.0) & (results[0].x <= 42.0))


def test_a_pattern_without_intensity_is_refused(gsasii: ProtocolSession) -> None:
    blank = flat(20, 60, 0.05)
    with pytest.raises(UserInputError) as caught:
        gsasii.prepare(dataclasses.replace(blank, y=0.0 * blank.y), LAB, (FLUORITE,), {})
    assert caught.value.code == "pattern_empty"
