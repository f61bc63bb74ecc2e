"""The whole report, written and read back."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import zipfile
from pathlib import Path

import gemmi
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoxrd.domain.structure import CrystalStructure
from autoxrd.errors import PolicyError, StorageError
from autoxrd.report.build import render_files, write_report
from autoxrd.report.bundle import bundle_zip
from autoxrd.report.cif import phase_cif
from autoxrd.report.model import ReportInput
from autoxrd.report.tables import guarded
from tests.report.factory import HOSTILE, report_input


@pytest.fixture(scope="module")
def inp() -> ReportInput:
    return report_input(n=2001)


@pytest.fixture(scope="module")
def files(inp: ReportInput) -> dict[str, bytes]:
    return render_files(inp)[0]


def _rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def test_report_writes_every_promised_file(inp: ReportInput, tmp_path: Path) -> None:
    paths = write_report(inp, tmp_path / "new" / "out")
    promised = {"html", "json", "profile", "reflections", "parameters", "graph", "manifest", "bundle", "cif.corundum"}
    assert promised <= set(paths)
    assert all(p.is_file() and p.stat().st_size > 0 for p in paths.values())
    head = json.loads(paths["json"].read_text(encoding="utf-8"))
    assert {k: tmp_path / "new" / "out" / v for k, v in head["files"].items()} == paths
    left = [p.name for p in (tmp_path / "new" / "out").rglob("*") if p.name.startswith(".")]
    assert left == []


def test_profile_csv_holds_the_fit(inp: ReportInput, files: dict[str, bytes]) -> None:
    rows = _rows(files["profile.csv"])
    assert list(rows[0]) == ["x", "obs", "sigma", "calc", "background", "diff", "fluorapatite", "corundum"]
    table = np.array([[float(v) for v in row.values()] for row in rows]).T
    a = inp.arrays
    expected = [a.x, a.y_obs, a.sigma, a.y_calc, a.background, a.y_obs - a.y_calc, *a.phase_patterns]
    np.testing.assert_allclose(table, expected, rtol=1e-11, atol=1e-9)
    rwp = np.sqrt(np.sum((table[5] / table[2]) ** 2) / np.sum((table[1] / table[2]) ** 2))
    assert rwp == pytest.approx(inp.state.quality.rwp, rel=1e-9)


def test_reflections_csv_holds_all_phases_and_lines(inp: ReportInput, files: dict[str, bytes]) -> None:
    rows = _rows(files["reflections.csv"])
    assert len(rows) == inp.reflections.phase.size
    assert {r["phase"] for r in rows} == {"fluorapatite", "corundum"}
    assert {r["line"] for r in rows} == {"1.540593", "1.544427"}
    d = np.array([float(r["d"]) for r in rows])
    wave = np.array([float(r["line"]) for r in rows])
    position = np.array([float(r["two_theta"]) for r in rows])
    np.testing.assert_allclose(2 * d * np.sin(np.radians(position / 2)), wave, rtol=1e-6)


def test_parameters_csv_names_the_step_that_released_each(files: dict[str, bytes]) -> None:
    rows = {r["name"]: r for r in _rows(files["parameters.csv"])}
    a = rows["phase.fluorapatite.cell.a"]
    assert (a["phase"], a["atom"], a["quantity"], a["unit"]) == ("fluorapatite", "", "cell.a", "angstrom")
    assert (a["released_in_step"], a["derived"]) == ("5", "false")
    assert rows["phase.fluorapatite.cell.b"]["released_in_step"] == "5"
    uiso = rows["phase.corundum.atom.Al1.uiso"]
    assert (uiso["atom"], uiso["quantity"], uiso["lower"], uiso["upper"]) == ("Al1", "uiso", "0", "0.1")
    assert uiso["released_in_step"] == "10"
    assert rows["profile.S/L"]["released_in_step"] == "8"
    assert rows["background.3"]["released_in_step"] == "2"
    # Released by a rejected step only.
    assert rows["instrument.zero"]["released_in_step"] == ""
    assert rows["instrument.zero"]["esd"] == ""
    assert rows["phase.corundum.weight_fraction"]["derived"] == "true"


def test_text_cells_are_no_formulas() -> None:
    assert [guarded(t) for t in ("=1+1", "+x", "-x", "@x", "x=1")] == ["'=1+1", "'+x", "'-x", "'@x", "x=1"]


@pytest.mark.parametrize("index", [0, 1])
def test_cif_gives_cell_atoms_and_r_factors_back(inp: ReportInput, files: dict[str, bytes], index: int) -> None:
    structure = inp.structures[index]
    doc = gemmi.cif.read_string(files[f"{structure.name}.cif"].decode("ascii"))
    small = gemmi.make_small_structure_from_block(doc[0])
    assert small.spacegroup.hm == structure.space_group.split(":")[0]
    assert len(list(small.symops)) == len(structure.operations)
    np.testing.assert_allclose(small.cell.parameters, structure.cell.as_tuple(), atol=6e-6)
    for site, atom in zip(small.sites, structure.atoms, strict=True):
        assert (site.label, site.element.name) == (atom.label, atom.element)
        np.testing.assert_allclose([site.fract.x, site.fract.y, site.fract.z], [atom.x, atom.y, atom.z], atol=6e-6)
        assert site.occ == pytest.approx(atom.occupancy)
        assert site.u_iso == pytest.approx(atom.u_iso, abs=6e-5)
    assert doc[0].find_value("_cell_length_a").endswith(")")
    pattern, q = doc[1], inp.state.quality
    assert float(pattern.find_value("_pd_proc_ls_prof_wR_factor")) == pytest.approx(q.rwp, rel=1e-5)
    assert float(pattern.find_value("_pd_proc_ls_prof_wR_expected")) == pytest.approx(q.rexp, rel=1e-5)
    columns = [np.array([float(v) for v in pattern.find_values(t)]) for t in
               ("_pd_meas_intensity_total", "_pd_calc_intensity_total", "_pd_proc_ls_weight")]  # fmt: skip
    rwp = np.sqrt(np.sum(columns[2] * (columns[0] - columns[1]) ** 2) / np.sum(columns[2] * columns[0] ** 2))
    assert rwp == pytest.approx(q.rwp, rel=1e-6)
    linked = pattern.find_values("_pd_phase_block_id")
    assert gemmi.cif.as_string(linked[index]) == gemmi.cif.as_string(doc[0].find_value("_pd_block_id"))
    assert list(pattern.find_values("_pd_phase_mass_%")) == ["72.13(16)", "27.87(16)"]


def test_cif_uses_data_names_of_the_dictionaries_only(files: dict[str, bytes]) -> None:
    known = (Path(__file__).parent / "cif_data_names.txt").read_text(encoding="ascii").split()
    doc = gemmi.cif.read_string(files["corundum.cif"].decode("ascii"))
    used = {item.pair[0] for block in doc for item in block if item.pair}
    used |= {tag for block in doc for item in block if item.loop for tag in item.loop.tags}
    assert used <= set(known)
    assert len(used) > 50


def test_cif_survives_hostile_text(inp: ReportInput) -> None:
    def renamed(s: CrystalStructure) -> CrystalStructure:
        title = "\n;data_evil\n_cell_length_a 1\n" + HOSTILE + "é \x00\x1b'\""
        return dataclasses.replace(s, title=title, formula="'; loop_", space_group=s.space_group)

    hostile = dataclasses.replace(inp, structures=tuple(renamed(s) for s in inp.structures))
    data = render_files(hostile)[0]["corundum.cif"]
    doc = gemmi.cif.read_string(data.decode("ascii"))
    assert [b.name for b in doc] == ["corundum", "pattern"]
    assert doc[0].find_value("_cell_length_a") == "4.75868(4)"


_SMALL = report_input(n=61)


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=80), st.text(max_size=30))
def test_cif_takes_any_text(title: str, formula: str) -> None:
    structure = dataclasses.replace(_SMALL.structures[0], title=title, formula=formula)
    inp = dataclasses.replace(_SMALL, structures=(structure, _SMALL.structures[1]))
    doc = gemmi.cif.read_string(phase_cif(inp, 0).decode("ascii"))
    assert [b.name for b in doc] == ["fluorapatite", "pattern"]
    assert len(gemmi.make_small_structure_from_block(doc[0]).sites) == 7


def test_anisotropic_sites_carry_their_tensor_and_its_equivalent() -> None:
    first, *others = _SMALL.structures[0].atoms
    # In a hexagonal cell U12 = U11 / 2 makes the tensor a sphere in the plane: Ueq is then U11 = U33.
    sphere = dataclasses.replace(first, u_iso=None, u_aniso=(0.012, 0.012, 0.012, 0.006, 0.0, 0.0))
    structure = dataclasses.replace(_SMALL.structures[0], atoms=(sphere, *others))
    inp = dataclasses.replace(_SMALL, structures=(structure, _SMALL.structures[1]))
    block = gemmi.cif.read_string(phase_cif(inp, 0).decode("ascii"))[0]
    site = gemmi.make_small_structure_from_block(block).sites[0]
    assert site.aniso.elements_pdb() == pytest.approx([0.012, 0.012, 0.012, 0.006, 0.0, 0.0])
    assert block.find_values("_atom_site_adp_type")[0] == "Uani"
    assert gemmi.cif.as_number(block.find_values("_atom_site_U_iso_or_equiv")[0]) == pytest.approx(0.012)


def test_bundle_is_deterministic_and_complete(files: dict[str, bytes]) -> None:
    first = bundle_zip(files)
    assert first == bundle_zip(dict(reversed(files.items())))
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert archive.namelist() == sorted([*files, "manifest.json"])
        manifest = json.loads(archive.read("manifest.json"))["files"]
        assert set(manifest) == set(files)
        for name, entry in manifest.items():
            data = archive.read(name)
            assert (entry["sha256"], entry["size"]) == (hashlib.sha256(data).hexdigest(), len(data))


def test_the_same_input_gives_the_same_bytes(inp: ReportInput, files: dict[str, bytes]) -> None:
    again = render_files(report_input(n=2001))[0]
    assert {n: hashlib.sha256(d).hexdigest() for n, d in again.items()} == {
        n: hashlib.sha256(d).hexdigest() for n, d in files.items()
    }


def test_engine_files_stay_inside_the_directory(tmp_path: Path) -> None:
    inp = report_input(
        n=101,
        engine_files={
            "../../evil.json": b"1",
            "C:\\x\\evil.json": b"2",
            ".hidden": b"3",
            "..": b"4",
            "EVIL.json": b"5",
        },
    )
    paths = write_report(inp, tmp_path / "out")
    names = sorted(p.name for k, p in paths.items() if k.startswith("engine."))
    assert len({n.lower() for n in names}) == 5
    assert all(p.parent == tmp_path / "out" / "engine" for k, p in paths.items() if k.startswith("engine."))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def test_nothing_is_written_when_rendering_fails(inp: ReportInput, tmp_path: Path) -> None:
    broken = dataclasses.replace(inp, graph={"x": {1, 2}})
    with pytest.raises(TypeError):
        write_report(broken, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_is_reported_by_code(inp: ReportInput, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(StorageError) as caught:
        write_report(inp, tmp_path / "out")
    assert caught.value.code == "report_not_written"


def test_contradicting_input_is_refused(inp: ReportInput) -> None:
    arrays = dataclasses.replace(inp.arrays, y_calc=inp.arrays.y_calc[:-1])
    with pytest.raises(PolicyError) as caught:
        dataclasses.replace(inp, arrays=arrays)
    assert caught.value.context["fields"] == ["y_calc"]
