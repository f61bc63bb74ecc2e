"""Each input and action on which GSAS-II fails, or goes on with nonsense, gives a named error or an honest result here.

The cases are those of the catalogue of measured failures. File cases go through our readers, which GSAS-II's never
see; actions go through the engine's commands.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autoxrd.agent.inputs import Request, load_job
from autoxrd.domain.action import Bound
from autoxrd.domain.instrument import ANODE_LINES, Geometry, Instrument, Radiation
from autoxrd.domain.pattern import AxisKind, Pattern
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult, Snapshot
from autoxrd.errors import AutoxrdError, EngineDiverged, UserInputError
from autoxrd.io import read_instrument, read_pattern, read_structures
from tests.engines.samples import FLUORITE, LAB, ZINCITE, flat, parameter, simulated, values

CELL = "".join(f"_cell_length_{c} 5.0\n" for c in "abc")
CELL += "".join(f"_cell_angle_{c} 90\n" for c in ("alpha", "beta", "gamma"))
COLUMNS = "".join(f"_atom_site_{name}\n" for name in ("label", "type_symbol", "fract_x", "fract_y", "fract_z"))


def cif(*, cell: str = CELL, group: str = "P m -3 m", atoms: str = "Fe1 Fe 0 0 0\n", columns: str = COLUMNS) -> str:
    symmetry = f"_symmetry_space_group_name_H-M '{group}'\n" if group else ""
    return "data_x\n" + cell + symmetry + ("loop_\n" + columns + atoms if atoms else "")


CIFS: dict[str, tuple[str | bytes, str]] = {
    "cif_empty_file": ("", "file_empty"),
    "cif_garbage": ("hello world 123\n", "cif_malformed"),
    "cif_syntax_error": (cif()[:-3] + "'unclosed\nloop_\n_a\n", "cif_malformed"),
    "cif_no_atoms": (cif(atoms=""), "cif_no_atoms"),
    "cif_no_cell": (cif(cell=""), "cif_cell_missing"),
    "cif_unknown_sg": (cif(group="Q 12 foo"), "cif_no_symmetry"),
    "cif_no_sg": (cif(group=""), "cif_no_symmetry"),
    "cif_unknown_element": (cif(atoms="Qq1 Qq 0 0 0\nWat Wat .5 .5 .5\n"), "cif_unknown_element"),
    "cif_question_coords": (cif(atoms="Fe1 Fe ? ? ?\n"), "cif_coordinate_missing"),
    "cif_cell_inconsistent": (cif(cell=CELL.replace("_b 5.0", "_b 6.0")), "cif_cell_symmetry"),
    "cif_binary": (bytes(range(256)), "cif_malformed"),
}
X = [20 + 0.02 * i for i in range(2000)]


def rows(y: Callable[[int], object] = lambda i: 100 + i % 7, esd: Callable[[int], object] = lambda i: 10) -> str:
    return "".join(f"{x:.4f} {y(i)} {esd(i)}\n" for i, x in enumerate(X))


PATTERNS: dict[str, tuple[str | bytes, str]] = {
    "pwd_empty_file": ("", "file_empty"),
    "pwd_garbage": ("garbage in\n", "format_unknown"),
    "pwd_trailing_line": (rows() + "end of file here\n", "pattern_line_invalid"),
    "pwd_nonmonotonic": ("".join(f"{x:.4f} 100 10\n" for x in X[:10] + X[11:9:-1] + X[12:]), "pattern_not_monotonic"),
    "pwd_negative_intensity": (rows(lambda i: -5 if i % 10 == 0 else 100 + i % 7), "pattern_is_noise"),
    "pwd_nan_inf": (rows(lambda i: {3: "nan", 7: "inf"}.get(i, 100)), "pattern_nan"),
    "pwd_one_point": ("20.0 100 10\n", "format_unknown"),
    "pwd_brml_no_xmltodict": (b"PK\x03\x04aaaa", "format_unsupported"),
    "ref_all_zero_y": (rows(lambda i: 0, lambda i: 1), "pattern_no_intensity"),
}
READABLE = {
    "pwd_unknown_ext": rows(),
    "pwd_xy_ext": rows(),
    "pwd_txt_ext": rows(),
    "pwd_dat_ext": rows(),
    "pwd_xye_header_words": "2theta intensity esd\n" + rows(),
    "pwd_scientific_notation": "".join(f"{x:.6e} {100 + i % 7:.6e} 1.0e1\n" for i, x in enumerate(X)),
    "pwd_decimal_comma": rows(lambda i: f"{100 + i % 7}.0").replace(".", ","),
    "pwd_zero_esd_and_neg_esd": rows(esd=lambda i: -1 if i == 5 else 10),
    "pwd_decreasing_refine": "".join(reversed(rows().splitlines(keepends=True))),
}
"""Where GSAS-II's readers misread, ours read what is meant: all points, in order, with positive esds."""
OF_THE_ENGINE = {
    "cif_multiblock", "cif_origin1", "cif_latin1", "cif_Biso_and_long_label", "inst_TOF_on_CW",
    "inst_neutron_on_xray", "inst_wrong_wavelength_cell_refine", "ref_no_phase", "ref_no_variables",
    "ref_zero_cycles", "ref_stale_after_failure", "ref_nan_parameter", "ref_zero_cell", "ref_duplicate_phase",
    "ref_scale_and_phasefraction", "ref_all_at_once_bad_start", "ref_size_to_zero", "ref_unknown_atom",
    "ref_unknown_instparm", "ref_unknown_sampleparm", "ref_displaceX_in_BB", "ref_bad_atom_flag",
    "ref_bkg_too_many", "ref_bkg_bad_type", "ref_bkg_zero_coeffs", "ref_more_vars_than_obs",
    "ref_no_reflections", "ref_limits_outside", "ref_huge_background",
}  # fmt: skip
OF_THE_INPUT = {
    "cif_missing_file", "cif_wrong_hint", "pwd_missing_file", "inst_none", "inst_missing", "inst_wrong_ext",
    "inst_blank_line", "inst_no_header", "inst_missing_key_refine", "pwd_nonmonotonic_refine",
}  # fmt: skip
OF_THE_MODEL = {
    # no link, constraint or project of a user reaches GSAS-II; what stands for them here is tested
    "ref_phase_not_linked", "ref_Use_False_all", "ref_bad_constraint", "ref_constraint_unknown_var",
    "ref_constraint_nonexistent_atom", "fs_corrupt_gpx", "fs_truncated_gpx", "fs_missing_dir", "fs_readonly_dir",
    "fs_no_name", "fs_name_without_ext", "fs_dotted_name",
}  # fmt: skip


