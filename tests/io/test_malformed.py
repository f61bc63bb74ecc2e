"""Each malformed file of the catalogue: the refusal names the cause, or the reading is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autoxrd.domain.pattern import AxisKind, SigmaOrigin
from autoxrd.errors import UserInputError
from autoxrd.io import read_pattern, read_structures

REFUSED = {
    "html_as_data.gss": ("file_is_html", "HTML"),
    "background_points_not_data.xy": ("pattern_is_background", "background"),
    "c_comment_header.xye": ("pattern_range_too_short", "0.57 degrees"),
    "eva_export_28_points.xy": ("pattern_too_short", "28 points"),
    "header_says_theta.xy": ("pattern_axis_unclear", "theta"),
    "scrambled_negative.raw": ("format_unsupported", "Bruker RAW version 4"),
    "esd_all_zero.xye": ("pattern_esd_invalid", "sqrt(y)"),
    "two_ranges_overlap.xy": ("pattern_ranges_overlap", "line 4002"),
    "truncated.xrdml": ("xrdml_malformed", "not well formed"),
    "nan_and_inf.xy": ("pattern_nan", "16 of 7251"),
    "empty.xy": ("file_empty", "0 bytes"),
    "lfs_pointer.fxye": ("file_is_lfs_pointer", "git lfs pull"),
}
READ = {
    "cr_only_lines.dat": (1800, 25.0, 114.95),
    "third_column_is_background.xy": (9001, 10.0, 100.0),
    "comments_before_header.dat": (4721, 25.0, 143.0),
    "decimal_comma_semicolon.csv": (7251, 5.0, 150.0),
    "utf16_bom.xy": (7251, 5.0, 150.0),
    "units_header_uneven_step.txt": (8378, 15.0066, 124.9991),
    "q_axis.dat": (7251, 0.355796, 7.8789),
}
CIF_REFUSED = {
    "cif_no_atoms.cif": ("cif_no_atoms", "no atoms"),
    "cif_origin1_coords_origin2_symbol.cif": ("cif_origin_conflict", "origin"),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_with_the_cause(name: str, shared_file: Callable[[str], Path]) -> None:
    code, words = REFUSED[name]
    with pytest.raises(UserInputError) as caught:
        read_pattern(shared_file(f"malformed-open/{name}"))
    assert caught.value.code == code
    assert words in str(caught.value)
    assert str(caught.value).startswith(name)
    assert "\n" not in str(caught.value)
    assert caught.value.context["file"] == name


@pytest.mark.parametrize("name", sorted(READ))
def test_read_rightly(name: str, shared_file: Callable[[str], Path]) -> None:
    n, first, last = READ[name]
    pattern = read_pattern(shared_file(f"malformed-open/{name}"))
    assert pattern.n_points == n
    assert pattern.x[0] == pytest.approx(first, abs=1e-4)
    assert pattern.x[-1] == pytest.approx(last, abs=1e-4)
    assert (pattern.axis is AxisKind.Q) == (name == "q_axis.dat")
    if name == "third_column_is_background.xy":
        assert pattern.sigma_origin is SigmaOrigin.COUNTING
        np.testing.assert_allclose(pattern.sigma, np.sqrt(pattern.y))


@pytest.mark.parametrize("name", sorted(CIF_REFUSED))
def test_cif_refused_with_the_cause(name: str, shared_file: Callable[[str], Path]) -> None:
    code, words = CIF_REFUSED[name]
    with pytest.raises(UserInputError) as caught:
        read_structures(shared_file(f"malformed-open/{name}"))
    assert caught.value.code == code
    assert words in str(caught.value)


def _codes(structure: object) -> set[str]:
    return {notice.code for notice in structure.notices}


def test_cif_oddities_are_read_rightly(shared_file: Callable[[str], Path]) -> None:
    def read(name: str) -> object:
        return read_structures(shared_file(f"malformed-open/{name}"))[0]

    snapped = read("cif_angle_90p002.cif")
    assert snapped.cell.beta == 90.0
    assert "cif_cell_snapped" in _codes(snapped)
    signed = read("cif_sign_first_charge.cif")
    assert [atom.species for atom in signed.atoms] == ["Li", "Co3+", "O2-"]
    labelled = read("cif_site_label_as_type.cif")
    assert [atom.species for atom in labelled.atoms] == ["Li", "Co", "O"]
    assert "cif_type_interpreted" in _codes(labelled)
    garnet = read("cif_occupancy_esd_and_dot.cif")
    iron = next(atom for atom in garnet.atoms if atom.label == "Fe1")
    assert (iron.occupancy, iron.u_iso) == (0.5, None)
    alite = read("cif_label_mismatch_1538413.cif")
    assert (alite.space_group, alite.cell.a, alite.cell.c) == ("R 3 m:H", 7.078, 24.94)
    calcite = read("cif_rhombohedral_axes_1010928.cif")
    assert (calcite.space_group, calcite.cell.alpha) == ("R -3 c:R", 46.1)
    assert calcite.formula == "C Ca O3"
    assert {atom.label: atom.multiplicity for atom in calcite.atoms} == {"Ca1": 2, "C1": 2, "O1": 6}
    assert "cif_origin_shifted" in _codes(calcite)
    aphthitalite = read("cif_odd_operator_order_9007639.cif")
    assert (aphthitalite.space_group, aphthitalite.formula) == ("P -3 m 1", "K3 Na O8 S2")


def test_every_case_of_the_catalogue_is_tested(shared_data: Path) -> None:
    cases = set(json.loads((shared_data / "malformed-open" / "meta.json").read_text())["cases"])
    here = set(REFUSED) | set(READ) | set(CIF_REFUSED)
    cifs = {name for name in cases if name.endswith(".cif")}
    assert cases - here - cifs == set()
    assert len(cifs - set(CIF_REFUSED)) == 7
