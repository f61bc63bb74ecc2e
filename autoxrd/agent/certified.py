"""Which phase has a certified cell, and is the one that the user states possible in its crystal system?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

import gemmi

from autoxrd.domain.pattern import Notice
from autoxrd.domain.standard import KnownCell
from autoxrd.domain.structure import CrystalStructure, UnitCell
from autoxrd.errors import UserInputError

__all__ = ["certified", "certified_phases", "check_cell", "find_phase", "free_cell"]

_KEYS = ("a", "b", "c", "alpha", "beta", "gamma")
_FARTHEST, _FARTHEST_DEG = 0.01, 1.0
"""Relative and in degrees: certified cells of one phase differ from its structure files' by far less. Another phase,
or a slip of a digit, does not."""


class Named(Protocol):
    """What a phase is found by."""

    @property
    def name(self) -> str:
        """In the job."""

    @property
    def source_name(self) -> str:
        """Of its file."""


NamedT = TypeVar("NamedT", bound=Named)


def find_phase(asked: str, structures: Sequence[NamedT], *, what: str, code: str) -> NamedT:
    """Return the phase that a user names: by its name in the job, or that of its CIF.

    Args:
        asked: as typed.
        structures: the phases of the job.
        what: what the phase is named for, to begin a sentence with: ``The standard``.
        code: of the error.

    Raises:
        UserInputError: the code, none or more than one phase is meant.
    """
    if not structures:
        text = "names no structure: only candidates are given, of which none is known to be there."
        raise UserInputError(code, f"{what} {asked[:80]!r} {text}")
    wanted = asked.strip().lower().removesuffix(".cif")
    found = [s for s in structures if wanted in (s.name.lower(), s.source_name.lower().removesuffix(".cif"))]
    if len(found) != 1:
        known = ", ".join(s.name for s in structures)
        why = "is none of the phases" if not found else "stands for more than one phase"
        raise UserInputError(code, f"{what} {asked[:80]!r} {why}: name one of {known}.")
    return found[0]


def certified_phases(asked: Sequence[str], structures: Sequence[NamedT]) -> Iterator[NamedT]:
    """Find the phases that a user calls certified one after the other, each once.

    Raises:
        UserInputError: ``known_cell_unknown``, ``known_cell_repeated``.
    """
    seen: set[str] = set()
    for name in asked:
        phase = find_phase(name, structures, what="The phase of known cell", code="known_cell_unknown")
        if phase.name in seen:
            raise UserInputError("known_cell_repeated", f"The cell of {phase.name} is stated more than once.")
        seen.add(phase.name)
        yield phase


def certified(
    asked: Sequence[KnownCell], structures: tuple[CrystalStructure, ...]
) -> tuple[tuple[KnownCell, ...], tuple[CrystalStructure, ...], tuple[Notice, ...]]:
    """Return the certified cells under the names of the job, the structures with them, and what a reader must know.

    Args:
        asked: as the user names them.
        structures: the phases that are believed to be there; a candidate cannot set the scale of lengths.

    Raises:
        UserInputError: ``known_cell_unknown``, ``known_cell_repeated``, ``known_cell_invalid``.
    """
    known: list[KnownCell] = []
    cells: dict[str, UnitCell] = {}
    notices = []
    for item, phase in zip(asked, certified_phases([item.phase for item in asked], structures), strict=True):
        cells[phase.name] = _cell(item, phase) if item.values else phase.cell
        known.append(replace(item, phase=phase.name))
        source = "as stated" if item.values else "from its structure file"
        text = f"{phase.name}: the cell {_told(phase, cells[phase.name])} is taken as certified, {source}, and held."
        notices.append(Notice("known_cell", text))
    changed = tuple(replace(s, cell=cells.get(s.name, s.cell)) for s in structures)
    return tuple(known), changed, tuple(notices)


def free_cell(phase: CrystalStructure) -> dict[str, float]:
    """Return the cell parameters that symmetry leaves free, by name, angstrom and degrees."""
    values = phase.cell.as_tuple()
    return {_KEYS[group[0]]: values[group[0]] for group in _free(phase)}


def check_cell(stated: Sequence[float], name: str, space_group: str, free: Mapping[str, float]) -> None:
    """Check a stated cell against the one of the structure file.

    Args:
        stated: one value for each free parameter.
        name: of the phase in the job.
        space_group: of the phase.
        free: the structure file's parameters, see `free_cell`.

    Raises:
        UserInputError: ``known_cell_invalid``.
    """
    if len(stated) != len(free):
        text = f"{name} ({space_group}) has {len(free)} free cell parameters, not {len(stated)}:"
        numbers = ",".join(f"{value:g}" for value in free.values())
        raise UserInputError("known_cell_invalid", f"{text} state {','.join(free)}, as in {name}={numbers}.")
    for (key, here), value in zip(free.items(), stated, strict=True):
        angle = _KEYS.index(key) >= 3
        away = abs(value - here) / (1.0 if angle else here)
        if not math.isfinite(value) or away > (_FARTHEST_DEG if angle else _FARTHEST):
            text = f"{key} = {value:g} of {name} is not that of its structure, {here:g}, within"
            room = f"{_FARTHEST_DEG:g} degree" if angle else f"{100 * _FARTHEST:g} %"
            raise UserInputError("known_cell_invalid", f"{text} {room}: correct the value or the structure.")


def _told(phase: CrystalStructure, cell: UnitCell) -> str:
    values = cell.as_tuple()
    return ", ".join(f"{_KEYS[group[0]]} = {values[group[0]]:g}" for group in _free(phase))


def _cell(item: KnownCell, phase: CrystalStructure) -> UnitCell:
    """Return the stated cell, if the phase can have it."""
    check_cell(item.values, phase.name, phase.space_group, free_cell(phase))
    values = list(phase.cell.as_tuple())
    for group, value in zip(_free(phase), item.values, strict=True):
        for place in group:
            values[place] = value
    return UnitCell(*values)


def _unique_axis(phase: CrystalStructure) -> int:
    """Return the axis of a monoclinic group: its sign is alone among those that a rotation or mirror gives the axes."""
    for triplet in phase.operations:
        rotation = gemmi.Op(triplet).rot
        signs = [1 if rotation[k][k] > 0 else -1 for k in range(3)]
        if abs(sum(signs)) == 1:
            return signs.index(-1 if sum(signs) > 0 else 1)
    return 1


def _free(phase: CrystalStructure) -> tuple[tuple[int, ...], ...]:
    """Return the cell parameters that symmetry leaves free, by place in a cell; those that are equal together."""
    number, cell = phase.space_group_number, phase.cell
    if number <= 2:
        return ((0,), (1,), (2,), (3,), (4,), (5,))
    if number <= 15:
        return ((0,), (1,), (2,), (3 + _unique_axis(phase),))
    if number <= 74:
        return ((0,), (1,), (2,))
    if number >= 195:
        return ((0, 1, 2),)
    if 143 <= number <= 167 and abs(cell.gamma - 120.0) > 1e-6:
        return ((0, 1, 2), (3, 4, 5))
    return ((0, 1), (2,))