def test_every_case_of_the_catalogue_is_covered() -> None:
    catalogue = Path(__file__).resolve().parents[3] / "shared" / "engines" / "gsasii_failure_cases.json"
    if not catalogue.is_file():
        pytest.skip("the catalogue of failures is not on this machine")
    known = {*CIFS, *PATTERNS, *READABLE, *OF_THE_ENGINE, *OF_THE_INPUT, *OF_THE_MODEL}
    assert set(json.loads(catalogue.read_text())) == known


@pytest.mark.parametrize("case", [*CIFS, *PATTERNS])
def test_a_file_that_gsasii_misreads_is_refused_by_name(case: str, tmp_path: Path) -> None:
    content, code = (CIFS | PATTERNS)[case]
    path = tmp_path / ("x.cif" if case in CIFS else "x.brml" if "brml" in case else "x.xye")
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserInputError) as caught:
        read_structures(path) if case in CIFS else read_pattern(path)
    assert caught.value.code == code


@pytest.mark.parametrize("case", READABLE)
def test_a_file_that_gsasii_misreads_is_read_as_meant(case: str, tmp_path: Path) -> None:
    ending = {"pwd_unknown_ext": "abc", "pwd_xy_ext": "xy", "pwd_txt_ext": "txt", "pwd_dat_ext": "dat"}.get(case, "xye")
    path = tmp_path / f"x.{ending}"
    path.write_text(READABLE[case])
    pattern = read_pattern(path)
    np.testing.assert_allclose(pattern.x, X, atol=1e-6)
    np.testing.assert_allclose(pattern.y, [100 + i % 7 for i in range(2000)])
    assert np.all(pattern.sigma > 0.0)


