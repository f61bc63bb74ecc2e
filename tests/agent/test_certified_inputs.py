"""Which cell a user may state as certified: of a phase of the job, possible in its crystal system, near its file's."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoxrd.agent.certified import certified
from autoxrd.agent.inputs import Request, load_job
from autoxrd.domain.standard import KnownCell
from autoxrd.domain.structure import CrystalStructure, UnitCell
from autoxrd.errors import UserInputError
from tests.agent.mixture import HALITE, write_mixture
from tests.agent.small import CIF, write_inputs


def _phase(
    name: str, number: int, cell: tuple[float, ...], operations: tuple[str, ...] = ("x,y,z",)
) -> CrystalStructure:
    return CrystalStructure(
        name, name, "group", number, operations, UnitCell(*cell), (), source_name=f"{name}-file.cif"
    )


FLUORITE = _phase("fluorite", 225, (5.4631, 5.4631, 5.4631, 90, 90, 90))
CORUNDUM = _phase("corundum", 167, (4.7592, 4.7592, 12.9918, 90, 90, 120))
RHOMBS = _phase("rhombs", 167, (5.13, 5.13, 5.13, 55.28, 55.28, 55.28))
GYPSUM = _phase("gypsum", 15, (6.28, 15.2, 5.67, 90, 90.0, 90), ("x,y,z", "-x,-y,-z", "-x,y,-z+1/2", "x,-y,z+1/2"))
ON_C = _phase("on_c", 5, (6.28, 15.2, 5.67, 90, 90.0, 101.0), ("x,y,z", "-x,-y,z"))
KYANITE = _phase("kyanite", 2, (7.12, 7.85, 5.57, 89.9, 101.1, 106.0))


@pytest.mark.parametrize(
    ("phase", "values", "cell"),
    [
        (FLUORITE, (5.465,), (5.465, 5.465, 5.465, 90, 90, 90)),
        (CORUNDUM, (4.7591, 12.9917), (4.7591, 4.7591, 12.9917, 90, 90, 120)),
        (RHOMBS, (5.131, 55.3), (5.131, 5.131, 5.131, 55.3, 55.3, 55.3)),
        (GYPSUM, (6.281, 15.21, 5.671, 90.1), (6.281, 15.21, 5.671, 90, 90.1, 90)),
        (ON_C, (6.281, 15.21, 5.671, 101.1), (6.281, 15.21, 5.671, 90, 90, 101.1)),
        (KYANITE, (7.121, 7.851, 5.571, 89.8, 101.2, 106.1), (7.121, 7.851, 5.571, 89.8, 101.2, 106.1)),
    ],
)
def test_the_free_parameters_of_each_crystal_system(
    phase: CrystalStructure, values: tuple[float, ...], cell: tuple[float, ...]
) -> None:
    known, (changed,), (notice,) = certified([KnownCell(phase.name.upper(), values)], (phase,))
    assert changed.cell.as_tuple() == cell
    assert known == (KnownCell(phase.name, values),)
    assert notice.code == "known_cell"
    assert "as stated" in notice.text


def test_without_values_the_cell_is_that_of_the_file_which_may_name_the_phase() -> None:
    known, phases, (notice,) = certified([KnownCell("corundum-file.cif")], (FLUORITE, CORUNDUM))
    assert phases == (FLUORITE, CORUNDUM)
    assert known == (KnownCell("corundum"),)
    assert "a = 4.7592, c = 12.9918" in notice.text
    assert "from its structure file" in notice.text


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        ([KnownCell("silicon")], "known_cell_unknown", "name one of fluorite, corundum"),
        ([KnownCell("fluorite"), KnownCell("Fluorite")], "known_cell_repeated", "more than once"),
        ([KnownCell("corundum", (4.7591,))], "known_cell_invalid", "state a,c, as in corundum=4.7592,12.9918"),
        ([KnownCell("fluorite", (5.46, 5.46, 5.46))], "known_cell_invalid", "1 free cell parameters, not 3"),
        ([KnownCell("fluorite", (5.6402,))], "known_cell_invalid", "within 1 %"),
        ([KnownCell("fluorite", (float("nan"),))], "known_cell_invalid", "correct the value"),
    ],
)
def test_what_cannot_be_is_refused_by_name(asked: list[KnownCell], code: str, said: str) -> None:
    with pytest.raises(UserInputError) as caught:
        certified(asked, (FLUORITE, CORUNDUM))
    assert caught.value.code == code
    assert said in caught.value.detail


def test_a_candidate_cannot_set_the_scale_of_lengths(tmp_path: Path) -> None:
    pattern, fluorite = write_inputs(tmp_path)
    halite = tmp_path / "halite.cif"
    halite.write_text(HALITE)
    asked = Request(
        pattern=pattern, structures=(fluorite,), candidates=(halite,), anode="Cu", known_cells=(KnownCell("halite"),)
    )
    with pytest.raises(UserInputError, match="name one of fluorite"):
        load_job(asked)


def test_it_is_part_of_the_job(tmp_path: Path) -> None:
    pattern, fluorite, halite = write_mixture(tmp_path)
    assert CIF in fluorite.read_text()
    plain = Request(pattern=pattern, structures=(fluorite, halite), anode="Cu")
    stated = Request(
        pattern=pattern, structures=(fluorite, halite), anode="Cu", known_cells=(KnownCell("fluorite", (5.4652,)),)
    )
    jobs = [load_job(request)[0] for request in (plain, stated)]
    assert jobs[0].known_cells == ()
    assert jobs[1].structures[0].cell.a == 5.4652
    assert jobs[1].known_cells == (KnownCell("fluorite", (5.4652,)),)
    # a single pattern has no notices of a standard's to take their place
    assert [notice.code for notice in jobs[1].notices].count("known_cell") == 1
