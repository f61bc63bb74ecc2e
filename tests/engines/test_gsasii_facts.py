"""Twenty things that GSAS-II says, does or leaves out: each of these would fail if it were believed.

The numbers are those of the measured list of facts. Some are tested beside the fits: 6 and 18 (excluded regions,
empty pattern), 11 (limits), 20 (equal bits) in ``test_gsasii_fit``; 17 (bad data) in ``test_gsasii_failures``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autoxrd.domain.pattern import Pattern
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.gsasii import GsasiiEngine
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult, Snapshot
from autoxrd.errors import EngineDiverged
from autoxrd.io import read_instrument
from tests.engines.samples import FLUORITE, LAB, RUTILE, ZINCITE, parameter, simulated, values

pytestmark = pytest.mark.gsasii

BASIC = ("phase.*.scale", "background.*")
SHAPE = (*BASIC, "sample.displacement", "phase.*.cell", "profile.W")


@dataclasses.dataclass(frozen=True)
class Fitted:
    pattern: Pattern
    root: Snapshot
    snapshot: Snapshot
    result: EngineResult


@pytest.fixture(scope="module")
def fluorite(gsasii: ProtocolSession) -> Fitted:
    truth = values(phase__fluorite__scale=20.0, phase__fluorite__cell__a=5.4648, background__0=200.0, profile__W=0.012)
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), truth)
    root = gsasii.prepare(pattern, LAB, (FLUORITE,), {})
    return Fitted(pattern, root, *gsasii.execute(root, EngineCommand(released=SHAPE, gains=False)))


def chi2(result: EngineResult) -> float:
    return float(np.sum(((result.y_obs - result.y_calc) / result.sigma) ** 2))


def test_fact_01_a_failure_inside_a_fit_is_an_error_and_leaves_no_older_figures(
    gsasii: ProtocolSession, fluorite: Fitted
) -> None:
    broken = Edit("value", {"selector": "phase.fluorite.cell.a", "value": 1e-3})
    with pytest.raises(EngineDiverged):
        gsasii.execute(fluorite.snapshot, EngineCommand(released=SHAPE, edits=(broken,)))
    # the state before is as it was
    _, again = gsasii.execute(fluorite.snapshot, EngineCommand(cycles=0, gains=False))
    np.testing.assert_array_equal(again.y_calc, fluorite.result.y_calc)


def test_fact_02_and_03_what_the_data_do_not_determine_is_named(gsasii: ProtocolSession, fluorite: Fitted) -> None:
    nothing = Edit("value", {"selector": "phase.fluorite.scale", "value": 0.0})
    bare = dataclasses.replace(fluorite.pattern, y=np.full_like(fluorite.pattern.y, 200.0) + np.arange(2334) % 2)
    root = gsasii.prepare(bare, LAB, (FLUORITE,), {})
    released = (*BASIC, "phase.*.cell", "phase.*.uiso")
    _, result = gsasii.execute(root, EngineCommand(released=released, edits=(nothing,), gains=False))
    assert {"phase.fluorite.cell.a", "phase.fluorite.atom.Ca1.uiso"} <= set(result.convergence.dropped)
    assert not {"phase.fluorite.cell.a"} & set(result.covariance_names)


def test_fact_04_no_step_of_a_fit_raises_the_sum_of_squares(gsasii: ProtocolSession, fluorite: Fitted) -> None:
    before, snapshot = np.inf, fluorite.root
    for cycles in (1, 1, 2, 4, 40):
        snapshot, result = gsasii.execute(snapshot, EngineCommand(released=SHAPE, cycles=cycles, gains=False))
        # windows are laid anew between commands: that is worth less than a millionth
        assert chi2(result) <= before * (1.0 + 1e-6)
        before = chi2(result)
    assert result.convergence.converged


def test_fact_05_the_shift_is_the_largest_of_all_and_of_the_last_state(
    gsasii: ProtocolSession, fluorite: Fitted
) -> None:
    shift = fluorite.result.convergence.max_shift_over_esd
    assert shift is not None
    assert 0.0 <= shift < 0.1
    _, short = gsasii.execute(fluorite.root, EngineCommand(released=SHAPE, cycles=1, gains=False))
    assert short.convergence.max_shift_over_esd is not None
    assert short.convergence.max_shift_over_esd > 0.05
    assert not short.convergence.converged


def test_fact_07_every_refined_and_derived_number_has_its_esd(fluorite: Fitted) -> None:
    named = {item.name: item for item in fluorite.result.parameters}
    for name in (*fluorite.result.covariance_names, "phase.fluorite.cell.b", "phase.fluorite.cell.volume"):
        esd = named[name].esd
        assert esd is not None
        assert esd > 0.0
    assert fluorite.result.phases[0].cell["a"].esd == named["phase.fluorite.cell.a"].esd


def test_fact_08_coordinates_are_coordinates(gsasii: ProtocolSession) -> None:
    truth = values(phase__rutile__scale=30.0, background__0=100.0)
    pattern, _ = simulated(gsasii, LAB, (RUTILE,), truth)
    root = gsasii.prepare(pattern, LAB, (RUTILE,), {})
    _, result = gsasii.execute(root, EngineCommand(released=(*BASIC, "phase.*.atom.*.position"), gains=False))
    x = parameter(result, "phase.rutile.atom.O1.x")[0]
    assert x == pytest.approx(0.3048, abs=0.002)
    (oxygen,) = [atom for atom in result.phases[0].structure.atoms if atom.label == "O1"]
    assert oxygen.x == x


def test_fact_09_a_look_at_a_state_does_not_cost_its_esds(gsasii: ProtocolSession, fluorite: Fitted) -> None:
    looked, _ = gsasii.execute(fluorite.snapshot, EngineCommand(cycles=0, gains=False))
    assert looked.payload == fluorite.snapshot.payload


def test_fact_10_the_curve_belongs_to_the_values_beside_it(gsasii: ProtocolSession, fluorite: Fitted) -> None:
    for cycles in (1, 3):
        snapshot, result = gsasii.execute(fluorite.root, EngineCommand(released=SHAPE, cycles=cycles, gains=False))
        _, again = gsasii.execute(snapshot, EngineCommand(cycles=0, gains=False))
        np.testing.assert_array_equal(again.y_calc, result.y_calc)


def test_fact_12_r_factors_are_of_the_data_alone(fluorite: Fitted) -> None:
    result = fluorite.result
    weight = result.sigma**-2.0
    own = np.sqrt(np.sum(weight * (result.y_obs - result.y_calc) ** 2) / np.sum(weight * result.y_obs**2))
    assert result.engine_r["rwp"] == pytest.approx(own, rel=1e-12)


def test_fact_13_an_old_instrument_file_keeps_its_lorentzian_widths(
    gsasii: ProtocolSession, shared_file: Callable[[str], Path]
) -> None:
    instrument = read_instrument(shared_file("sync-nac-11bm/11bm_gsas.prm"))
    assert instrument.profile is not None
    assert instrument.profile.x > 0.0 or instrument.profile.y > 0.0
    truth = values(phase__fluorite__scale=1.0, background__0=10.0)
    _, seen = simulated(gsasii, instrument, (FLUORITE,), truth, lower=5.0, upper=30.0, step=0.01, seed=None)
    for key in ("x", "y"):
        assert parameter(seen, f"profile.{key.upper()}")[0] == pytest.approx(getattr(instrument.profile, key))
    axial = 0.5 * (instrument.profile.s_l + instrument.profile.h_l)
    assert parameter(seen, "profile.S/L")[0] == pytest.approx(max(axial, 0.001))


def test_fact_14_a_width_at_the_floor_is_told(gsasii: ProtocolSession, fluorite: Fitted) -> None:
    flat = tuple(Edit("value", {"selector": f"profile.{key}", "value": 0.0}) for key in "UVW")
    _, seen = gsasii.execute(fluorite.root, EngineCommand(cycles=0, edits=flat, gains=False))
    assert "width_at_floor" in {notice.code for notice in seen.notices}
    assert "width_at_floor" not in {notice.code for notice in fluorite.result.notices}


def test_fact_15_a_minor_phase_is_not_lost_from_a_far_start(gsasii: ProtocolSession) -> None:
    truth = values(phase__fluorite__scale=20.0, phase__zincite__scale=1.0, background__0=200.0)
    pattern, simulation = simulated(gsasii, LAB, (FLUORITE, ZINCITE), truth)
    true = simulation.phases[1].weight_fraction
    assert true is not None
    root = gsasii.prepare(pattern, LAB, (FLUORITE, ZINCITE), {})
    far = (Edit("value", {"selector": "phase.zincite.scale", "value": 1e-6}),)
    _, result = gsasii.execute(root, EngineCommand(released=BASIC, edits=far, gains=False))
    found = result.phases[1].weight_fraction
    assert found is not None
    assert found.esd is not None
    assert abs(found.value - true.value) < 4.0 * found.esd


def test_fact_16_a_profile_match_needs_no_rietveld_fit_before_it(gsasii: ProtocolSession, fluorite: Fitted) -> None:
    first, result = gsasii.execute(fluorite.root, EngineCommand(released=("background.*",), mode="lebail"))
    assert result.convergence.converged
    assert result.phases[0].weight_fraction is None
    second, _ = gsasii.execute(fluorite.root, EngineCommand(released=("background.*",), mode="lebail"))
    assert first.payload == second.payload
    # an intensity for each reflection fits no worse than the structure's
    _, better = gsasii.execute(fluorite.snapshot, EngineCommand(released=("background.*",), mode="lebail"))
    assert chi2(better) <= chi2(fluorite.result) * (1.0 + 1e-6)


def test_fact_19_two_projects_in_one_process_do_not_mix(gsasii: ProtocolSession, fluorite: Fitted) -> None:
    truth = values(phase__rutile__scale=30.0, background__0=100.0)
    pattern, _ = simulated(gsasii, LAB, (RUTILE,), truth)
    alone = GsasiiEngine().start()
    try:
        root = alone.prepare(pattern, LAB, (RUTILE,), {})
        plain, _ = alone.execute(root, EngineCommand(released=BASIC, gains=False))
    finally:
        alone.close()
    other = gsasii.prepare(pattern, LAB, (RUTILE,), {})
    gsasii.execute(fluorite.root, EngineCommand(released=SHAPE, cycles=2, gains=False))
    mixed, _ = gsasii.execute(other, EngineCommand(released=BASIC, gains=False))
    assert mixed.payload == plain.payload


def test_the_project_that_is_written_is_the_state(gsasii: ProtocolSession, fluorite: Fitted) -> None:
    files = gsasii.export(fluorite.snapshot, ("native", "hkl")).files
    assert {"refinement.gpx", "refinement.lst", "snapshot.bin", "reflections.csv", "gsasii-check.json"} <= set(files)
    assert files["snapshot.bin"] == fluorite.snapshot.payload
    check = json.loads(files["gsasii-check.json"])
    assert check["rwp"] == pytest.approx(fluorite.result.engine_r["rwp"], rel=1e-9)
    # computed by GSAS-II from the project alone, with its own windows and nodes
    assert check["rwp_gsasii"] == pytest.approx(check["rwp"], rel=0.01)
    for name in ("refinement.gpx", "refinement.lst"):
        assert b"autoxrd-engine-" not in files[name]
