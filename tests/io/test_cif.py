"""CIF: symmetry, cell, atoms, special positions, shared sites, names."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import gemmi
import numpy as np
import pytest

from autoxrd.domain.structure import CrystalStructure
from autoxrd.errors import UserInputError
from autoxrd.io import name_structures, read_structures
from autoxrd.io.species import species_from_label, species_from_symbol
from tests.conftest import SHARED_DATA
from tests.io.samples import cif, write

NACL = "Na1 Na1+ 0 0 0 1 0.01\nCl1 Cl1- 0.5 0.5 0.5 1 0.02"
HEXAGONAL = (3.0, 3.0, 5.0, 90, 90, 120)


def _read(tmp_path: Path, text: str, name: str = "salt.cif") -> CrystalStructure:
    (structure,) = read_structures(write(tmp_path / name, text))
    return structure


def _refused(tmp_path: Path, text: str) -> UserInputError:
    with pytest.raises(UserInputError) as caught:
        read_structures(write(tmp_path / "bad.cif", text))
    assert str(caught.value).startswith("bad.cif")
    assert "\n" not in str(caught.value)
    return caught.value


def _codes(structure: CrystalStructure) -> set[str]:
    return {notice.code for notice in structure.notices}


def test_a_plain_structure(tmp_path: Path) -> None:
    salt = _read(tmp_path, cif(NACL))
    assert (salt.name, salt.space_group, salt.space_group_number, salt.formula) == ("salt", "F m -3 m", 225, "Cl Na")
    assert len(salt.operations) == 192
    assert salt.operations[0] == "x,y,z"
    assert [(a.label, a.species, a.element, a.multiplicity, a.u_iso) for a in salt.atoms] == [
        ("Na1", "Na1+", "Na", 4, 0.01),
        ("Cl1", "Cl1-", "Cl", 4, 0.02),
    ]
    assert salt.notices == ()
    assert len(salt.source_sha256) == 64


def _catalogue() -> list[pytest.ParameterSet]:
    cases = []
    for meta in sorted(SHARED_DATA.glob("*/meta.json")) if SHARED_DATA.is_dir() else []:
        for entry in json.loads(meta.read_text()).get("structures", []):
            name = f"{meta.parent.name}/{entry['file']}"
            cases.append(pytest.param(name, entry, id=name))
    return cases or [pytest.param("absent/absent.cif", {}, id="absent")]


@pytest.mark.parametrize(("relative", "entry"), _catalogue())
def test_structure_of_the_catalogue(relative: str, entry: dict, shared_file: Callable[[str], Path]) -> None:
    path = shared_file(relative)
    if path.name == "1010950.cif":  # COD writes the multiplicity, 4., into the occupancy
        with pytest.raises(UserInputError) as caught:
            read_structures(path)
        assert caught.value.code == "cif_occupancy_invalid"
        return
    (structure,) = read_structures(path)
    assert structure.atoms
    if entry.get("cell"):
        np.testing.assert_allclose(structure.cell.as_tuple(), entry["cell"], rtol=2e-4)
    if entry.get("space_group"):
        stated = gemmi.find_spacegroup_by_name(entry["space_group"], structure.cell.alpha, structure.cell.gamma)
        if stated is not None:
            assert structure.space_group_number == stated.number
    group = gemmi.GroupOps([gemmi.Op(text) for text in structure.operations])
    for atom in structure.atoms:
        # The position is exact: its images that coincide do so to rounding, the others are apart.
        images = np.array([op.apply_to_xyz([atom.x, atom.y, atom.z]) for op in group])
        delta = images - [atom.x, atom.y, atom.z]
        size = np.max(np.abs(delta - np.rint(delta)), axis=1)
        assert int(np.sum(size < 1e-9)) * atom.multiplicity == len(structure.operations), atom.label
        assert not np.any((size > 1e-9) & (size < 1e-3)), atom.label
        assert 0.0 < atom.occupancy <= 1.0
        assert atom.u_iso is None or atom.u_iso > 0.0


@pytest.mark.parametrize(
    ("symmetry", "symbol", "code"),
    [
        ("_symmetry_space_group_name_H-M 'R -3 c'", "R -3 c:H", None),
        ("_symmetry_space_group_name_H-M 'R -3 c :H'", "R -3 c:H", None),
        ("_symmetry_space_group_name_H-M 'R -3 c HS'", "R -3 c:H", None),
        ("_symmetry_space_group_name_H-M 'R-3c'", "R -3 c:H", None),
        ("_symmetry_space_group_name_Hall '-R 3 2\"c'", "R -3 c:H", None),
        ("_space_group_IT_number 167", "R -3 c:H", "cif_setting_assumed"),
        ("_symmetry_space_group_name_H-M 'P6_3/m m c'", "P 63/m m c", None),
        ("_symmetry_space_group_name_H-M 'p 63/m'", "P 63/m", None),
        ("_symmetry_space_group_name_H-M ?\n_space_group_IT_number 194", "P 63/m m c", "cif_setting_assumed"),
    ],
)
def test_symbols(tmp_path: Path, symmetry: str, symbol: str, code: str | None) -> None:
    structure = _read(tmp_path, cif("Al1 Al 0 0 0.35216 1 0.01", symmetry=symmetry, cell=HEXAGONAL))
    assert structure.space_group == symbol
    assert (code is None) == (structure.notices == ())
    if code:
        assert code in _codes(structure)


def _operators(symbol: str) -> str:
    group = gemmi.find_spacegroup_by_name(symbol).operations()
    rows = "\n".join(f"'{op.triplet()}'" for op in group)
    return f"loop_\n_symmetry_equiv_pos_as_xyz\n{rows}\n"


def test_operators_win_over_the_symbol(tmp_path: Path) -> None:
    symmetry = "_symmetry_space_group_name_H-M 'F d -3 m:2'\n" + _operators("F d -3 m:1")
    diamond = _read(tmp_path, cif("C1 C 0 0 0 1 0.01", symmetry=symmetry, cell=(3.567,) * 3 + (90,) * 3))
    assert (diamond.space_group, diamond.atoms[0].multiplicity) == ("F d -3 m:1", 8)
    assert "cif_symbol_differs" in _codes(diamond)
    only = _read(tmp_path, cif(NACL, symmetry=_operators("F m -3 m")))
    assert (only.space_group, only.notices) == ("F m -3 m", ())
    unknown = _read(tmp_path, cif(NACL, symmetry="_symmetry_space_group_name_H-M 'F oo'\n" + _operators("F m -3 m")))
    assert "cif_symbol_unknown" in _codes(unknown)


def test_only_the_identity_beside_a_symbol(tmp_path: Path) -> None:
    symmetry = "_symmetry_space_group_name_H-M 'F m -3 m'\nloop_\n_symmetry_equiv_pos_as_xyz\nx,y,z\n"
    structure = _read(tmp_path, cif(NACL, symmetry=symmetry))
    assert structure.space_group == "F m -3 m"
    assert "cif_identity_only" in _codes(structure)


def test_the_wrong_origin_is_refused(tmp_path: Path) -> None:
    si = (5.4312,) * 3 + (90,) * 3
    wrong = cif("Si1 Si 0 0 0 1 0.01", symmetry="_symmetry_space_group_name_H-M 'F d -3 m:2'", cell=si)
    assert _refused(tmp_path, wrong).code == "cif_origin_conflict"
    right = cif("Si1 Si 0.125 0.125 0.125 1 0.01", symmetry="_symmetry_space_group_name_H-M 'F d -3 m:2'", cell=si)
    assert _read(tmp_path, right).atoms[0].multiplicity == 8


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (cif(NACL).replace("_cell_length_a 5.0\n", ""), "cif_cell_missing", "_cell_length_a"),
        (cif(NACL, cell=(1.0, 1.0, 1.0, 90, 90, 90)), "cif_cell_invalid", "_cell_length_a"),
        (cif(NACL, cell=("?", 5.0, 5.0, 90, 90, 90)), "cif_cell_invalid", "_cell_length_a"),
        (cif(NACL, cell=(5.0, 5.0, 5.0, 90, 90, 0)), "cif_cell_invalid", "_cell_angle_gamma"),
        (cif(NACL, symmetry="", cell=(5, 5, 5, 20, 20, 170)), "cif_cell_invalid", "do not span"),
        (cif(NACL, cell=(5.0, 5.2, 5.0, 90, 90, 90)), "cif_cell_symmetry", "F m -3 m"),
        (cif(NACL, symmetry=""), "cif_no_symmetry", "space group"),
        (cif(NACL, symmetry="_symmetry_space_group_name_H-M 'Q 5'"), "cif_no_symmetry", "Q 5"),
        (cif(NACL, symmetry="loop_\n_symmetry_equiv_pos_as_xyz\n'x,y'\n"), "cif_operation_invalid", "x,y"),
        (cif(NACL, symmetry="loop_\n_symmetry_equiv_pos_as_xyz\nx,y,z\n2*x,y,z\n"), "cif_operation_invalid", "2*x"),
        (cif("Na1 Qq 0 0 0 1 0.01"), "cif_unknown_element", "Qq"),
        (cif("W1 Wat 0 0 0 1 0.01"), "cif_unknown_element", "Wat"),
        (cif("W1 H2O 0 0 0 1 0.01"), "cif_unknown_element", "H2O"),
        (cif("Na1 Na ? 0 0 1 0.01\nCl1 Cl 0 . 0 1 0.01"), "cif_coordinate_missing", "Na1, Cl1"),
        (cif("Na1 Na nan 0 0 1 0.01"), "cif_coordinate_missing", "Na1"),
        (cif("Na1 Na 0 0 0 1.2 0.01"), "cif_occupancy_invalid", "1.2"),
        (cif("Na1 Na 0 0 0 -0.2 0.01"), "cif_occupancy_invalid", "-0.2"),
        (cif("Na1 Na 0 0 0 x 0.01"), "cif_occupancy_invalid", "'x'"),
        (cif("Na1 Na 0 0 0 0 0.01"), "cif_no_atoms", "occupancy 0"),
        (cif("Na1 Na 0 0 0 0.7 0.01\nK1 K 0 0 0 0.4 0.01"), "cif_site_overfull", "1.100"),
        (cif("Na1 Na 0 0 0 1 0.01\nNa2 Na 0.5 0.5 0 1 0.01"), "cif_site_overfull", "Na1, Na2"),
        ("data_x\n_a 'open\n", "cif_malformed", "line 2"),
        ("not a cif\n", "cif_malformed", "data_"),
        ("data_x\n_cell_length_a 5\n", "cif_no_atoms", "_atom_site"),
    ],
)
def test_refusals(tmp_path: Path, text: str, code: str, words: str) -> None:
    error = _refused(tmp_path, text)
    assert error.code == code
    assert words in str(error)


def test_rounded_thirds_become_exact(tmp_path: Path) -> None:
    symmetry = "_space_group_name_H-M_alt 'P 63/m m c'"
    for third in ("0.333", "0.3333", "0.33333(5)", "1/3"):
        two = {"0.333": "0.667", "0.3333": "0.6667", "0.33333(5)": "0.66667", "1/3": "2/3"}[third]
        atom = _read(tmp_path, cif(f"Mg1 Mg {third} {two} 0.25 1 0.01", symmetry=symmetry, cell=HEXAGONAL)).atoms[0]
        assert (atom.x, atom.y, atom.z) == pytest.approx((1 / 3, 2 / 3, 0.25), abs=1e-12)
        assert atom.multiplicity == 2
    general = _read(tmp_path, cif("Mg1 Mg 0.34 0.67 0.25 1 0.01", symmetry=symmetry, cell=HEXAGONAL)).atoms[0]
    assert general.x == 0.34
    assert general.multiplicity > 2


def test_shared_sites_empty_sites_and_uncertainties(tmp_path: Path) -> None:
    atoms = "Na1 Na 0 0 0 0.600(4) 0.011(2)\nK1 K 0 0 0 0.4 0.012\nX1 Li 0.25 0.25 0.25 0 0.01\nCl1 Cl 0.5 0.5 0.5 . ?"
    mixed = _read(tmp_path, cif(atoms, cell=("5.6402(2)", "5.6402(2)", "5.6402(2)", 90, 90, 90)))
    assert [(a.label, a.occupancy, a.u_iso) for a in mixed.atoms] == [
        ("Na1", 0.6, 0.011),
        ("K1", 0.4, 0.012),
        ("Cl1", 1.0, None),
    ]
    assert mixed.cell.a == 5.6402
    assert mixed.formula == "Cl4 K1.6 Na2.4"
    assert "cif_empty_site_dropped" in _codes(mixed)


def test_displacement_parameters(tmp_path: Path) -> None:
    b = cif("Na1 Na 0 0 0 1 0.8").replace("_atom_site_U_iso", "_atom_site_B_iso")
    assert _read(tmp_path, b).atoms[0].u_iso == pytest.approx(0.8 / (8 * math.pi**2))
    assert _read(tmp_path, cif("Na1 Na 0 0 0 1 0.0")).atoms[0].u_iso is None
    negative = _read(tmp_path, cif("Na1 Na 0 0 0 1 -0.01"))
    assert negative.atoms[0].u_iso is None
    assert "cif_displacement_unphysical" in _codes(negative)
    tensor = np.array([0.02, 0.01, 0.03, 0.002, 0.001, 0.003])
    cell = (5.0, 6.0, 7.0, 80, 95, 105)
    reciprocal = gemmi.UnitCell(*cell).reciprocal()
    lengths = np.array([reciprocal.a, reciprocal.b, reciprocal.c])
    pairs = np.array([lengths[i] * lengths[j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))])
    for kind, values in (("U", tensor), ("B", tensor * 8 * math.pi**2), ("beta", tensor * 2 * math.pi**2 * pairs)):
        names = "\n".join(f"_atom_site_aniso_{kind}_{ij}" for ij in ("11", "22", "33", "12", "13", "23"))
        rows = " ".join(f"{value:.8f}" for value in values)
        text = cif("Na1 Na 0.1 0.2 0.3 1 0.5", symmetry="_space_group_name_H-M_alt 'P 1'", cell=cell)
        text += f"loop_\n_atom_site_aniso_label\n{names}\nNa1 {rows}\n"
        atom = _read(tmp_path, text).atoms[0]
        assert atom.u_aniso == pytest.approx(tuple(tensor), rel=1e-4)
        u = gemmi.SMat33d(*atom.u_aniso)
        assert atom.u_iso == pytest.approx(gemmi.UnitCell(*cell).calculate_u_eq(u), rel=1e-6)


def test_labels_are_unique_and_safe(tmp_path: Path) -> None:
    atoms = "O O 0 0 0 1 0.01\nO O 0.5 0.5 0.5 1 0.01\n'O 3;x' O 0.25 0.25 0.25 1 0.01"
    structure = _read(tmp_path, cif(atoms))
    assert [atom.label for atom in structure.atoms] == ["O", "O_2", "O_3_x"]


@pytest.mark.parametrize(
    ("text", "species"),
    [
        ("O2-", "O2-"),
        ("O-2", "O2-"),
        ("O-", "O1-"),
        ("Co+3", "Co3+"),
        ("CO3+", "Co3+"),
        ("Fe", "Fe"),
        ("FE", "Fe"),
        ("Fe0+", "Fe"),
        ("D", "D"),
        ("O1", "O"),
        ("Na1+", "Na1+"),
        ("OH", "O"),
        ("OW", "O"),
        ("O-H1", "O"),
        ("Qq", None),
        ("Wat", None),
        ("H2O", None),
        ("Va", None),
        ("", None),
        ("2-", None),
    ],
)
def test_type_symbols(text: str, species: str | None) -> None:
    found = species_from_symbol(text)
    assert (found.species if found else None) == species


def test_the_formula_settles_ambiguous_labels() -> None:
    assert species_from_label("CO1", known={"C", "O"}).element == "C"
    assert species_from_label("CO1", known={"Co", "O"}).element == "Co"
    assert species_from_label("Ca1").element == "Ca"


def test_contents_are_compared_with_the_formula(tmp_path: Path) -> None:
    text = cif(NACL).replace("loop_\n_atom_site_label", "_chemical_formula_sum 'Cl Na'\nloop_\n_atom_site_label")
    assert _read(tmp_path, text).notices == ()
    assert "cif_formula_differs" in _codes(_read(tmp_path, text.replace("'Cl Na'", "'Cl2 Na'")))
    assert "cif_formula_differs" in _codes(_read(tmp_path, text.replace("'Cl Na'", "'Cl Na H'")))


def test_several_blocks_and_names(tmp_path: Path) -> None:
    halite = cif(NACL).replace("data_test", "data_1\n_chemical_name_mineral 'Halite (α)'")
    other = cif("Fe1 Fe 0 0 0 1 0.01").replace("data_test", "data_publication_text\n_x 1\ndata_iron")
    first, second = read_structures(write(tmp_path / "two.cif", halite + other))
    assert (first.name, second.name) == ("Halite", "iron")
    numbered = _read(tmp_path, halite, name="9008678.cif")
    assert numbered.name == "Halite"
    assert _read(tmp_path, cif(NACL), name="na cl; rm -rf.cif").name == "na_cl_rm_-rf"
    assert _read(tmp_path, cif(NACL), name="12.cif").name == "ClNa"
    names = [structure.name for structure in name_structures([first, second, first, first])]
    assert names == ["Halite", "iron", "Halite_2", "Halite_3"]


def test_the_cell_is_made_to_obey_the_symmetry(tmp_path: Path) -> None:
    structure = _read(tmp_path, cif(NACL, cell=(5.0, 5.001, 5.0, 90, 90.01, 90)))
    assert structure.cell.a == structure.cell.b == structure.cell.c
    assert (structure.cell.alpha, structure.cell.beta) == (90.0, 90.0)
    assert "cif_cell_snapped" in _codes(structure)