INSTRUMENT = "#GSAS-II instrument parameter file\nType:PXC\nBank:1\nLam:1.54056\nZero:0\nPolariz.:0.5\nAzimuth:0\n"
INSTRUMENT += "U:2\nV:-2\nW:5\nX:0\nY:0\nZ:0\nSH/L:0.002\n"


@pytest.mark.parametrize(
    ("case", "read", "name", "content", "code"),
    [
        ("cif_missing_file", read_structures, "nope.cif", None, "file_missing"),
        ("cif_wrong_hint", read_structures, "pattern.cif", rows(), "cif_malformed"),
        ("cif_wrong_hint", read_pattern, "structure.xye", cif(), "format_unsupported"),
        ("pwd_missing_file", read_pattern, "nope.xye", None, "file_missing"),
        ("inst_missing", read_instrument, "nope.instprm", None, "file_missing"),
    ],
)
def test_a_file_that_is_not_there_or_not_what_it_should_be_is_refused(
    case: str, read: Callable[[Path], object], name: str, content: str | None, code: str, tmp_path: Path
) -> None:
    assert case in OF_THE_INPUT
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UserInputError) as caught:
        read(tmp_path / name)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("case", "name", "content"),
    [
        ("inst_wrong_ext", "i.txt", INSTRUMENT),
        ("inst_blank_line", "i.instprm", INSTRUMENT.replace("Zero", "\nZero")),
        ("inst_no_header", "i.instprm", INSTRUMENT.split("\n", 1)[1]),
        ("inst_missing_key_refine", "i.instprm", INSTRUMENT.replace("SH/L:0.002\n", "")),
    ],
)
def test_an_instrument_file_that_gsasii_stumbles_over_is_read_as_meant(
    case: str, name: str, content: str, tmp_path: Path
) -> None:
    assert case in OF_THE_INPUT
    (tmp_path / name).write_text(content)
    instrument = read_instrument(tmp_path / name)
    assert instrument.lines[0].wavelength_angstrom == 1.54056
    assert instrument.profile is not None
    assert instrument.profile.w == pytest.approx(5.0 * 8.0 * np.log(2.0) / 1e4)


@pytest.mark.usefixtures("gsasii")
def test_a_pattern_without_wavelength_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.xye").write_text(rows(lambda i: 1000 if i % 500 == 250 else 100 + i % 7))
    (tmp_path / "x.cif").write_text(cif())
    request = Request(pattern=tmp_path / "x.xye", structures=(tmp_path / "x.cif",), engine="gsasii")
    with pytest.raises(UserInputError) as caught:
        load_job(request)
    assert caught.value.code == "wavelength_missing"


@pytest.fixture(scope="module")
def data(gsasii: ProtocolSession) -> tuple[Pattern, Snapshot, EngineResult]:
    """Fluorite with noise, its root, and its first fit."""
    truth = values(phase__fluorite__scale=20.0, phase__fluorite__cell__a=5.4648, background__0=200.0)
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), truth)
    snapshot = gsasii.prepare(pattern, LAB, (FLUORITE,), {})
    return (pattern, *gsasii.execute(snapshot, EngineCommand(released=BASIC, gains=False)))


BASIC = ("phase.*.scale", "background.*")
EVERYTHING = (*BASIC, "instrument.zero", "phase.*.cell", "phase.*.uiso", "phase.*.size", "phase.*.strain")


