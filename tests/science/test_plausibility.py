"""Every physical and statistical check fires on its own refined state and is silent on a sound one."""

from __future__ import annotations

from dataclasses import replace

import gemmi
import numpy as np
import pytest

from autoxrd.domain.instrument import Radiation
from autoxrd.domain.state import Convergence, MeasuredValue, ParameterValue
from autoxrd.domain.structure import AtomSite, CrystalStructure, UnitCell
from autoxrd.science.checks.atoms import short_contacts
from autoxrd.science.observe import measure
from autoxrd.science.plausibility import Limits, check_all
from tests.science.simulate import CORUNDUM, FLUORITE, base, context, operations, simulate

MODEL = base(CORUNDUM, FLUORITE, upper=80.0)
QUARTZ = CrystalStructure(
    name="corundum",
    title="quartz",
    space_group="P 32 2 1",
    space_group_number=154,
    operations=operations("P 32 2 1"),
    cell=UnitCell(4.9134, 4.9134, 5.4052, 90, 90, 120),
    atoms=(
        AtomSite("Si1", "Si", "Si", 0.4697, 0.0, 2 / 3, 1.0, 0.006, multiplicity=3),
        AtomSite("O1", "O", "O", 0.4133, 0.2672, 0.7855, 1.0, 0.011, multiplicity=6),
    ),
)
SITES = CrystalStructure(
    name="corundum",
    title="mixed",
    space_group="F m -3 m",
    space_group_number=225,
    operations=operations("F m -3 m"),
    cell=UnitCell(4.2, 4.2, 4.2, 90, 90, 90),
    atoms=(
        AtomSite("Mg1", "Mg", "Mg", 0.0, 0.0, 0.0, 0.6, 0.005, multiplicity=4),
        AtomSite("Fe1", "Fe", "Fe", 0.0, 0.0, 0.0, 0.4, 0.005, multiplicity=4),
        AtomSite("O1", "O", "O", 0.5, 0.5, 0.5, 1.0, 0.005, multiplicity=4),
    ),
)


@pytest.fixture(scope="module")
def sound():
    return simulate(MODEL, MODEL)


def _codes(result, scene=None, severity=None):
    found = check_all(result, scene or context(MODEL))
    return {v.code for v in found if severity in (None, v.severity)}


def _parameters(result, *values):
    return replace(result, parameters=(*result.parameters, *values))


def _structure(result, structure, **initial):
    phase = result.phases[0]
    cell = {
        k: MeasuredValue(value=v)
        for k, v in zip(("a", "b", "c", "alpha", "beta", "gamma"), structure.cell.as_tuple(), strict=True)
    }
    changed = replace(phase, structure=structure, cell=cell)
    return replace(result, phases=(changed, *result.phases[1:])), replace(context(MODEL), initial=initial)


def _atom(structure, label, **changes):
    return replace(structure, atoms=tuple(replace(a, **changes) if a.label == label else a for a in structure.atoms))


def _free(name, value, esd=0.01, **more):
    return ParameterValue(name=name, value=value, esd=esd, released=True, **more)


def test_a_sound_fit_trips_nothing(sound):
    assert _codes(sound) == set()


@pytest.mark.parametrize("structure", [QUARTZ, SITES])
def test_sound_structures_trip_nothing(sound, structure):
    assert _codes(*_structure(sound, structure)) == set()


def test_not_converged(sound):
    assert "not_converged" in _codes(
        replace(sound, convergence=Convergence(converged=False, cycles=40)), severity="hard"
    )


def test_parameter_dropped(sound):
    ended = Convergence(converged=True, cycles=3, dropped=("profile.U",))
    found = check_all(replace(sound, convergence=ended), context(MODEL))
    assert [(v.code, v.subject) for v in found] == [("parameter_dropped", "profile.U")]


@pytest.mark.parametrize(("value", "trips"), [(0.0, True), (1.0, True), (1e-4, False), (0.5, False)])
def test_at_bound(sound, value, trips):
    one = _free("profile.X", value, lower=0.0, upper=1.0)
    assert ("at_bound" in _codes(_parameters(sound, one))) is trips


@pytest.mark.parametrize("esd", [None, float("nan"), float("inf"), 0.0])
def test_esd_missing(sound, esd):
    assert "esd_missing" in _codes(_parameters(sound, _free("phase.corundum.strain", 0.02, esd)), severity="hard")
    held = ParameterValue(name="phase.corundum.strain", value=0.02)
    assert "esd_missing" not in _codes(_parameters(sound, held))


@pytest.mark.parametrize(("factor", "severity"), [(1.07, "hard"), (0.93, "hard"), (1.03, "soft"), (1.005, None)])
def test_cell_far(sound, factor, severity):
    walked = replace(QUARTZ, cell=replace(QUARTZ.cell, c=QUARTZ.cell.c * factor))
    found = [v for v in check_all(*_structure(sound, walked, corundum=QUARTZ)) if v.code == "cell_far"]
    assert [v.severity for v in found] == ([severity] if severity else [])
    if found:
        assert found[0].subject.endswith(".cell.c")
        assert found[0].value == pytest.approx(factor - 1)


