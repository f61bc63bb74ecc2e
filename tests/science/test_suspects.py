"""Another tube, magnetic order, an absent phase: each is seen where it is, and not where it is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoxrd.domain.instrument import ANODE_LINES, EmissionLine, Geometry, Instrument, Radiation
from autoxrd.domain.state import UnexplainedPeak
from autoxrd.domain.structure import AtomSite, CrystalStructure, UnitCell
from autoxrd.engines.protocol import EngineResult
from autoxrd.science.observe import measure
from autoxrd.science.suspects import SuspectSettings, find_suspects
from autoxrd.science.suspects.magnetism import magnetic_order
from tests.science.simulate import CORUNDUM, ZINCITE, base, context, instrument, reflections, simulate, structure

NEUTRON = Instrument(Radiation.NEUTRON, Geometry.DEBYE_SCHERRER, (EmissionLine(1.5403),))
MANGANITE = CrystalStructure(
    name="LaMnO3",
    title="LaMnO3",
    space_group="P n m a",
    space_group_number=62,
    operations=("x,y,z",),
    cell=UnitCell(5.733, 7.674, 5.535, 90.0, 90.0, 90.0),
    atoms=(AtomSite("Mn1", "Mn3+", "Mn", 0.0, 0.0, 0.5),),
)


def _peak(d: float, area: float = 100.0, wavelength: float = 1.5403) -> UnexplainedPeak:
    position = float(np.rad2deg(2 * np.arcsin(wavelength / 2 / d)))
    return UnexplainedPeak(two_theta_deg=position, d_angstrom=d, area=area, area_share=0.03, significance=40.0)


@pytest.mark.parametrize(("true", "found"), [("Co", "Co"), ("Mo", "Mo"), ("Cu", None)])
def test_the_tube_that_measured_the_pattern(true: str, found: str | None) -> None:
    truth = base(CORUNDUM, lines=ANODE_LINES[true], counts=3e3, lower=12.0)
    fit = base(CORUNDUM, counts=3e3, lower=12.0)  # labelled Cu
    data = simulate(truth, fit)
    suspects = find_suspects(
        data.x,
        data.y_obs,
        data.sigma,
        reflections=reflections(fit),
        structures=[structure(CORUNDUM)],
        peaks=(),
        instrument=instrument(fit),
    )
    assert (suspects.wavelength.anode if suspects.wavelength else None) == found
    assert suspects.magnetic is None


def test_a_wrong_structure_is_no_wrong_tube() -> None:
    truth, fit = base(ZINCITE, counts=3e3), base(CORUNDUM, counts=3e3)
    data = simulate(truth, fit)
    suspects = find_suspects(
        data.x,
        data.y_obs,
        data.sigma,
        reflections=reflections(fit),
        structures=[structure(CORUNDUM)],
        peaks=(),
        instrument=instrument(fit),
    )
    assert suspects.wavelength is None


def test_magnetic_lines_stand_on_the_nuclear_lattice() -> None:
    found = magnetic_order([_peak(7.690), _peak(7.60, 12.0)], [MANGANITE], NEUTRON, SuspectSettings())
    assert found is not None
    assert found.cell == "the nuclear cell"
    assert tuple(abs(i) for i in found.hkl) == (0, 1, 0)
    # as far off as axial divergence moves a line at 11 degrees
    assert magnetic_order([_peak(7.7075)], [MANGANITE], NEUTRON, SuspectSettings()) is not None
    doubled = magnetic_order([_peak(2 * 7.674)], [MANGANITE], NEUTRON, SuspectSettings())
    assert doubled is not None
    assert doubled.cell == "a doubled cell"
    assert tuple(abs(i) for i in doubled.hkl) == (0, 0.5, 0)


def test_no_magnetic_order_without_reason() -> None:
    settings = SuspectSettings()
    assert magnetic_order([_peak(6.9)], [MANGANITE], NEUTRON, settings) is None  # on no lattice point
    xray = replace(NEUTRON, radiation=Radiation.XRAY)
    assert magnetic_order([_peak(7.690)], [MANGANITE], xray, settings) is None
    silica = replace(MANGANITE, atoms=(AtomSite("Si1", "Si", "Si", 0.0, 0.0, 0.0),))
    assert magnetic_order([_peak(7.690)], [silica], NEUTRON, settings) is None
    # a dense lattice indexes anything
    large = replace(MANGANITE, cell=UnitCell(23.0, 31.0, 27.0, 90.0, 95.0, 90.0))
    assert magnetic_order([_peak(5.1)], [large], NEUTRON, settings) is None


def test_an_absent_phase_has_no_lines_of_its_own() -> None:
    there = base(CORUNDUM, replace(ZINCITE, scale=0.05), counts=3e3)
    only = base(CORUNDUM, counts=3e3)
    present = measure(simulate(there, there), context(there)).features
    absent = measure(simulate(only, there), context(there)).features
    assert present["absent_lines.zincite"].value == 0.0
    assert present["phases_unsupported"].value == 0.0
    assert absent["absent_lines.zincite"].value > 0.8
    assert absent["phases_unsupported"].value == 1.0
    assert absent["presence.corundum"].value == pytest.approx(100.0)
    single = measure(simulate(only, only), context(only)).features
    assert "phases_unsupported" not in single


def _held(data: EngineResult, name: str) -> EngineResult:
    """A fit with the scale of a phase held and the others known as well as a fit of these counts knows them."""
    changes = {f"phase.{name}.scale": {"released": False, "esd": None}}
    known = tuple(
        p.model_copy(update=changes.get(p.name, {"esd": 0.002 * p.value} if p.name.endswith(".scale") else {}))
        for p in data.parameters
    )
    return replace(data, parameters=known)


@pytest.mark.parametrize("there", [True, False])
def test_a_scale_that_is_held_beside_free_ones_is_judged_by_a_linear_fit(there: bool) -> None:
    fit = base(CORUNDUM, replace(ZINCITE, scale=0.05), counts=3e3)
    data = simulate(fit if there else base(CORUNDUM, counts=3e3), fit)
    features = measure(_held(data, "zincite"), context(fit)).features
    presence = features["presence.zincite"].value
    assert presence is not None
    assert (presence > 10.0) if there else (presence < 3.0)
    assert features["phases_unsupported"].value == (0.0 if there else 1.0)


@pytest.mark.parametrize("length", [4.80, 4.84])
def test_the_tail_of_axial_divergence_is_no_phase(length: float) -> None:
    ghost = replace(CORUNDUM, name="ghost", cell=(length, length, 12.992 * length / 4.7588, 90, 90, 120), scale=1e-3)
    fit = base(CORUNDUM, ghost, counts=3e3, axial=0.05)
    data = simulate(base(CORUNDUM, counts=3e3, axial=0.05), fit)
    features = measure(_held(data, "ghost"), context(fit)).features
    presence = features["presence.ghost"].value
    assert presence is not None
    assert abs(presence) < 3.0
    assert features["phases_unsupported"].value == 1.0


def test_the_strongest_line_without_a_cause_is_measured_against_the_strongest_calculated() -> None:
    truth = base(CORUNDUM, replace(ZINCITE, scale=0.2), counts=3e3)
    features = measure(simulate(truth, base(CORUNDUM, counts=3e3)), context(base(CORUNDUM))).features
    table = reflections(truth)
    first = table.line == 0
    strongest = [float(table.intensity[first & (table.phase == i)].max()) for i in (0, 1)]
    assert features["unexplained.strongest"].value == pytest.approx(strongest[1] / strongest[0], rel=0.5)
    assert features["cell_change.corundum"].value == 0.0
