"""Which space group does a CIF mean? Its operators decide; symbols are compared with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from autoxrd.domain.pattern import Notice
from autoxrd.io.origin import shift_between
from autoxrd.io.source import Source, shown

if TYPE_CHECKING:
    import gemmi

__all__ = ["Symmetry", "resolve_symmetry"]

_OPERATION_TAGS = (
    "_space_group_symop_operation_xyz",
    "_symmetry_equiv_pos_as_xyz",
    "_space_group_symop.operation_xyz",
    "_symmetry_equiv.pos_as_xyz",
)
_SYMBOL_TAGS = (
    "_space_group_name_H-M_alt",
    "_symmetry_space_group_name_H-M",
    "_space_group_name_H-M_ref",
    "_space_group.name_H-M_alt",
    "_symmetry.space_group_name_H-M",
)
_HALL_TAGS = ("_space_group_name_Hall", "_symmetry_space_group_name_Hall", "_space_group.name_Hall")
_NUMBER_TAGS = ("_space_group_IT_number", "_symmetry_Int_Tables_number", "_space_group.IT_number")
_MAX_ORDER = 192


@dataclass(frozen=True)
class Symmetry:
    """The resolved group.

    Args:
        operations: all operations as xyz triplets, identity first, centring included.
        symbol: Hermann-Mauguin symbol with setting.
        number: number in International Tables, 0 where the setting is not tabulated.
        origin_alternatives: operations of the other origin choice of the same group, or empty.
        shift: to add to the coordinates of the file, fractional, where its setting is not tabulated.
        notices: what had to be decided.
    """

    operations: tuple[str, ...]
    symbol: str
    number: int
    origin_alternatives: tuple[str, ...] = ()
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    notices: tuple[Notice, ...] = ()


def _first(block: gemmi.cif.Block, tags: Sequence[str]) -> str:
    """First given value among some tags, unquoted."""
    import gemmi

    for tag in tags:
        value = block.find_value(tag)
        if value is not None and value not in ("?", "."):
            text = gemmi.cif.as_string(value).strip()
            if text and text not in ("?", "."):
                return text
    return ""


def resolve_symmetry(block: gemmi.cif.Block, source: Source, cell: gemmi.UnitCell) -> Symmetry:
    """Find the group of a CIF block: operators first, then symbol, Hall symbol, number.

    Raises:
        UserInputError: ``cif_no_symmetry``, ``cif_operation_invalid``, ``cif_operations_no_group``.
    """
    listed = _listed_operations(block, source)
    symbol = _first(block, _SYMBOL_TAGS)
    by_symbol = _by_symbol(symbol, cell)
    notices: list[Notice] = []
    if by_symbol is None:
        by_symbol = _by_hall_or_number(block, notices, quiet=bool(listed))
    if listed is None:
        if by_symbol is None:
            given = f"the symbol '{shown(symbol)}' is not known" if symbol else "no space group is given"
            sentence = f"{given} and no symmetry operators are listed; give one of the two."
            raise source.error("cif_no_symmetry", sentence, symbol=shown(symbol))
        return _from_group(by_symbol, notices)
    if len(listed) == 1 and by_symbol is not None and len(list(by_symbol.operations())) > 1:
        text = (
            f"Only the identity is listed as operator but the symbol is {by_symbol.xhm()}: the symbol is used. "
            "If all atoms of the cell are listed, write P 1."
        )
        notices.append(Notice("cif_identity_only", text))
        return _from_group(by_symbol, notices)
    return _from_operations(listed, by_symbol, symbol, notices)


def _listed_operations(block: gemmi.cif.Block, source: Source) -> list[str] | None:
    """Operators of the block as normal triplets, each once, identity first; None where none are listed."""
    import gemmi

    for tag in _OPERATION_TAGS:
        raw = [gemmi.cif.as_string(value) for value in block.find_values(tag)]
        raw = [text for text in raw if text.strip() not in ("", "?", ".")]
        if not raw:
            continue
        if len(raw) > 4 * _MAX_ORDER:
            raise source.error("cif_operation_invalid", f"lists {len(raw)} symmetry operators; at most 192 exist.")
        triplets: dict[str, None] = {}
        for text in raw:
            try:
                operation = gemmi.Op(text.replace(" ", "").replace("'", "").replace('"', ""))
                operation.wrap()
            except (ValueError, RuntimeError) as error:
                sentence = f"the symmetry operator '{shown(text)}' is not valid; expected the form 'x,y,z'."
                raise source.error("cif_operation_invalid", sentence) from error
            if abs(operation.det_rot()) != operation.DEN**3:
                sentence = f"the symmetry operator '{shown(text)}' is not a rotation or inversion."
                raise source.error("cif_operation_invalid", sentence)
            triplets[operation.triplet()] = None
        return _closed(list(triplets), source)
    return None


def _closed(triplets: list[str], source: Source) -> list[str]:
    """Check that the operators form a group; complete generators where they give one."""
    import gemmi

    seen = {"x,y,z": gemmi.Op("x,y,z")} | {text: gemmi.Op(text) for text in triplets}
    queue = list(seen)
    while queue:
        left = seen[queue.pop()]
        for right in list(seen.values()):
            product = left.combine(right)
            product.wrap()
            text = product.triplet()
            if text not in seen:
                seen[text] = product
                queue.append(text)
                if len(seen) > _MAX_ORDER:
                    raise source.error("cif_operations_no_group", "the symmetry operators do not form a space group.")
    return list(seen)


def _by_symbol(symbol: str, cell: gemmi.UnitCell) -> gemmi.SpaceGroup | None:
    """Look a Hermann-Mauguin symbol up, in the spellings that databases use."""
    import gemmi

    text = re.sub(r"\s+", " ", symbol.replace("_", "")).strip()
    if not text:
        return None
    suffix = re.match(r"^(.*?)\s*(?::\s*)?([SZ]|RS|HS|:?[12HR])$", text, re.I)
    spellings = [text]
    if suffix and suffix[2].upper() in ("S", "Z", "RS", "HS"):
        # ICSD and old COD files: S and Z are origin choices 1 and 2, RS and HS the axes of R groups.
        setting = {"S": "1", "Z": "2", "RS": "R", "HS": "H"}[suffix[2].upper()]
        spellings += [f"{suffix[1].strip()}:{setting}", suffix[1].strip()]
    for spelling in spellings:
        found = gemmi.find_spacegroup_by_name(spelling, cell.alpha, cell.gamma)
        if found is None:
            found = gemmi.find_spacegroup_by_name(spelling.capitalize(), cell.alpha, cell.gamma)
        if found is not None:
            return found
    return None


def _by_hall_or_number(block: gemmi.cif.Block, notices: list[Notice], *, quiet: bool) -> gemmi.SpaceGroup | None:
    """Look the group up by its Hall symbol, else by its number in the reference setting."""
    import gemmi

    hall = _first(block, _HALL_TAGS)
    if hall:
        try:
            found = gemmi.find_spacegroup_by_ops(gemmi.symops_from_hall(hall))
        except (ValueError, RuntimeError):
            found = None
        if found is not None:
            return found
    number = _first(block, _NUMBER_TAGS)
    if number.isdecimal() and 1 <= int(number) <= 230:
        found = gemmi.find_spacegroup_by_number(int(number))
        if not quiet and found is not None:
            text = f"Only the number {number} names the space group: its standard setting {found.xhm()} is assumed."
            notices.append(Notice("cif_setting_assumed", text))
        return found
    return None


def _triplets(group: gemmi.GroupOps) -> tuple[str, ...]:
    """All operations of a gemmi group, identity first."""
    texts = []
    for operation in group:
        operation.wrap()
        texts.append(operation.triplet())
    return tuple(sorted(texts, key=lambda text: text != "x,y,z"))


def _from_group(group: gemmi.SpaceGroup, notices: list[Notice]) -> Symmetry:
    """Take the operations that the symbol stands for."""
    return Symmetry(
        operations=_triplets(group.operations()),
        symbol=group.xhm(),
        number=group.number,
        origin_alternatives=_other_origin(group),
        notices=tuple(notices),
    )


def _other_origin(group: gemmi.SpaceGroup) -> tuple[str, ...]:
    """Operations of the other origin choice, where the tables have two."""
    import gemmi

    if group.ext not in ("1", "2"):
        return ()
    other = gemmi.find_spacegroup_by_name(f"{group.hm}:{'2' if group.ext == '1' else '1'}")
    return () if other is None else _triplets(other.operations())


def _from_operations(
    listed: list[str], by_symbol: gemmi.SpaceGroup | None, symbol: str, notices: list[Notice]
) -> Symmetry:
    """Take the listed operations and say where the symbol disagrees."""
    import gemmi

    group = gemmi.GroupOps([gemmi.Op(text) for text in listed])
    found = gemmi.find_spacegroup_by_ops(group)
    operations = tuple(sorted(listed, key=lambda text: text != "x,y,z"))
    if found is None and by_symbol is not None:
        shift = shift_between(operations, _triplets(by_symbol.operations()))
        if shift is not None:
            text = (
                f"The listed operators are those of {by_symbol.xhm()} with another origin: all atoms are shifted by "
                f"{shift[0]:g}, {shift[1]:g}, {shift[2]:g} to the tabulated one."
            )
            notices.append(Notice("cif_origin_shifted", text))
            return replace(_from_group(by_symbol, notices), shift=shift)
    if by_symbol is not None and set(_triplets(by_symbol.operations())) != set(operations):
        name = found.xhm() if found is not None else "a setting without a symbol"
        text = (
            f"The symbol says {by_symbol.xhm()} but the listed operators are those of {name}: the operators are used."
        )
        notices.append(Notice("cif_symbol_differs", text))
    elif by_symbol is None and symbol:
        notices.append(
            Notice("cif_symbol_unknown", f"The symbol '{shown(symbol)}' is not known; the operators are used.")
        )
    if found is None:
        text = "The setting has no tabulated symbol; the listed operators are used as they are."
        notices.append(Notice("cif_setting_untabulated", text))
        return Symmetry(operations, shown(symbol) or "unknown", 0, notices=tuple(notices))
    return Symmetry(operations, found.xhm(), found.number, _other_origin(found), notices=tuple(notices))
