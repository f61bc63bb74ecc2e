"""Edits of GSAS-II's model: shared displacement parameters, effects that are not there, phases that come and go."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from autoxrd.engines.encoding import structure_json
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult
from autoxrd.errors import UserInputError
from tests.engines.samples import FLUORITE, LAB, RUTILE, ZINCITE, parameter, simulated, values

pytestmark = pytest.mark.gsasii

BASIC = ("phase.*.scale", "background.*")


def chi2(result: EngineResult) -> float:
    return float(np.sum(((result.y_obs - result.y_calc) / result.sigma) ** 2))


def test_the_atoms_of_a_phase_can_share_one_displacement_parameter(gsasii: ProtocolSession) -> None:
    truth = values(
        phase__rutile__scale=30.0,
        background__0=100.0,
        phase__rutile__atom__Ti1__uiso=0.016,
        phase__rutile__atom__O1__uiso=0.016,
    )
    pattern, _ = simulated(gsasii, LAB, (RUTILE,), truth)
    root = gsasii.prepare(pattern, LAB, (RUTILE,), {})
    snapshot, plain = gsasii.execute(root, EngineCommand(released=BASIC))
    equal = Edit("equal_uiso", {"phases": ["rutile"]})
    command = EngineCommand(released=(*BASIC, "phase.rutile.uiso"), edits=(equal,))
    _, result = gsasii.execute(snapshot, command)
    assert result.selectors["phase.rutile.uiso"] == ("phase.rutile.atom.Ti1.uiso",)
    value, esd = parameter(result, "phase.rutile.atom.Ti1.uiso")
    assert esd is not None
    assert abs(value - 0.016) < 4.0 * esd
    # both started at 0.008: they stay equal
    assert parameter(result, "phase.rutile.atom.O1.uiso") == (pytest.approx(value), pytest.approx(esd))
    promised = plain.gains["phase.rutile.uiso@equal"]
    assert plain.gain_counts["phase.rutile.uiso@equal"] == 1
    # the step is a long one: the promise is that of the tangent
    assert promised == pytest.approx(chi2(plain) - chi2(result), rel=0.5)
    assert promised <= plain.gains["phase.rutile.uiso"] * (1.0 + 1e-9)
    with pytest.raises(UserInputError) as caught:
        gsasii.execute(root, EngineCommand(edits=(Edit("equal_uiso", {"phases": ["anatase"]}),)))
    assert caught.value.code == "edit_invalid"


def test_a_width_that_the_data_do_not_show_is_held_at_zero_and_told(gsasii: ProtocolSession) -> None:
    truth = values(phase__fluorite__scale=20.0, background__0=200.0, profile__Y=0.0)
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), truth)
    root = gsasii.prepare(pattern, LAB, (FLUORITE,), {})
    start = values(phase__fluorite__strain=0.05)
    # the instrument's Y is larger than the truth: no strain is left to be seen
    command = EngineCommand(released=(*BASIC, "phase.*.strain", "profile.W"), edits=start)
    _, result = gsasii.execute(root, command)
    assert parameter(result, "phase.fluorite.strain") == (0.0, None)
    assert "phase.fluorite.strain" not in result.covariance_names
    assert "effect_absent" in {notice.code for notice in result.notices}
    assert result.convergence.converged
    assert result.convergence.dropped == ()
    assert result.gains["phase.fluorite.strain"] == 0.0


def test_a_phase_comes_in_at_the_scale_that_the_rest_asks_for(gsasii: ProtocolSession) -> None:
    truth = values(phase__fluorite__scale=20.0, phase__zincite__scale=6.0, background__0=200.0)
    pattern, simulation = simulated(gsasii, LAB, (FLUORITE, ZINCITE), truth)
    root = gsasii.prepare(pattern, LAB, (FLUORITE,), {})
    snapshot, alone = gsasii.execute(root, EngineCommand(released=BASIC, gains=False))
    addition = Edit(
        "add_phase",
        {
            "structure": json.dumps(structure_json(ZINCITE)),
            "form_factors": "neutral",
            "strain": 0.0005,
            "replaces": "",
        },
    )
    _, seen = gsasii.execute(snapshot, EngineCommand(cycles=0, edits=(addition,), gains=False))
    assert parameter(seen, "phase.zincite.cell.a")[0] == pytest.approx(3.2494 * 1.0005)
    assert parameter(seen, "phase.zincite.scale")[0] == pytest.approx(6.0, rel=0.3)
    both, result = gsasii.execute(
        snapshot, EngineCommand(released=(*BASIC, "phase.zincite.cell"), edits=(addition,), gains=False)
    )
    assert chi2(result) < 0.5 * chi2(alone)
    for found, true in zip(result.phases, simulation.phases, strict=True):
        assert found.weight_fraction is not None
        assert true.weight_fraction is not None
        assert found.weight_fraction.esd is not None
        assert abs(found.weight_fraction.value - true.weight_fraction.value) < 4.0 * found.weight_fraction.esd
    exchange = Edit("add_phase", {**addition.values, "structure": json.dumps(structure_json(RUTILE))})
    exchange = Edit("add_phase", {**exchange.values, "replaces": "zincite"})
    _, other = gsasii.execute(both, EngineCommand(released=BASIC, edits=(exchange,), gains=False))
    assert [phase.name for phase in other.phases] == ["fluorite", "rutile"]
    _, again = gsasii.execute(
        both, EngineCommand(released=BASIC, edits=(Edit("remove_phase", {"phase": "zincite"}),), gains=False)
    )
    assert chi2(again) == pytest.approx(chi2(alone), rel=1e-6)
    with pytest.raises(UserInputError) as caught:
        gsasii.execute(both, EngineCommand(edits=(addition,)))
    assert caught.value.code == "edit_invalid"


def test_where_gsasii_computes_another_curve_the_export_says_so(gsasii: ProtocolSession) -> None:
    truth = values(phase__fluorite__scale=20.0, background__0=200.0)
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), truth)
    wide = values(**{"profile__S/L": 0.03, "profile__H/L": 0.03})
    root = gsasii.prepare(pattern, LAB, (FLUORITE,), {})
    snapshot, _ = gsasii.execute(root, EngineCommand(released=BASIC, edits=wide[:1], gains=False))
    exported = gsasii.export(snapshot, ("native",))
    assert [notice.code for notice in exported.notices] == ["gsasii_r_differs"]
    check = json.loads(exported.files["gsasii-check.json"])
    assert abs(check["rwp_gsasii"] / check["rwp"] - 1.0) > 0.01


def test_a_profile_match_finds_shape_and_cell_from_lines_that_are_too_narrow(gsasii: ProtocolSession) -> None:
    truth = values(
        phase__rutile__scale=30.0, background__0=100.0, phase__rutile__cell__a=4.5950, phase__rutile__cell__c=2.9580
    )
    pattern, _ = simulated(gsasii, LAB, (RUTILE,), truth)
    root = gsasii.prepare(pattern, LAB, (RUTILE,), {})
    narrow = values(profile__W=0.002, profile__U=0.0, profile__V=0.0, profile__X=0.01, profile__Y=0.0)
    released = ("background.*", "phase.*.cell", "profile.W", "profile.X", "profile.Y")
    command = EngineCommand(released=released, mode="lebail", edits=narrow, cycles=60, gains=False)
    snapshot, result = gsasii.execute(root, command)
    assert result.convergence.converged
    assert result.engine_r["gof"] < 1.05
    for name, true in (("cell.a", 4.5950), ("cell.c", 2.9580)):
        value, esd = parameter(result, f"phase.rutile.{name}")
        assert esd is not None
        assert abs(value - true) < 4.0 * esd
    # what is left at the end is nothing: to go on changes no figure
    _, again = gsasii.execute(snapshot, EngineCommand(released=released, mode="lebail", gains=False))
    assert chi2(again) == pytest.approx(chi2(result), rel=1e-6)


def test_the_intensities_of_a_profile_match_have_esds(gsasii: ProtocolSession) -> None:
    truth = values(phase__rutile__scale=30.0, background__0=100.0)
    pattern, simulation = simulated(gsasii, LAB, (RUTILE,), truth)
    root = gsasii.prepare(pattern, LAB, (RUTILE,), {})
    # the scale is part of a profile match's intensities: at the true one they are the structure's F^2
    command = EngineCommand(
        released=("background.*", "phase.*.cell"),
        mode="lebail",
        edits=values(phase__rutile__scale=30.0),
        gains=False,
    )
    snapshot, _ = gsasii.execute(root, command)
    table = gsasii.export(snapshot, ("hkl",)).files["reflections.csv"].decode().splitlines()
    rows = list(csv.DictReader(table))
    lines = simulation.reflections
    known = {
        tuple(hkl): (f2, position)
        for hkl, f2, position in zip(lines.hkl.tolist(), lines.f2_calc, lines.position, strict=True)
    }
    pulls = []
    for row in rows:
        f2, position = known[int(row["h"]), int(row["k"]), int(row["l"])]
        # lines that overlap share what is theirs together
        alone = np.sum(np.abs(lines.position[lines.line == 0] - position) < 0.5) <= 2
        if row["line"] == "0" and float(row["f2_esd"]) > 0.0 and alone:
            pulls.append((float(row["f2_calc"]) - f2) / float(row["f2_esd"]))
    assert len(pulls) > 5
    assert np.max(np.abs(pulls)) < 4.0
    assert np.std(pulls) > 0.3


def test_a_specimen_is_never_less_than_opaque(gsasii: ProtocolSession) -> None:
    truth = values(phase__fluorite__scale=20.0, background__0=200.0, instrument__zero=0.02)
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), truth)
    root = gsasii.prepare(pattern, LAB, (FLUORITE,), {})
    snapshot, before = gsasii.execute(root, EngineCommand(released=BASIC))
    # the lines lie above where they should: only a negative transparency would move them there
    assert before.gains["sample.transparency"] == 0.0
    _, result = gsasii.execute(snapshot, EngineCommand(released=(*BASIC, "sample.transparency"), gains=False))
    assert parameter(result, "sample.transparency") == (0.0, None)
    assert "effect_absent" in {notice.code for notice in result.notices}