def test_structures_that_gsasii_takes_in_silence_are_the_right_ones(gsasii: ProtocolSession, tmp_path: Path) -> None:
    (tmp_path / "two.cif").write_text(cif() + cif().replace("data_x", "data_y"))
    assert len(read_structures(tmp_path / "two.cif")) == 2
    (tmp_path / "degree.cif").write_bytes(cif().encode() + b"# \xb0\n")
    assert len(read_structures(tmp_path / "degree.cif")) == 1
    (tmp_path / "b.cif").write_text(cif(columns=COLUMNS + "_atom_site_B_iso_or_equiv\n", atoms="Fe1 Fe 0 0 0 0.79\n"))
    assert read_structures(tmp_path / "b.cif")[0].atoms[0].u_iso == pytest.approx(0.010005, rel=1e-3)
    # origin choice 1 without operators: GSAS-II makes sixteen atoms of eight
    silicon = cif(cell=CELL.replace("5.0", "5.4309"), group="F d -3 m", atoms="Si1 Si 0 0 0\n")
    (tmp_path / "si.cif").write_text(silicon)
    root = gsasii.prepare(flat(20, 90, 0.05), LAB, read_structures(tmp_path / "si.cif"), {})
    _, seen = gsasii.execute(root, EngineCommand(cycles=0, gains=False))
    assert parameter(seen, "phase.si.density")[0] == pytest.approx(2.329, abs=0.002)


def test_an_axis_or_radiation_that_does_not_fit_is_refused_or_seen(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult]
) -> None:
    with pytest.raises(UserInputError) as caught:
        gsasii.prepare(dataclasses.replace(data[0], axis=AxisKind.TOF), LAB, (FLUORITE,), {})
    assert caught.value.code == "axis_unsupported"
    neutrons = Instrument(Radiation.NEUTRON, Geometry.DEBYE_SCHERRER, LAB.lines[:1])
    root = gsasii.prepare(data[0], neutrons, (FLUORITE,), {})
    _, result = gsasii.execute(root, EngineCommand(released=BASIC, gains=False))
    # a wrong model is not refused, but nothing is dropped in silence and the misfit shows
    assert result.convergence.dropped == ()
    assert result.engine_r["gof"] > 1.5 * data[2].engine_r["gof"]


def test_a_wrong_wavelength_with_a_free_cell_collapses_nothing(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult]
) -> None:
    molybdenum = dataclasses.replace(LAB, lines=ANODE_LINES["Mo"])
    root = gsasii.prepare(data[0], molybdenum, (FLUORITE,), {})
    released = (*BASIC, "sample.displacement", "phase.*.cell")
    _, result = gsasii.execute(root, EngineCommand(released=released, gains=False))
    cell = parameter(result, "phase.fluorite.cell.a")[0]
    assert cell > 1.0
    honest = not result.convergence.converged or result.convergence.dropped or result.engine_r["gof"] > 3.0
    assert honest


def test_a_model_without_phase_or_reflections_is_refused(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult]
) -> None:
    pattern = data[0]
    cases: list[tuple[tuple[object, ...], dict[str, object], str]] = [
        ((), {}, "no_phase"),
        ((FLUORITE,), {"two_theta_limits": [5.0, 10.0]}, "range_empty"),
        ((FLUORITE,), {"two_theta_limits": [80.0, 30.0]}, "range_reversed"),
        ((FLUORITE,), {"background_terms": 80}, "setting_invalid"),
        ((FLUORITE,), {"background": "no such"}, "setting_unknown"),
    ]
    for phases, settings, code in cases:
        with pytest.raises(UserInputError) as caught:
            gsasii.prepare(pattern, LAB, phases, settings)  # type: ignore[arg-type]
        assert caught.value.code == code
    empty = flat(10.0, 14.0, 0.02)
    with pytest.raises(UserInputError) as refused:
        gsasii.prepare(empty, LAB, (FLUORITE,), {})
    assert refused.value.code == "model_rejected"


