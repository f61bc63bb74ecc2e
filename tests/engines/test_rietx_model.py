"""What the rietx backend does beside fitting: edits, Le Bail, gains, exports, refusals."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import gemmi
import numpy as np
import pytest

from autoxrd.domain.action import Bound
from autoxrd.domain.pattern import AxisKind
from autoxrd.engines.encoding import structure_json
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult, Snapshot
from autoxrd.engines.rietx import RietxEngine
from autoxrd.errors import UserInputError
from autoxrd.primitives import canonical_json
from tests.engines.conftest import Mixture
from tests.engines.samples import (
    FLUORITE,
    LAB,
    RUTILE,
    ZINCITE,
    flat,
    parameter,
    phase,
    simulated,
    site,
    values,
)

BASIC = ("phase.*.scale", "background.*", "sample.displacement", "phase.*.cell")


def chi2(result: EngineResult) -> float:
    return float(np.sum(((result.y_obs - result.y_calc) / result.sigma) ** 2))


def evaluated(session: ProtocolSession, snapshot: Snapshot, *edits: Edit) -> tuple[Snapshot, EngineResult]:
    return session.execute(snapshot, EngineCommand(cycles=0, edits=edits, gains=False))


@pytest.fixture(scope="module")
def fitted(rietx: ProtocolSession, mixture: Mixture) -> tuple[Snapshot, EngineResult]:
    return rietx.execute(mixture.root, EngineCommand(released=BASIC))


def test_the_root_state_is_near_the_data(rietx: ProtocolSession, mixture: Mixture) -> None:
    _, result = evaluated(rietx, mixture.root)
    assert result.engine_r["rwp"] < 0.5
    for name in ("phase.fluorite.scale", "phase.zincite.scale"):
        assert parameter(result, name)[0] == pytest.approx(parameter(mixture.truth, name)[0], rel=0.3)


def test_widths_come_from_the_data_where_the_instrument_has_none(rietx: ProtocolSession, mixture: Mixture) -> None:
    bare = dataclasses.replace(LAB, profile=None)
    root = rietx.prepare(mixture.pattern, bare, (FLUORITE, ZINCITE), {})
    _, result = evaluated(rietx, root)
    strong = mixture.truth.reflections.fwhm[mixture.truth.reflections.position < 60]
    assert np.median(result.reflections.fwhm) == pytest.approx(np.median(strong), rel=0.35)
    assert parameter(result, "phase.fluorite.size")[0] == 0.0
    sized = rietx.prepare(mixture.pattern, bare, (FLUORITE, ZINCITE), {"size_seed": True})
    _, result = evaluated(rietx, sized)
    assert parameter(result, "profile.X")[0] == 0.0
    assert parameter(result, "phase.fluorite.size")[0] > 0.0


def test_more_background_terms_keep_the_curve(rietx: ProtocolSession, fitted: tuple[Snapshot, EngineResult]) -> None:
    snapshot, more = evaluated(rietx, fitted[0], Edit("background", {"terms": 12}))
    np.testing.assert_allclose(more.background, fitted[1].background, rtol=1e-12)
    _, fewer = evaluated(rietx, snapshot, Edit("background", {"terms": 3}))
    assert np.max(np.abs(fewer.background / fitted[1].background - 1)) < 0.05
    assert "background.3" not in {item.name for item in fewer.parameters}


def test_a_range_and_an_exclusion_take_points_away_and_keep_the_curve(
    rietx: ProtocolSession, fitted: tuple[Snapshot, EngineResult]
) -> None:
    before = fitted[1]
    cut = Edit("range", {"lower_deg": 25.0, "upper_deg": 80.0})
    hole = Edit("exclude", {"lower_deg": 40.0, "upper_deg": 45.0})
    _, result = evaluated(rietx, fitted[0], cut, hole)
    assert result.x[0] >= 25.0
    assert result.x[-1] <= 80.0
    assert not np.any((result.x >= 40.0) & (result.x <= 45.0))
    kept = np.isin(before.x, result.x)
    np.testing.assert_allclose(result.background, before.background[kept], rtol=0.02)
    np.testing.assert_allclose(result.phase_patterns, before.phase_patterns[:, kept], rtol=1e-6, atol=0.5)


def test_a_phase_can_be_removed(rietx: ProtocolSession, fitted: tuple[Snapshot, EngineResult]) -> None:
    _, result = evaluated(rietx, fitted[0], Edit("remove_phase", {"phase": "fluorite"}))
    assert [item.name for item in result.phases] == ["zincite"]
    np.testing.assert_array_equal(result.phase_patterns[0], fitted[1].phase_patterns[1])


def _added(name: str, strain: float = 0.0, replaces: str = "", *, form_factors: str = "neutral") -> Edit:
    structure = {"fluorite": FLUORITE, "zincite": ZINCITE, "rutile": RUTILE}[name]
    content = {"structure": canonical_json(structure_json(structure)), "form_factors": form_factors}
    return Edit("add_phase", content | {"strain": strain, "replaces": replaces})


def test_a_phase_can_be_added_where_another_was(rietx: ProtocolSession, fitted: tuple[Snapshot, EngineResult]) -> None:
    gone, without = evaluated(rietx, fitted[0], Edit("remove_phase", {"phase": "zincite"}))
    back, start = evaluated(rietx, gone, _added("zincite"))
    assert [item.name for item in start.phases] == ["fluorite", "zincite"]
    np.testing.assert_array_equal(start.phase_patterns[0], without.phase_patterns[0])
    _, result = rietx.execute(back, EngineCommand(released=BASIC))
    before, after = fitted[1], result
    assert after.engine_r["rwp"] == pytest.approx(before.engine_r["rwp"], rel=1e-3)
    old, esd = parameter(before, "phase.zincite.weight_fraction")
    assert esd is not None
    assert abs(parameter(after, "phase.zincite.weight_fraction")[0] - old) < esd


def test_a_phase_can_take_the_place_of_another(rietx: ProtocolSession, fitted: tuple[Snapshot, EngineResult]) -> None:
    _, result = evaluated(rietx, fitted[0], _added("rutile", strain=0.01, replaces="zincite"))
    assert [item.name for item in result.phases] == ["fluorite", "rutile"]
    assert result.phases[1].cell["a"].value == pytest.approx(1.01 * RUTILE.cell.a)
    assert result.phase_patterns[1].max() > 0


@pytest.mark.parametrize("strength", [0.8, 0.97, 1.04])
def test_texture_starts_from_none(rietx: ProtocolSession, strength: float) -> None:
    axis = Edit("texture", {"phase": "zincite", "axis": (0.0, 0.0, 1.0)})
    truth = values(phase__zincite__scale=1e-3, background__0=100.0)
    truth += (axis, *values(phase__zincite__preferred_orientation=strength))
    pattern, _ = simulated(rietx, LAB, (ZINCITE,), truth)
    root = rietx.prepare(pattern, LAB, (ZINCITE,), {})
    snapshot, start = rietx.execute(root, EngineCommand(released=("phase.*.scale", "background.*")))
    keys = {name: gain for name, gain in start.gains.items() if "@" in name}
    if strength == 0.8:
        # to first order a needle along c is a plate across it
        assert max(keys, key=lambda name: keys[name]) == "phase.zincite.preferred_orientation@0,0,1"
    predicted = start.gains["phase.zincite.preferred_orientation"]
    released = ("phase.*.scale", "background.*", "phase.*.preferred_orientation")
    _, result = rietx.execute(snapshot, EngineCommand(released=released, edits=(axis,)))
    r, esd = parameter(result, "phase.zincite.preferred_orientation")
    assert esd is not None
    assert abs(r - strength) < 4 * esd
    assert predicted == pytest.approx(chi2(start) - chi2(result), rel=0.1)


def test_no_texture_gains_nothing_beyond_noise(rietx: ProtocolSession, mixture: Mixture) -> None:
    _, result = rietx.execute(mixture.root, EngineCommand(released=BASIC))
    keys = [name for name in result.gains if ".preferred_orientation@" in name]
    assert len(keys) == 6
    # the best of six axes, two directions each, of chi2 on one degree: 15 is passed once in a thousand times
    assert max(result.gains[name] for name in keys) < 15.0


DIRECTED = Edit("broadening", {"phase": "fluorite", "effect": "strain", "model": "generalised"})


def test_a_microstrain_that_depends_on_direction_is_found(rietx: ProtocolSession) -> None:
    true = {"phase.fluorite.strain.S400": 1.2e5, "phase.fluorite.strain.S220": 1.8e4}
    start = values(phase__fluorite__scale=1e-2, background__0=100.0)
    known = tuple(Edit("value", {"selector": name, "value": value}) for name, value in true.items())
    pattern, _ = simulated(rietx, LAB, (FLUORITE,), (DIRECTED, *start, *known), upper=140.0)
    root = rietx.prepare(pattern, LAB, (FLUORITE,), {})
    released = ("phase.*.scale", "background.*", "phase.*.strain")
    before, plain = rietx.execute(root, EngineCommand(released=released))
    # an isotropic strain is one of Stephens': the curve stays where it was
    _, carried = rietx.execute(before, EngineCommand(cycles=0, edits=(DIRECTED,), gains=False))
    np.testing.assert_allclose(carried.y_calc, plain.y_calc, rtol=1e-6)
    # the limits of the isotropic one are not those of coefficients, which are thousands
    bounds = (Bound(selector="phase.fluorite.strain", lower=0.0, upper=3.0),)
    after, result = rietx.execute(before, EngineCommand(released=released, edits=(DIRECTED,), bounds=bounds))
    assert set(result.selectors["phase.fluorite.strain"]) == set(true)
    for name, value in true.items():
        found, esd = parameter(result, name)
        assert esd is not None
        assert abs(found - value) < 4.0 * esd
    won = chi2(plain) - chi2(result)
    assert plain.gains["phase.fluorite.strain@generalised"] == pytest.approx(won, rel=0.35)
    assert result.gains["phase.fluorite.strain@generalised"] < 1e-3 * won
    # along [100] the strain is widest: d^4 S400 h^4 = a^4 S400
    widest, esd = parameter(result, "phase.fluorite.strain")
    s400, _ = parameter(result, "phase.fluorite.strain.S400")
    assert esd is None
    assert widest == pytest.approx(np.degrees(1e-6) * FLUORITE.cell.a**2 * np.sqrt(s400), rel=1e-3)
    back = Edit("broadening", {"phase": "fluorite", "effect": "strain", "model": "isotropic"})
    _, again = rietx.execute(after, EngineCommand(released=released, edits=(back,), gains=False))
    assert chi2(again) == pytest.approx(chi2(plain), rel=1e-3)


@pytest.mark.parametrize("strain", [0.0, 0.3])
def test_a_strain_without_direction_gains_nothing_by_one(rietx: ProtocolSession, strain: float) -> None:
    truth = values(phase__zincite__scale=1e-2, background__0=100.0, phase__zincite__strain=strain)
    pattern, _ = simulated(rietx, LAB, (ZINCITE,), truth, upper=120.0)
    root = rietx.prepare(pattern, LAB, (ZINCITE,), {})
    released = ("phase.*.scale", "background.*", "phase.*.strain", "phase.*.size")
    _, result = rietx.execute(root, EngineCommand(released=released))
    # chi2 on three degrees: 20 is passed once in six thousand times
    assert result.gains["phase.zincite.strain@generalised"] < 20.0
    assert result.gain_counts["phase.zincite.strain@generalised"] == 3


def test_a_size_has_no_direction_here(rietx: ProtocolSession, mixture: Mixture) -> None:
    edit = Edit("broadening", {"phase": "zincite", "effect": "size", "model": "uniaxial", "axis": (0.0, 0.0, 1.0)})
    with pytest.raises(UserInputError) as caught:
        rietx.execute(mixture.root, EngineCommand(edits=(edit,)))
    assert caught.value.code == "edit_invalid"


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (Edit("rotate", {}), "edit_unknown"),
        (Edit("background", {"terms": 0}), "edit_invalid"),
        (Edit("background", {}), "edit_invalid"),
        (Edit("range", {"lower_deg": 50.0, "upper_deg": 40.0}), "edit_invalid"),
        (Edit("range", {"lower_deg": 200.0, "upper_deg": 210.0}), "edit_invalid"),
        (Edit("remove_phase", {"phase": "quartz"}), "edit_invalid"),
        (_added("zincite"), "edit_invalid"),
        (_added("rutile", replaces="quartz"), "edit_invalid"),
        (Edit("add_phase", {"structure": "{}"}), "edit_invalid"),
        (Edit("value", {"selector": "phase.fluorite.cell.b", "value": 5.0}), "edit_invalid"),
        (Edit("value", {"selector": "phase.quartz.scale", "value": 5.0}), "edit_invalid"),
        (Edit("texture", {"phase": "zincite", "axis": (0.0, 0.0, 0.0)}), "edit_invalid"),
    ],
)
def test_an_edit_that_cannot_be_made_is_refused(
    rietx: ProtocolSession, mixture: Mixture, edit: Edit, code: str
) -> None:
    with pytest.raises(UserInputError) as caught:
        evaluated(rietx, mixture.root, edit)
    assert caught.value.code == code


def test_le_bail_reaches_the_noise_whatever_the_structure(rietx: ProtocolSession, mixture: Mixture) -> None:
    # oxygen in the wrong place: Rietveld cannot fit, Le Bail does not care
    wrong = dataclasses.replace(ZINCITE, atoms=(ZINCITE.atoms[0], dataclasses.replace(ZINCITE.atoms[1], z=0.25)))
    root = rietx.prepare(mixture.pattern, LAB, (FLUORITE, wrong), {})
    good, rietveld = rietx.execute(root, EngineCommand(released=BASIC, gains=False))
    snapshot, free = rietx.execute(good, EngineCommand(released=("background.*",), mode="lebail", gains=False))
    assert rietveld.engine_r["gof"] > 1.08
    assert free.engine_r["gof"] < 1.04
    # what it lists as |F|^2 is measured, so that it has an esd
    assert free.reflections.f2_esd is not None
    assert np.all((free.reflections.f2_calc > 0.0) == (free.reflections.f2_esd > 0.0))
    assert all(item.weight_fraction is None for item in free.phases)
    _, back = rietx.execute(snapshot, EngineCommand(released=BASIC, mode="lebail", cycles=0, gains=False))
    assert back.engine_r["rwp"] == pytest.approx(free.engine_r["rwp"], rel=1e-3)


def test_a_gain_is_what_a_release_brings(rietx: ProtocolSession, mixture: Mixture) -> None:
    first = ("phase.*.scale", "background.*", "phase.*.cell", "instrument.zero")
    snapshot, before = rietx.execute(mixture.root, EngineCommand(released=first))
    for name in ("sample.displacement", "phase.zincite.uiso"):
        _, after = rietx.execute(snapshot, EngineCommand(released=(*first, name), gains=False))
        assert before.gains[name] == pytest.approx(chi2(before) - chi2(after), rel=0.1, abs=0.05)
    assert before.gain_counts["phase.zincite.uiso"] == 2
    assert before.gain_counts["phase.zincite.cell"] == 0
    assert before.gains["phase.zincite.cell"] < 1e-2
    assert set(before.gains) == set(before.gain_counts)
    assert all(gain >= 0.0 for gain in before.gains.values())


def test_a_width_at_its_floor_gains_only_where_lines_are_too_narrow(rietx: ProtocolSession, mixture: Mixture) -> None:
    assert LAB.profile is not None
    gains = {}
    for x in (0.0, 0.2):
        instrument = dataclasses.replace(LAB, profile=dataclasses.replace(LAB.profile, x=x))
        root = rietx.prepare(mixture.pattern, instrument, (FLUORITE, ZINCITE), {})
        _, result = rietx.execute(root, EngineCommand(released=BASIC))
        gains[x] = result.gains["phase.zincite.size"]
    assert gains[0.0] > 100.0
    assert gains[0.2] == 0.0


def test_gains_can_be_left_out(rietx: ProtocolSession, mixture: Mixture) -> None:
    _, result = evaluated(rietx, mixture.root)
    assert result.gains == {}


def test_exports_can_be_read_again(
    rietx: ProtocolSession, fitted: tuple[Snapshot, EngineResult], tmp_path: Path
) -> None:
    files = rietx.export(fitted[0], RietxEngine().capabilities().export_kinds).files
    assert {"fluorite.cif", "zincite.cif", "refinement.cif", "reflections.csv", "refinement.inp"} <= set(files)
    block = gemmi.cif.read_string(files["fluorite.cif"].decode()).sole_block()
    a, esd = parameter(fitted[1], "phase.fluorite.cell.a")
    assert gemmi.cif.as_number(block.find_value("_cell_length_a")) == pytest.approx(a, abs=1e-4)
    assert "(" in block.find_value("_cell_length_a")
    assert esd is not None
    whole = gemmi.cif.read_string(files["refinement.cif"].decode())
    assert len(whole) == 2
    rwp = gemmi.cif.as_number(whole[0].find_value("_pd_proc_ls_prof_wR_factor"))
    assert rwp == pytest.approx(fitted[1].engine_r["rwp"], rel=1e-6)
    assert len(whole[0].find_loop("_pd_meas_2theta_scan")) + len(whole[0].find_loop("_pd_proc_2theta_corrected")) > 0
    assert files["snapshot.bin"] == fitted[0].payload


def test_a_root_has_no_refinement_cif(rietx: ProtocolSession, mixture: Mixture) -> None:
    assert "fluorite.cif" in rietx.export(mixture.root, ("cif",)).files
    with pytest.raises(UserInputError):
        rietx.export(mixture.root, ("pdcif",))
    with pytest.raises(UserInputError):
        rietx.export(mixture.root, ("jpeg",))


def test_the_capabilities_are_those_of_the_backend(rietx: ProtocolSession) -> None:
    told, stated = rietx.hello(), RietxEngine().capabilities()
    assert told["version"] == stated.version
    assert told["selectors"] == list(stated.selectors)
    assert told["edits"] == sorted(stated.edits)
    assert told["export_kinds"] == list(stated.export_kinds)


def test_ionic_form_factors_fall_back_where_there_are_none(rietx: ProtocolSession, mixture: Mixture) -> None:
    odd = dataclasses.replace(FLUORITE, atoms=(site("Ca1", "Ca5+", 0, 0, 0), FLUORITE.atoms[1]))
    root = rietx.prepare(mixture.pattern, LAB, (odd,), {"form_factors": "as_given"})
    _, given = evaluated(rietx, root)
    assert "species_neutral" in {notice.code for notice in given.notices}
    _, neutral = evaluated(rietx, rietx.prepare(mixture.pattern, LAB, (FLUORITE,), {}))
    assert not np.array_equal(given.reflections.f2_calc, neutral.reflections.f2_calc)


def test_an_element_at_its_edge_keeps_the_dispersion_of_the_others(rietx: ProtocolSession) -> None:
    # holmium has an edge between the two lines of copper
    oxide = phase(
        "oxide", "P m -3 m", (4.0, 4.0, 4.0, 90, 90, 90), [site("Ho1", "Ho", 0, 0, 0), site("Fe1", "Fe", 0.5, 0.5, 0.5)]
    )
    blank = flat(20, 80, 0.05)
    _, seen = evaluated(rietx, rietx.prepare(blank, LAB, (oxide,), {}))
    assert "dispersion_near_edge" in {notice.code for notice in seen.notices}
    _, without = evaluated(rietx, rietx.prepare(blank, LAB, (oxide,), {"dispersion": "none"}))
    assert not np.allclose(seen.reflections.f2_calc, without.reflections.f2_calc, rtol=1e-3)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"axis": AxisKind.TOF}, "axis_unsupported"),
        ({"settings": {"two_theta_limits": (10.0, 12.0)}}, "range_empty"),
        ({"settings": {"two_theta_limits": (80.0, 30.0)}}, "range_reversed"),
        ({"settings": {"colour": "red"}}, "setting_unknown"),
        ({"settings": {"form_factors": "ionic"}}, "setting_invalid"),
        ({"settings": {"background_terms": 99}}, "setting_invalid"),
        ({"structures": ()}, "no_phase"),
        ({"instrument": dataclasses.replace(LAB, lines=())}, "wavelength_missing"),
        (
            {"structures": (phase("odd", "P 1", (5, 5, 5, 90, 90, 90), [site("Q1", "Qq", 0, 0, 0)]),)},
            "element_unknown",
        ),
    ],
)
def test_input_that_cannot_be_refined_is_refused(rietx: ProtocolSession, change: dict[str, object], code: str) -> None:
    pattern = dataclasses.replace(flat(20, 60, 0.05), axis=change.get("axis", AxisKind.TWO_THETA))  # type: ignore[arg-type]
    with pytest.raises(UserInputError) as caught:
        rietx.prepare(
            pattern,
            change.get("instrument", LAB),  # type: ignore[arg-type]
            change.get("structures", (RUTILE,)),  # type: ignore[arg-type]
            change.get("settings", {}),  # type: ignore[arg-type]
        )
    assert caught.value.code == code
