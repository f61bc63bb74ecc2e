"""Mass absorption coefficients: against International Tables, of mixtures, and what cannot be read."""

from __future__ import annotations

import pytest

from autoxrd.domain.structure import AtomSite, CrystalStructure, UnitCell
from autoxrd.errors import UserInputError
from autoxrd.io.attenuation import composition_absorption, element_counts, mass_absorption

CU, MO, CO = 1.5405929, 0.70931715, 1.7889960


@pytest.mark.parametrize(
    ("symbol", "wavelength", "expected"),
    [
        ("O", CU, 11.5), ("F", CU, 15.8), ("Al", CU, 50.2), ("Si", CU, 65.3), ("Ca", CU, 171.0), ("Fe", CU, 302.0),
        ("Zn", CU, 58.8), ("Al", MO, 5.16), ("Si", MO, 6.58), ("Fe", MO, 37.6), ("Si", CO, 101.0), ("Fe", CO, 56.2),
    ],
)  # fmt: skip
def test_elements_are_those_of_the_tables(symbol: str, wavelength: float, expected: float) -> None:
    """International Tables for Crystallography C (2004), table 4.2.4.3; compilations differ by some percent."""
    assert mass_absorption({symbol: 1.0}, wavelength) == pytest.approx(expected, rel=0.06)


def test_a_mixture_is_the_mean_of_its_parts_by_weight() -> None:
    alumina, silica = (composition_absorption(f"{formula}:100", CU) for formula in ("Al2O3", "SiO2"))
    assert composition_absorption("Al2O3:30, SiO2: 70 %", CU) == pytest.approx(0.3 * alumina + 0.7 * silica)
    assert composition_absorption("Al2O3:30.1,SiO2:70.1", CU) == pytest.approx(
        composition_absorption("Al2O3:30.1,SiO2:70.1".replace("30.1", "30.04").replace("70.1", "69.96"), CU), rel=1e-4
    )


@pytest.mark.parametrize(
    ("formula", "counts"),
    [
        ("Mg(OH)2", {"Mg": 1.0, "O": 2.0, "H": 2.0}),
        ("Ca10(PO4)6F2", {"Ca": 10.0, "P": 6.0, "O": 24.0, "F": 2.0}),
        ("Ca3Al2(Si(OH)4)1.5O6", {"Ca": 3.0, "Al": 2.0, "Si": 1.5, "O": 12.0, "H": 6.0}),
        ("Fe0.95O", {"Fe": 0.95, "O": 1.0}),
    ],
)
def test_formulas_with_brackets_and_fractions(formula: str, counts: dict[str, float]) -> None:
    assert composition_absorption(f"{formula}:100", CU) == pytest.approx(mass_absorption(counts, CU), rel=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "", "Al2O3", "Al2O3:50", "Al2O3:-5,SiO2:105", "Al2O3:nan", "Al2O3:inf", "al2o3:100", ":100", "(:100", "()2:100",
        "Al2O3):100", "(Al2O3:100", "Al2 O3:100", "Al2O3:100;SiO2:0", "Al0:100", "Al" + 400 * "9" + ":100",
        3000 * "A",
    ],
)  # fmt: skip
def test_what_is_no_composition_is_refused(text: str) -> None:
    with pytest.raises(UserInputError, match="Al2O3:50,SiO2:50") as caught:
        composition_absorption(text, CU)
    assert caught.value.code == "composition_invalid"
    assert len(caught.value.detail) < 300


@pytest.mark.parametrize(
    ("text", "wavelength", "why"),
    [
        ("Xx:100", CU, "no element"),
        ("Po:100", CU, "no element"),
        ("Fe2O3:100", 1.756, "edge"),
        ("Al:100", 9.0, "outside"),
    ],
)
def test_what_the_table_does_not_know_is_refused(text: str, wavelength: float, why: str) -> None:
    with pytest.raises(UserInputError, match=why) as caught:
        composition_absorption(text, wavelength)
    assert caught.value.code == "mass_absorption_unknown"


def test_the_atoms_of_a_cell_count_by_site_and_occupancy() -> None:
    atoms = (
        AtomSite("Ca", "Ca2+", "Ca", 0.0, 0.0, 0.0, occupancy=0.5, multiplicity=4),
        AtomSite("Sr", "Sr2+", "Sr", 0.0, 0.0, 0.0, occupancy=0.5, multiplicity=4),
        AtomSite("D", "D", "D", 0.25, 0.25, 0.25, multiplicity=8),
    )
    cell = UnitCell(5.4, 5.4, 5.4, 90.0, 90.0, 90.0)
    structure = CrystalStructure("x", "", "F m -3 m", 225, ("x,y,z",), cell, atoms)
    assert element_counts(structure) == {"Ca": 2.0, "Sr": 2.0, "H": 8.0}
