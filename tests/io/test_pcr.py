"""A FullProf control file is walked whole or refused by name; what it releases is listed, its faults are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autoxrd.errors import UserInputError
from autoxrd.io.pcr import PcrReport, check_pcr
from autoxrd.io.pcr_text import numbers_of
from autoxrd.resources import resource_path

OURS = resource_path("skills/example") / "corundum.pcr"
SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "fullprof"


def check(text: str, folder: Path) -> PcrReport:
    path = folder / "job.pcr"
    path.write_bytes(text.encode("latin-1"))
    return check_pcr(path)


def changed(old: str, new: str) -> str:
    text = OURS.read_text()
    assert old in text
    return text.replace(old, new, 1)


def test_our_file_releases_what_it_should() -> None:
    report = check_pcr(OURS)
    assert report.faults == ()
    assert report.notices == ()
    assert report.maxs == 7
    assert {group.number: [name for name, _ in group.members] for group in report.released} == {
        1: ["phase.1.scale"],
        2: ["phase.1.atom.Al.z"],
        3: ["phase.1.atom.O.x"],
        4: ["phase.1.a", "phase.1.b"],
        5: ["phase.1.c"],
        6: ["sycos"],
        7: ["phase.1.atom.Al.biso", "phase.1.atom.O.biso"],
    }


@pytest.mark.parametrize(
    ("file", "slots", "active", "maxs"),
    [
        ("edi_cosio/cosio.pcr", 75, 40, 39),
        ("edi_cosio/full-fit.inp", 75, 40, 39),
        ("edi_latp/latp.pcr", 179, 65, 54),
        ("edi_lif_single_pol/lif_single_polarized.pcr", 47, 0, 0),
        ("edi_y2o3_aniso/y2o3.pcr", 85, 0, 0),
        ("ozakary_RbNb2O5F/RbNb2O5F.pcr", 142, 22, 15),
        ("ozakary_RbTa2O5F/RbTa2O5F.pcr", 142, 22, 15),
    ],
)
def test_files_that_fullprof_wrote_are_walked_to_the_end(file: str, slots: int, active: int, maxs: int) -> None:
    """The counts are those of an independent walk of the same files."""
    path = SAMPLES / file
    if not path.is_file():
        pytest.skip("the shared FullProf samples are not on this machine")
    report = check_pcr(path)
    assert report.faults == ()
    assert (report.n_slots, sum(len(g.members) for g in report.released), report.maxs) == (slots, active, maxs)
    assert len(report.released) == maxs


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("edi_arg_si_ic_tof/arg_si_ic.pcr", "pcr_job"),
        ("edi_duplex_tof_npatt2/duplex_mode6-IRF.new", "pcr_not_single"),
        ("ozakary_RbNb2O5F/RbNb2O5F.new", "pcr_not_finite"),
    ],
)
def test_what_is_out_of_scope_is_refused_by_name(file: str, code: str) -> None:
    path = SAMPLES / file
    if not path.is_file():
        pytest.skip("the shared FullProf samples are not on this machine")
    with pytest.raises(UserInputError) as refused:
        check_pcr(path)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("       7    !Number", "       8    !Number", "maxs_mismatch"),
        ("   51.00000", "   91.00000", "number_hole"),
        ("   51.00000", "    1.00000", "codeword_without_number"),
        ("   51.00000", "   50.00000", "codeword_without_multiplier"),
        ("\nCorundum\n", "\nCorundum VARY xyz b\n", "directive_in_name"),
    ],
)
def test_a_fault_of_the_codewords_is_named(old: str, new: str, code: str, tmp_path: Path) -> None:
    assert code in [fault.code for fault in check(changed(old, new), tmp_path).faults]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (" Aut\n   0   7   1   4   1", " Aut\n   0   7   1   5   1", "pcr_count"),
        ("   2   0   0 0.0 0.0 1.0", "   3   0   0 0.0 0.0 1.0", "pcr_count"),
        ("   2   0   0 0.0 0.0 1.0", "   1   0   0 0.0 0.0 1.0", "pcr_count"),
        ("1.0   0   0   0   0   0  ", "1.0   2   0   0   0   0  ", "pcr_jbt"),
        ("1.0   0   0   0   0   0  ", "1.0   0   0   1   0   0  ", "pcr_scope"),
        ("   4.759000   4.759000  12.992000", "   0.475900   0.475900   1.299200", "pcr_value"),
        ("   0   7   1   4   1", "   0   7   1   4   9", "pcr_count"),
        ("COMM ", "", "pcr_not_single"),
        ("0.33000", "    NaN", "pcr_not_finite"),
        ("0.00000   61.0", "0.00000   61.0 3 4", "pcr_count"),
    ],
)
def test_a_file_that_cannot_be_walked_is_refused(old: str, new: str, code: str, tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match=r"job\.pcr") as refused:
        check(changed(old, new), tmp_path)
    assert refused.value.code == code


def test_ties_between_different_values_and_switches_are_told(tmp_path: Path) -> None:
    text = changed("   4.759000   4.759000", "   4.759000   4.761000").replace("1   1   2   0   4", "1   1   1   0   4")
    assert [notice.code for notice in check(text, tmp_path).notices] == ["tied_values_differ", "file_overwritten"]


def _mutants(change: Callable[[list[str], int], list[str]]) -> list[str]:
    lines = OURS.read_text().splitlines()
    data = [i for i, line in enumerate(lines) if line.strip() and not line.startswith("!")]
    return ["\n".join(change(lines, i)) + "\n" for i in data]


@pytest.mark.parametrize(
    ("change", "most"),
    [
        # what a walk cannot see: the optional last line
        (lambda rows, i: rows[:i] + rows[i + 1 :], 1),
        (lambda rows, i: [*rows[: i + 1], *rows[i:]], 0),
    ],
    ids=["deleted", "doubled"],
)
def test_a_lost_or_doubled_line_does_not_pass(
    change: Callable[[list[str], int], list[str]], most: int, tmp_path: Path
) -> None:
    passed = []
    for number, text in enumerate(_mutants(change)):
        try:
            report = check(text, tmp_path)
        except UserInputError:
            continue
        if not report.faults:
            passed.append(number)
    assert len(passed) <= most, passed


def test_numbers_are_read_as_fortran_reads_them() -> None:
    assert numbers_of("  0.0-0.25030 1.D-3 .5 7  ! 9") == [0.0, -0.2503, 1e-3, 0.5, 7.0]
    assert numbers_of("1.0 2.0 Propagation Vector 1") == [1.0, 2.0]
    assert numbers_of("R -3 c") == []


@pytest.mark.parametrize("text", ["", "\n", "COMM\n", "COMM x\n" + "1 " * 19 + "\n", "\x00" * 50, "COMM x\n" * 4000])
def test_any_text_is_refused_with_a_sentence(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserInputError):
        check(text, tmp_path)


def test_old_bytes_and_line_ends_are_no_obstacle(tmp_path: Path) -> None:
    text = OURS.read_text().replace("\n", "\r\n").replace("! \r", "! \x00\x00\xe9\r")
    assert check(text.replace("Corundum\r", "#Cor\xe9\r"), tmp_path).maxs == 7
