"""Read candidate structures from a CIF and refuse what a refinement would silently get wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from autoxrd.domain.pattern import Notice
from autoxrd.domain.structure import CrystalStructure
from autoxrd.io.cif_atoms import read_atoms
from autoxrd.io.cif_cell import fit_cell, read_cell
from autoxrd.io.cif_checks import check_contents, check_origin, check_sites
from autoxrd.io.naming import name_structures, structure_name
from autoxrd.io.settings import DEFAULT_CIF_SETTINGS, CifSettings
from autoxrd.io.sites import Operations
from autoxrd.io.source import Source, load_source, shown
from autoxrd.io.symmetry import resolve_symmetry

if TYPE_CHECKING:
    import gemmi

__all__ = ["first_text", "parse_cif", "read_structures"]

_NAME_TAGS = ("_chemical_name_mineral", "_chemical_name_common", "_pd_phase_name", "_chemical_name_systematic")
_FORMULA_TAGS = ("_chemical_formula_sum", "_chemical_formula_structural", "_chemical_formula_moiety")


def read_structures(
    path: Path, *, settings: CifSettings = DEFAULT_CIF_SETTINGS, lattice: bool = False
) -> tuple[CrystalStructure, ...]:
    """Read all phases of a CIF: one for each data block with atoms.

    Args:
        path: the file.
        settings: limits and tolerances.
        lattice: read cell and space group only, of each data block with a cell; atoms are not looked at.

    Returns:
        One checked structure per block with atoms, names unique among them, special positions exact.

    Raises:
        UserInputError: ``file_*``, ``cif_malformed``, ``cif_no_atoms``, ``cif_cell_missing``, ``cif_cell_invalid``,
            ``cif_cell_symmetry``, ``cif_no_symmetry``, ``cif_operation_invalid``, ``cif_operations_no_group``,
            ``cif_unknown_element``, ``cif_coordinate_missing``, ``cif_occupancy_invalid``, ``cif_site_overfull``,
            ``cif_origin_conflict``, ``cif_too_many_atoms``.
    """
    source = load_source(Path(path), max_bytes=settings.max_bytes)
    blocks = [block for block in parse_cif(source) if (_has_cell(block) if lattice else _has_atoms(block))]
    if not blocks and lattice:
        raise source.error("cif_cell_missing", "has no cell (no _cell_length_a); a profile match needs one.")
    if not blocks:
        sentence = (
            "has no atoms (no _atom_site_fract_x); a Rietveld refinement needs them: give a CIF with coordinates, or "
            "ask for a profile match (--profile-match) where only the cell is known."
        )
        raise source.error("cif_no_atoms", sentence)
    read = _lattice if lattice else _structure
    structures = [read(block, source, settings, alone=len(blocks) == 1) for block in blocks]
    return name_structures(structures)


def parse_cif(source: Source, code: str = "cif_malformed") -> gemmi.cif.Document:
    """Parse the text; the message gives the line that gemmi names.

    Raises:
        UserInputError: with this code.
    """
    import gemmi

    if source.looks_binary:
        raise source.error(code, "holds binary data; expected a CIF (text that begins with data_).")
    try:
        document = gemmi.cif.read_string(source.text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", ""))
    except (ValueError, RuntimeError, UnicodeError) as error:
        reason = str(error)
        line = re.search(r"string:(\d+)", reason)
        detail = shown(re.sub(r"^string:[\d:()]*\s*", "", reason))
        sentence = f"is not a valid CIF ({detail}); expected the CIF syntax of the IUCr."
        raise source.error(code, sentence, line=int(line[1]) if line else None) from error
    return document


def _has_atoms(block: gemmi.cif.Block) -> bool:
    """Whether a block holds a table of fractional coordinates."""
    return bool(block.find_values("_atom_site_fract_x")) or bool(block.find_values("_atom_site.fract_x"))


def _has_cell(block: gemmi.cif.Block) -> bool:
    """Whether a block holds a cell."""
    return any(block.find_value(tag) is not None for tag in ("_cell_length_a", "_cell.length_a"))


def first_text(block: gemmi.cif.Block, tags: tuple[str, ...]) -> str:
    """First given text among some tags."""
    import gemmi

    for tag in tags:
        value = block.find_value(tag)
        if value is not None and value not in ("?", "."):
            text = " ".join(gemmi.cif.as_string(value).split())
            if text not in ("", "?", "."):
                return text
    return ""


def _structure(block: gemmi.cif.Block, source: Source, settings: CifSettings, *, alone: bool) -> CrystalStructure:
    """Read one block."""
    import gemmi

    given = read_cell(block, source, min_length=settings.min_cell_angstrom)
    symmetry = resolve_symmetry(block, source, gemmi.UnitCell(*given))
    operations = Operations.from_triplets(symmetry.operations)
    cell, cell_notices = fit_cell(given, operations, symmetry.symbol, source, settings)
    formula = first_text(block, _FORMULA_TAGS[:1])
    atoms, atom_notices = read_atoms(block, source, operations, cell, formula, settings, shift=symmetry.shift)
    check_sites(atoms, operations, cell, source, settings)
    check_origin(atoms, operations, symmetry, cell, source, settings)
    contents, content_notices = check_contents(atoms, formula, first_text(block, ("_cell_formula_units_Z",)))
    title = first_text(block, _NAME_TAGS) or first_text(block, _FORMULA_TAGS) or block.name
    structure = CrystalStructure(
        name=structure_name(source.stem, first_text(block, _NAME_TAGS), formula or contents, block.name, alone=alone),
        title=shown(title),
        space_group=symmetry.symbol,
        space_group_number=symmetry.number,
        operations=symmetry.operations,
        cell=cell,
        atoms=atoms,
        formula=contents,
        source_name=source.name,
        source_sha256=source.sha256,
    )
    return replace(structure, notices=(*symmetry.notices, *cell_notices, *atom_notices, *content_notices))


def _lattice(block: gemmi.cif.Block, source: Source, settings: CifSettings, *, alone: bool) -> CrystalStructure:
    """Read the cell and the space group of one block, and say where its atoms are left aside."""
    import gemmi

    given = read_cell(block, source, min_length=settings.min_cell_angstrom)
    symmetry = resolve_symmetry(block, source, gemmi.UnitCell(*given))
    cell, cell_notices = fit_cell(
        given, Operations.from_triplets(symmetry.operations), symmetry.symbol, source, settings
    )
    formula = first_text(block, _FORMULA_TAGS[:1])
    title = first_text(block, _NAME_TAGS) or first_text(block, _FORMULA_TAGS) or block.name
    aside: tuple[Notice, ...] = ()
    if _has_atoms(block):
        aside = (Notice("atoms_not_used", "The atoms are left aside: a profile match uses cell and space group only."),)
    return CrystalStructure(
        name=structure_name(source.stem, first_text(block, _NAME_TAGS), formula, block.name, alone=alone),
        title=shown(title),
        space_group=symmetry.symbol,
        space_group_number=symmetry.number,
        operations=symmetry.operations,
        cell=cell,
        atoms=(),
        formula=shown(formula),
        source_name=source.name,
        source_sha256=source.sha256,
        notices=(*symmetry.notices, *cell_notices, *aside),
    )