def test_a_command_without_variables_or_cycles_keeps_everything(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult]
) -> None:
    for command in (EngineCommand(gains=False), EngineCommand(released=BASIC, cycles=0, gains=False)):
        after, result = gsasii.execute(data[1], command)
        assert after.payload == data[1].payload
        np.testing.assert_array_equal(result.y_calc, data[2].y_calc)


@pytest.mark.parametrize("length", [0.0, -5.0, 1e-4])
def test_a_cell_that_is_none_is_an_error_and_not_an_older_result(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult], length: float
) -> None:
    edit = Edit("value", {"selector": "phase.fluorite.cell.a", "value": length})
    with pytest.raises(AutoxrdError) as caught:
        gsasii.execute(data[1], EngineCommand(released=BASIC, edits=(edit,), gains=False))
    assert isinstance(caught.value, EngineDiverged)
    assert caught.value.code in ("cell_collapsed", "model_rejected")


def test_a_phase_given_twice_is_said_to_be_undetermined(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult]
) -> None:
    twin = dataclasses.replace(FLUORITE, name="twin")
    root = gsasii.prepare(data[0], LAB, (FLUORITE, twin), {})
    _, result = gsasii.execute(root, EngineCommand(released=BASIC, gains=False))
    assert set(result.convergence.dropped) & {"phase.fluorite.scale", "phase.twin.scale"}


def test_everything_free_from_a_bad_start_is_not_called_a_success(gsasii: ProtocolSession) -> None:
    truth = values(phase__fluorite__scale=20.0, background__0=200.0)
    pattern, _ = simulated(gsasii, LAB, (FLUORITE,), truth)
    far = dataclasses.replace(ZINCITE, cell=dataclasses.replace(ZINCITE.cell, a=3.6, b=3.6, c=4.4))
    root = gsasii.prepare(pattern, LAB, (far,), {})
    _, result = gsasii.execute(root, EngineCommand(released=EVERYTHING, gains=False))
    assert parameter(result, "phase.zincite.cell.a")[0] > 1.0
    honest = not result.convergence.converged or result.convergence.dropped or result.engine_r["gof"] > 3.0
    assert honest


def test_a_size_driven_to_nothing_stops_at_its_limit(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult]
) -> None:
    edit = Edit("value", {"selector": "phase.fluorite.size", "value": 2.0})
    _, result = gsasii.execute(data[1], EngineCommand(released=(*BASIC, "phase.*.size"), edits=(edit,), gains=False))
    value, _ = parameter(result, "phase.fluorite.size")
    assert 0.0 <= value < 0.05
    assert result.convergence.converged


@pytest.mark.parametrize(
    "selector",
    ["phase.fluorite.atom.Zz.uiso", "instrument.foo", "sample.foo", "sample.offset_along", "phase.fluorite.atom.Ca1.Q"],
)
def test_a_selector_that_the_model_does_not_have_is_told(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult], selector: str
) -> None:
    _, result = gsasii.execute(data[1], EngineCommand(released=(*BASIC, selector), gains=False))
    assert selector in result.convergence.dropped
    assert "selector_unmatched" in {notice.code for notice in result.notices}


@pytest.mark.parametrize("terms", [0, 80])
def test_a_number_of_background_terms_that_makes_no_sense_is_refused(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult], terms: int
) -> None:
    with pytest.raises(UserInputError) as caught:
        gsasii.execute(data[1], EngineCommand(edits=(Edit("background", {"terms": terms}),)))
    assert caught.value.code == "edit_invalid"


def test_a_huge_background_comes_back(gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult]) -> None:
    edit = Edit("value", {"selector": "background.0", "value": 1e9})
    _, result = gsasii.execute(data[1], EngineCommand(released=BASIC, edits=(edit,), gains=False))
    assert parameter(result, "background.0")[0] == pytest.approx(parameter(data[2], "background.0")[0], rel=1e-3)