@pytest.mark.parametrize(
    "cell", [(-1, 5, 5, 90, 90, 90), (5, 5, 5, 90, 90, 185), (5, 5, 5, 30, 30, 100), (5, float("nan"), 5, 90, 90, 90)]
)
def test_cell_invalid(sound, cell):
    assert "cell_invalid" in _codes(
        *_structure(sound, replace(QUARTZ, cell=UnitCell(*cell)), corundum=QUARTZ), severity="hard"
    )


@pytest.mark.parametrize(
    ("occupancy", "esd", "severity"),
    [(1.2, 0.01, "hard"), (-0.1, 0.01, "hard"), (1.01, 0.02, "soft"), (1.01, None, "hard")],
)
def test_occupancy_range(sound, occupancy, esd, severity):
    result, scene = _structure(sound, _atom(QUARTZ, "O1", occupancy=occupancy))
    if esd:
        result = _parameters(result, _free("phase.corundum.atom.O1.occupancy", occupancy, esd))
    assert "occupancy_range" in _codes(result, scene, severity)


def test_site_sum(sound):
    found = check_all(*_structure(sound, _atom(SITES, "Fe1", occupancy=0.6)))
    assert [(v.code, v.severity) for v in found] == [("site_sum", "hard")]
    assert found[0].value == pytest.approx(1.2)


def test_two_whole_atoms_on_one_site_are_a_sum_and_a_distance(sound):
    both = _atom(_atom(SITES, "Fe1", occupancy=1.0), "Mg1", occupancy=1.0)
    assert _codes(*_structure(sound, both)) == {"site_sum", "distance_short"}


@pytest.mark.parametrize(("value", "severity"), [(0.4, "hard"), (-0.01, "hard"), (-0.001, "soft")])
def test_uiso_range(sound, value, severity):
    result, scene = _structure(sound, _atom(QUARTZ, "O1", u_iso=value))
    result = _parameters(result, _free("phase.corundum.atom.O1.uiso", value, 0.002))
    assert _codes(result, scene, severity) == {"uiso_range"}


def test_a_negative_displacement_parameter_that_nobody_refined_is_the_inputs(sound):
    assert _codes(*_structure(sound, _atom(QUARTZ, "O1", u_iso=-0.01)), severity="hard") == set()


def test_silicon_and_oxygen_at_0_6_angstrom(sound):
    si = QUARTZ.atoms[0]
    near = _atom(QUARTZ, "O1", x=si.x, y=0.6 / 4.9134, z=si.z)
    short = [v for v in check_all(*_structure(sound, near)) if v.code == "distance_short"]
    assert min(v.value for v in short) == pytest.approx(0.6, abs=0.05)
    assert all(v.severity == "hard" for v in short)


def test_distances_use_symmetry_and_the_refined_cell(sound):
    # the oxygen just off the twofold axis meets its own image
    split = _atom(QUARTZ, "O1", x=0.2, y=0.21, z=0.0)
    assert "distance_short" in _codes(*_structure(sound, split))
    half = _atom(split, "O1", occupancy=0.5)
    assert "distance_short" not in _codes(*_structure(sound, half))
    small = replace(SITES, cell=UnitCell(2.2, 2.2, 2.2, 90, 90, 90))
    assert "distance_short" in _codes(*_structure(sound, small))


def test_distances_agree_with_gemmi(sound):
    small = gemmi.SmallStructure()
    small.cell = gemmi.UnitCell(*QUARTZ.cell.as_tuple())
    small.spacegroup_hm = "P 32 2 1"
    small.determine_and_set_spacegroup("h")
    small.setup_cell_images()
    cell = small.cell
    si, o = (gemmi.Fractional(a.x, a.y, a.z) for a in QUARTZ.atoms)
    first, second, distance = short_contacts(QUARTZ.atoms, QUARTZ.operations, QUARTZ.cell, np.full((2, 2), 1.8))
    assert list(zip(first, second, strict=True)) == [(0, 1)]
    assert distance[0] == pytest.approx(
        cell.find_nearest_image(cell.orthogonalize(si), cell.orthogonalize(o)).dist(), abs=1e-6
    )


@pytest.mark.parametrize("value", [-0.05, 1.1])
def test_fraction_range(sound, value):
    phases = (replace(sound.phases[0], weight_fraction=MeasuredValue(value=value)), sound.phases[1])
    found = [v for v in check_all(replace(sound, phases=phases), context(MODEL)) if v.code == "fraction_range"]
    assert {v.subject for v in found} == {"phase.corundum.weight_fraction", "weight_fractions"}


@pytest.mark.parametrize(
    ("u", "v", "w", "x", "trips"),
    [
        (0.1, -0.05, 0.005, 0.0, True),
        (0.1, -0.05, 0.02, 0.0, False),
        (0, 0, 0, 0.05, False),
        (0, 0, 0, 0, True),
        (0, 0, 0.01, -0.1, True),
    ],
)
def test_width_imaginary(sound, u, v, w, x, trips):
    values = [
        ParameterValue(name=f"profile.{n}", value=value) for n, value in zip("UVWXY", (u, v, w, x, 0.0), strict=True)
    ]
    assert ("width_imaginary" in _codes(_parameters(sound, *values), severity="hard")) is trips


