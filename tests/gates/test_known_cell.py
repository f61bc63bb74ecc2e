"""What a certified cell changes at the gate: it is never free, and the others are no longer tangled with shifts."""

from __future__ import annotations

import pytest

from autoxrd.domain.state import Feature, FitState, ParameterValue
from autoxrd.gates.audit import final_audit
from autoxrd.gates.coupling import find_coupled
from autoxrd.gates.known import KNOWN_CELL_PREFIX, known_cells
from autoxrd.gates.policy import load_policy
from autoxrd.gates.preflight import preflight
from tests.gates.factory import NAMES, PARENT_ID, action, state

POLICY = load_policy("default")
KNOWN = (*NAMES, "phase.nac.scale", "phase.nac.cell.a", "instrument.difC", "histogram.2.phase.nac.strain_hydrostatic.a")


def _state(*certified: str, **more: object) -> FitState:
    features = {KNOWN_CELL_PREFIX + name: Feature(value=10.25122, unit="angstrom") for name in certified}
    return state(features=features, names=KNOWN, **more)  # type: ignore[arg-type]


def _codes(selectors: list[str], parent: FitState, kind: str = "lattice") -> dict[str, str]:
    checks = preflight(action(kind, selectors), parent, PARENT_ID, policy=POLICY, known_parameters=KNOWN)
    return {code: check.text for check in checks for code in check.codes}


@pytest.mark.parametrize("selector", ["phase.nac.cell", "phase.*.cell", "phase.nac.cell.a"])
def test_a_certified_cell_is_not_freed_by_any_name(selector: str) -> None:
    found = _codes([selector], _state("nac"))
    assert "nac" in found["known_cell_freed"]
    assert "fap" not in found["known_cell_freed"].replace(selector, "")
    assert "known_cell_freed" not in _codes([selector], _state())


def test_other_cells_and_a_further_histograms_strain_are_not_of_it() -> None:
    assert known_cells(_state("nac")) == ("nac",)
    assert "known_cell_freed" not in _codes(["phase.fap.cell"], _state("nac"))
    assert "known_cell_freed" not in _codes(["histogram.2.phase.nac.strain_hydrostatic"], _state("nac"))


def _coupled(free: tuple[str, ...], parent: FitState) -> set[str]:
    return {finding.rule.id for finding in find_coupled(free, free, parent, KNOWN, policy=POLICY)}


def test_zero_wavelength_and_the_other_cell_are_free_together_only_beside_a_certified_one() -> None:
    free = ("instrument.zero", "instrument.wavelength", "phase.fap.cell.a")
    assert "zero_cell_wavelength" in _coupled(free, _state())
    assert _coupled(free, _state("nac")) == set()
    tangled = Feature(value=0.0, reason="cannot be told apart: zero or cell of fap")
    unclear = _state("nac")
    unclear = unclear.model_copy(update={"features": {**unclear.features, "position.separable": tangled}})
    # the standard's lines tell its zero, but nothing of it a wavelength from a zero
    assert "zero_cell" not in _coupled(("instrument.zero", "phase.fap.cell.a"), unclear)
    both = ("instrument.zero", "sample.displacement", "phase.fap.cell.a")
    assert "zero_displacement" in _coupled(both, unclear)


def test_scale_and_every_cell_stay_coupled_where_none_is_certified() -> None:
    cells = ("phase.fap.cell.a", "phase.nac.cell.a")
    assert "wavelength_cells" in _coupled(("instrument.wavelength", *cells), _state())
    assert "flight_constant_cells" in _coupled(("instrument.difC", *cells), _state())
    assert "flight_constant_cells" not in _coupled(("instrument.difC", cells[0]), _state("nac"))


@pytest.mark.parametrize(("asked", "doubted"), [(10.25130, False), (10.25500, True), (10.24700, True)])
def test_lines_that_contradict_a_certified_cell_are_told_with_figures(asked: float, doubted: bool) -> None:
    plain = _state("nac", values={"phase.nac.cell.a": 10.25122})
    wanted = ParameterValue(name="phase.nac.cell.a.asked", value=asked, esd=0.0004, derived=True)
    found = final_audit(plain.model_copy(update={"parameters": (*plain.parameters, wanted)}), policy=POLICY)
    told = [item for item in found.warnings if item.code == "known_cell_doubtful"]
    assert bool(told) is doubted
    if told:
        assert f"{asked:.5f}" in told[0].text
        assert "10.25122" in told[0].text
        assert "ppm" in told[0].text