@pytest.mark.parametrize("order", [slice(None, None, -1), [*range(10), 11, 10, *range(12, 2334)]])
def test_angles_out_of_order_never_reach_a_fit(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult], order: object
) -> None:
    pattern = data[0]
    with pytest.raises(UserInputError) as caught:
        gsasii.prepare(dataclasses.replace(pattern, x=pattern.x[order]), LAB, (FLUORITE,), {})  # type: ignore[index]
    assert caught.value.code in ("pattern_invalid", "pattern_not_monotonic")


@pytest.mark.parametrize(
    "edit",
    [
        Edit("equal_uiso", {"phases": ["no such"]}),
        Edit("anisotropic", {"phase": "fluorite", "atoms": ["Zz"]}),
        Edit("broadening", {"phase": "fluorite", "effect": "shape", "model": "uniaxial"}),
        Edit("broadening", {"phase": "fluorite", "effect": "size", "model": "uniaxial", "axis": (0.0, 0.0, 0.0)}),
        Edit("value", {"selector": "phase.fluorite.cell.b", "value": 5.0}),
        Edit("value", {"selector": "phase.no such.scale", "value": 5.0}),
        Edit("constraint", {"text": "0::AUiso:1 = 0::AUiso:2"}),
        Edit("remove_phase", {"phase": "fluorite"}),
    ],
)
def test_a_condition_on_what_is_not_there_is_refused(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult], edit: Edit
) -> None:
    with pytest.raises(UserInputError) as caught:
        gsasii.execute(data[1], EngineCommand(released=BASIC, edits=(edit,)))
    assert caught.value.code in ("edit_invalid", "edit_unknown")


def test_contradictory_limits_are_refused(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult]
) -> None:
    scale = "phase.fluorite.scale"
    for bounds in (
        (Bound(selector=scale, lower=30.0, upper=10.0),),
        (Bound(selector=scale, lower=0.0, upper=5.0), Bound(selector="phase.*.scale", lower=8.0, upper=9.0)),
    ):
        with pytest.raises(UserInputError) as caught:
            gsasii.execute(data[1], EngineCommand(released=BASIC, bounds=bounds, gains=False))
        assert caught.value.code == "bounds_contradictory"


@pytest.mark.parametrize("damage", ["cut", "other", "empty", "changed"])
def test_a_damaged_state_is_refused(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult], damage: str
) -> None:
    whole = data[1].payload
    payload = {
        "cut": whole[: len(whole) // 2],
        "other": b"not a state at all",
        "empty": b"",
        "changed": whole[:60] + bytes([whole[60] ^ 255]) + whole[61:],
    }[damage]
    with pytest.raises(UserInputError) as caught:
        gsasii.execute(Snapshot("gsasii", payload), EngineCommand(cycles=0))
    assert caught.value.code == "snapshot_unreadable"


def test_the_files_of_a_project_have_names_of_ours_and_no_place(
    gsasii: ProtocolSession, data: tuple[Pattern, Snapshot, EngineResult]
) -> None:
    dotted = dataclasses.replace(FLUORITE, name="a-b_c+d")
    root = gsasii.prepare(data[0], LAB, (dotted,), {})
    files = gsasii.export(root, ("native", "hkl")).files
    names = {"refinement.gpx", "refinement.lst", "snapshot.bin", "gsasii-check.json", "reflections.csv"}
    assert set(files) == names
    assert all(content for content in files.values())


def test_an_instrument_file_runs_no_code(tmp_path: Path) -> None:
    path, mark = tmp_path / "x.instprm", tmp_path / "ran"
    lines = ["#GSAS-II instrument parameter file", "Type:PXC", "Bank:1", "Lam:1.54", "Zero:0", "Polariz.:0.5"]
    lines += ["Azimuth:0", "U:2", "V:-2", "W:5", "X:0", "Y:0", "Z:0", "SH/L:0.002"]
    code = f'CorrectionCode:"""\nopen({str(mark)!r}, "w").close()\n"""'
    path.write_text("\n".join([*lines, code]) + "\n")
    try:
        read_instrument(path)
    except UserInputError as error:
        assert error.code  # noqa: PT017 (refusing the file is one of two good ends)
    assert not mark.exists()