def test_width_gone_imaginary_at_high_angle_by_a_phase(sound):
    values = [
        ParameterValue(name=f"profile.{n}", value=v) for n, v in zip("UVWXY", (0, 0, 0.01, 0.02, 0.0), strict=True)
    ]
    bad = ParameterValue(name="phase.fluorite.strain", value=-0.1)
    found = [v for v in check_all(_parameters(sound, *values, bad), context(MODEL)) if v.code == "width_imaginary"]
    assert [v.subject for v in found] == ["phase.fluorite.profile"]


@pytest.mark.parametrize(("factor", "severity"), [(0.05, "hard"), (0.25, "soft"), (1.0, None)])
def test_width_floor(sound, factor, severity):
    table = replace(sound.reflections, fwhm=sound.reflections.fwhm * factor)
    found = [v for v in check_all(replace(sound, reflections=table), context(MODEL)) if v.code == "width_floor"]
    assert [v.severity for v in found] == ([severity] if severity else [])


@pytest.mark.parametrize(("name", "value"), [("size", 8.8), ("size", -0.1), ("strain", 4.0), ("strain_gauss", -0.2)])
def test_size_strain_range(sound, name, value):
    found = [
        v
        for v in check_all(_parameters(sound, _free(f"phase.corundum.{name}", value)), context(MODEL))
        if v.code == "size_strain_range"
    ]
    assert [v.severity for v in found] == ["hard"]
    if name == "size" and value > 0:
        assert found[0].value == pytest.approx(1.0, abs=0.01)  # nm
    assert "size_strain_range" not in _codes(_parameters(sound, _free("phase.corundum.size", 0.2)))


@pytest.mark.parametrize(("r", "severity"), [(0.05, "hard"), (-1.0, "hard"), (0.3, "soft"), (2.5, "soft"), (0.8, None)])
def test_texture_range(sound, r, severity):
    one = _free("phase.corundum.preferred_orientation", r)
    found = [v for v in check_all(_parameters(sound, one), context(MODEL)) if v.code == "texture_range"]
    assert [v.severity for v in found] == ([severity] if severity else [])


def test_background_negative(sound):
    dip = np.where(sound.x > 70, -200.0, sound.background)
    assert "background_negative" in _codes(replace(sound, background=dip), severity="hard")
    noise = np.full_like(sound.background, -1.0)
    assert "background_negative" not in _codes(replace(sound, background=noise))


def test_ghost_phase(sound):
    light = replace(FLUORITE, scale=0.05)
    fit = simulate(base(CORUNDUM, light, upper=80.0), base(CORUNDUM, light, upper=80.0))
    fractions = (MeasuredValue(value=0.7), MeasuredValue(value=0.3))
    ghost = replace(
        fit, phases=tuple(replace(p, weight_fraction=f) for p, f in zip(fit.phases, fractions, strict=True))
    )
    found = [v for v in check_all(ghost, context(MODEL)) if v.code == "ghost_phase"]
    assert [v.subject for v in found] == ["phase.fluorite.weight_fraction"]
    assert found[0].value > 3
    assert "ghost_phase" not in _codes(fit)
    neutrons = replace(context(MODEL), instrument=replace(context(MODEL).instrument, radiation=Radiation.NEUTRON))
    assert "ghost_phase" in _codes(ghost, neutrons)


def test_phase_not_significant(sound):
    weak = tuple(replace_scale(p) if p.name == "phase.fluorite.scale" else p for p in sound.parameters)
    found = check_all(replace(sound, parameters=weak), context(MODEL))
    assert [(v.code, v.severity) for v in found] == [("phase_not_significant", "soft")]


def replace_scale(parameter):
    return parameter.model_copy(update={"value": 0.02, "esd": 0.01})


def test_a_phase_that_only_overlaps_another_one(sound):
    twin = replace(sound, phase_patterns=np.stack((sound.phase_patterns[0], 0.3 * sound.phase_patterns[0])))
    found = [v for v in check_all(twin, context(MODEL)) if v.code == "phase_overlapped"]
    assert [(v.subject, v.severity) for v in found] == [("phase.fluorite", "soft")]


def test_limits_are_data(sound):
    walked = replace(QUARTZ, cell=replace(QUARTZ.cell, c=QUARTZ.cell.c * 1.03))
    result, scene = _structure(sound, walked, corundum=QUARTZ)
    strict = replace(scene, limits=Limits(cell_length_relative=0.01, cell_length_warn=0.005))
    assert "cell_far" in _codes(result, strict, "hard")


def test_violations_reach_the_measures_hard_ones_first(sound):
    ended = Convergence(converged=False, cycles=40)
    one = _free("phase.corundum.preferred_orientation", 0.3)
    seen = measure(_parameters(replace(sound, convergence=ended), one), context(MODEL))
    assert [v.severity for v in seen.violations] == ["hard", "soft"]
    assert len({v.key for v in seen.violations}) == 2
