"""Widths, textures and displacements that depend on direction, and restrained distances, find a simulated truth."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from autoxrd.domain.action import Bound
from autoxrd.domain.structure import CrystalStructure
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult
from autoxrd.errors import UserInputError
from tests.engines.samples import FLUORITE, LAB, NEUTRON, RUTILE, ZINCITE, parameter, simulated, values

pytestmark = pytest.mark.gsasii

SEEN = 100.0
"""A fall of chi2 that one or two further parameters never have by chance."""
BASIC = ("phase.*.scale", "background.*")
ALONG_C = {"phase": "zincite", "model": "uniaxial", "axis": (0.0, 0.0, 1.0)}


def chi2(result: EngineResult) -> float:
    return float(np.sum(((result.y_obs - result.y_calc) / result.sigma) ** 2))


def assert_found(result: EngineResult, truth: dict[str, float]) -> None:
    for name, true in truth.items():
        value, esd = parameter(result, name)
        assert esd is not None, name
        assert esd > 0.0, name
        assert abs(value - true) < 4.0 * esd, name


def named(truth: dict[str, float]) -> tuple[Edit, ...]:
    return values(**{name.replace(".", "__"): value for name, value in truth.items()})


@pytest.mark.parametrize(
    ("effect", "truth"),
    [
        ("size", {"phase.zincite.size": 0.12, "phase.zincite.size.axial": 0.03}),
        ("strain", {"phase.zincite.strain": 0.1, "phase.zincite.strain.axial": 0.3}),
    ],
)
def test_plates_and_needles_are_broader_along_an_axis(
    gsasii: ProtocolSession, effect: str, truth: dict[str, float]
) -> None:
    model = Edit("broadening", {**ALONG_C, "effect": effect})
    start = values(phase__zincite__scale=60.0, background__0=100.0)
    pattern, _ = simulated(gsasii, LAB, (ZINCITE,), (model, *start, *named(truth)))
    root = gsasii.prepare(pattern, LAB, (ZINCITE,), {})
    released = (*BASIC, f"phase.*.{effect}")
    before, plain = gsasii.execute(root, EngineCommand(released=released, gains=False))
    _, result = gsasii.execute(before, EngineCommand(released=released, edits=(model,), gains=False))
    assert result.selectors[f"phase.zincite.{effect}"] == tuple(truth)
    assert_found(result, truth)
    assert chi2(plain) - chi2(result) > SEEN
    assert 0.9 < result.engine_r["gof"] < 1.1


def test_a_microstrain_after_stephens_is_found(gsasii: ProtocolSession) -> None:
    truth = {"phase.fluorite.strain.S400": 1.2e5, "phase.fluorite.strain.S220": 1.8e4}
    model = Edit("broadening", {"phase": "fluorite", "effect": "strain", "model": "generalised"})
    start = values(phase__fluorite__scale=60.0, background__0=100.0)
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), (model, *start, *named(truth)), upper=140.0)
    root = gsasii.prepare(pattern, LAB, (FLUORITE,), {})
    released = (*BASIC, "phase.*.strain")
    before, plain = gsasii.execute(root, EngineCommand(released=released))
    # an isotropic strain is one of Stephens': the curve stays where it was
    _, carried = gsasii.execute(before, EngineCommand(cycles=0, edits=(model,), gains=False))
    np.testing.assert_allclose(carried.y_calc, plain.y_calc, rtol=1e-6)
    bounds = (Bound(selector="phase.fluorite.strain", lower=0.0, upper=3.0),)
    after, result = gsasii.execute(before, EngineCommand(released=released, edits=(model,), bounds=bounds))
    assert_found(result, truth)
    won = chi2(plain) - chi2(result)
    assert won > SEEN
    assert plain.gains["phase.fluorite.strain@generalised"] == pytest.approx(won, rel=0.35)
    assert result.gains["phase.fluorite.strain@generalised"] < 1e-3 * won
    back = Edit("broadening", {"phase": "fluorite", "effect": "strain", "model": "isotropic"})
    _, again = gsasii.execute(after, EngineCommand(released=released, edits=(back,), gains=False))
    assert chi2(again) == pytest.approx(chi2(plain), rel=1e-3)


def test_microstrain_is_above_nothing_in_every_direction(gsasii: ProtocolSession) -> None:
    truth = {"phase.fluorite.strain.S400": 1.2e5, "phase.fluorite.strain.S220": -2.4e5}
    model = Edit("broadening", {"phase": "fluorite", "effect": "strain", "model": "generalised"})
    start = values(phase__fluorite__scale=60.0, background__0=100.0)
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), (model, *start, *named(truth)), upper=140.0)
    root = gsasii.prepare(pattern, LAB, (FLUORITE,), {})
    command = EngineCommand(released=(*BASIC, "phase.*.strain"), edits=(model,), gains=False)
    _, result = gsasii.execute(root, command)
    s400, _ = parameter(result, "phase.fluorite.strain.S400")
    s220, _ = parameter(result, "phase.fluorite.strain.S220")
    hkl = result.reflections.hkl.astype(float) ** 2
    square = s400 * np.sum(hkl**2, axis=1) + s220 * (
        hkl[:, 0] * hkl[:, 1] + hkl[:, 0] * hkl[:, 2] + hkl[:, 1] * hkl[:, 2]
    )
    assert np.all(square > 0.0)


@pytest.mark.parametrize("phase", [FLUORITE, ZINCITE, RUTILE], ids=lambda phase: phase.name)
def test_coefficients_mean_the_same_to_both_engines(
    gsasii: ProtocolSession, rietx: ProtocolSession, phase: CrystalStructure
) -> None:
    model = Edit("broadening", {"phase": phase.name, "effect": "strain", "model": "generalised"})
    stem, widths = f"phase.{phase.name}.strain", {}
    for session in (gsasii, rietx):
        pattern, _ = simulated(session, LAB, (phase,), values(background__0=100.0))
        root = session.prepare(pattern, LAB, (phase,), {})
        snapshot, result = session.execute(root, EngineCommand(cycles=0, edits=(model,), gains=False))
        names = [p.name.removeprefix(stem) for p in result.parameters if p.name.startswith(f"{stem}.S")]
        # one after the other, so that each is seen to mean the same
        for name in sorted(names):
            edits = named(
                {stem + other: 1e5 if other == name else 1e4 for other in names if "4" in other or other == name}
            )
            _, result = session.execute(snapshot, EngineCommand(cycles=0, edits=edits, gains=False))
            widths.setdefault(name, []).append(parameter(result, stem)[0])
    assert len(widths) == {"fluorite": 2, "zincite": 3, "rutile": 4}[phase.name]
    for name, (first, second) in widths.items():
        assert first == pytest.approx(second, rel=1e-6), name


def test_a_texture_in_harmonics_is_found(gsasii: ProtocolSession) -> None:
    stem = "phase.zincite.preferred_orientation"
    truth = {f"{stem}.C_2_0": 0.8, f"{stem}.C_4_0": 0.3}
    model = Edit("harmonics", {"phase": "zincite", "order": 4})
    start = values(phase__zincite__scale=60.0, background__0=100.0)
    pattern, _ = simulated(gsasii, LAB, (ZINCITE,), (model, *start, *named(truth)))
    root = gsasii.prepare(pattern, LAB, (ZINCITE,), {})
    before, plain = gsasii.execute(root, EngineCommand(released=BASIC, gains=False))
    released = (*BASIC, stem)
    after, result = gsasii.execute(before, EngineCommand(released=released, edits=(model,), gains=False))
    assert_found(result, truth)
    assert chi2(result) < 0.5 * chi2(plain)
    index, _ = parameter(result, "phase.zincite.texture_index")
    assert index == pytest.approx(1.0 + 0.8**2 / 5 + 0.3**2 / 9, abs=0.03)
    # the project says the same to GSAS-II
    assert gsasii.export(after, ("native",)).notices == ()
    with pytest.raises(UserInputError) as caught:
        gsasii.execute(before, EngineCommand(edits=(Edit("harmonics", {"phase": "zincite", "order": 3}),)))
    assert caught.value.code == "edit_invalid"


def test_anisotropic_displacements_are_found_as_the_site_allows_them(gsasii: ProtocolSession) -> None:
    stem = "phase.rutile.atom"
    truth = {f"{stem}.Ti1.u11": 0.006, f"{stem}.Ti1.u33": 0.014, f"{stem}.O1.u11": 0.012, f"{stem}.O1.u12": 0.004}
    model = Edit("anisotropic", {"phase": "rutile"})
    start = values(phase__rutile__scale=3e5, background__0=100.0)
    true = (model, *start, *named(truth))
    pattern, _ = simulated(gsasii, NEUTRON, (RUTILE,), true, lower=15.0, upper=150.0, step=0.05)
    root = gsasii.prepare(pattern, NEUTRON, (RUTILE,), {})
    released = (*BASIC, "phase.rutile.uiso")
    before, plain = gsasii.execute(root, EngineCommand(released=released, gains=False))
    _, carried = gsasii.execute(before, EngineCommand(cycles=0, edits=(model,), gains=False))
    np.testing.assert_allclose(carried.y_calc, plain.y_calc, rtol=1e-6)
    after, result = gsasii.execute(before, EngineCommand(released=released, edits=(model,), gains=False))
    # both sites lie on mirrors along the diagonal
    assert set(result.selectors["phase.rutile.uiso"]) == {
        f"{stem}.{label}.{key}" for label in ("Ti1", "O1") for key in ("u11", "u33", "u12")
    }
    assert_found(result, truth)
    assert chi2(result) < chi2(plain)
    oxygen = next(atom for atom in result.phases[0].structure.atoms if atom.label == "O1")
    assert oxygen.u_aniso is not None
    assert oxygen.u_aniso[0] == oxygen.u_aniso[1] == parameter(result, f"{stem}.O1.u11")[0]
    assert oxygen.u_iso == pytest.approx(np.mean(oxygen.u_aniso[:3]))
    assert gsasii.export(after, ("native",)).notices == ()
    single = Edit("anisotropic", {"phase": "rutile", "model": "isotropic"})
    _, again = gsasii.execute(after, EngineCommand(released=released, edits=(single,), gains=False))
    assert chi2(again) == pytest.approx(chi2(plain), rel=1e-4)


def test_a_tensor_of_no_displacement_is_told(gsasii: ProtocolSession) -> None:
    model = Edit("anisotropic", {"phase": "rutile", "atoms": ["Ti1"]})
    start = values(phase__rutile__scale=3e4, background__0=100.0, phase__rutile__atom__Ti1__u33=-0.002)
    _, seen = simulated(gsasii, LAB, (RUTILE,), (model, *start))
    assert "adp_not_positive" in {notice.code for notice in seen.notices}


def test_a_restrained_distance_holds_atoms_that_the_data_do_not_see(gsasii: ProtocolSession) -> None:
    truth = values(phase__rutile__scale=0.3, background__0=1000.0)
    pattern, _ = simulated(gsasii, LAB, (RUTILE,), truth)
    moved = dataclasses.replace(RUTILE.atoms[1], x=0.33, y=0.33)
    far = dataclasses.replace(RUTILE, atoms=(RUTILE.atoms[0], moved))
    root = gsasii.prepare(pattern, LAB, (far,), {})
    restraint = Edit(
        "restrain_distances",
        {"phase": "rutile", "from": "Ti1", "to": "O1", "distance_angstrom": 1.95, "esd_angstrom": 0.01, "within": 1.2},
    )
    released = (*BASIC, "phase.rutile.atom.O1.position")
    _, free = gsasii.execute(root, EngineCommand(released=released, gains=False))
    _, held = gsasii.execute(root, EngineCommand(released=released, edits=(restraint,), gains=False))
    loose, tight = (parameter(result, "phase.rutile.atom.O1.x") for result in (free, held))
    assert loose[1] is not None
    assert tight[1] is not None
    assert tight[1] < 0.5 * loose[1]
    # four bonds at 1.944 and two at 1.988 angstrom: their mean is kept
    assert tight[0] == pytest.approx(0.3035, abs=0.003)
    # R factors are of the data alone
    weight = held.sigma**-2.0
    own = np.sqrt(np.sum(weight * (held.y_obs - held.y_calc) ** 2) / np.sum(weight * held.y_obs**2))
    assert held.engine_r["rwp"] == pytest.approx(own, rel=1e-12)
    nothing = Edit("restrain_distances", {**restraint.values, "distance_angstrom": 0.5})
    with pytest.raises(UserInputError) as caught:
        gsasii.execute(root, EngineCommand(edits=(nothing,)))
    assert caught.value.code == "edit_invalid"
