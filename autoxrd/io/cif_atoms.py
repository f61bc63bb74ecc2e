"""Read the atom table of a CIF: species, coordinates, occupancies and displacement parameters."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from autoxrd.domain.pattern import Notice
from autoxrd.domain.structure import AtomSite, UnitCell
from autoxrd.io.cif_adp import displacement_of
from autoxrd.io.settings import CifSettings
from autoxrd.io.sites import Operations, snap
from autoxrd.io.source import Source, shown
from autoxrd.io.species import Species, species_from_label, species_from_symbol

if TYPE_CHECKING:
    import gemmi

__all__ = ["read_atoms"]

_COLUMNS = {
    "label": ("_atom_site_label", "_atom_site.label", "_atom_site.id"),
    "type": ("_atom_site_type_symbol", "_atom_site.type_symbol"),
    "x": ("_atom_site_fract_x", "_atom_site.fract_x"),
    "y": ("_atom_site_fract_y", "_atom_site.fract_y"),
    "z": ("_atom_site_fract_z", "_atom_site.fract_z"),
    "occupancy": ("_atom_site_occupancy", "_atom_site.occupancy"),
    "u": ("_atom_site_U_iso_or_equiv", "_atom_site.U_iso_or_equiv"),
    "b": ("_atom_site_B_iso_or_equiv", "_atom_site.B_iso_or_equiv"),
    "calc": ("_atom_site_calc_flag", "_atom_site.calc_flag"),
}
_FORMULA_ELEMENT = re.compile(r"([A-Z][a-z]?)")


def read_atoms(
    block: gemmi.cif.Block,
    source: Source,
    operations: Operations,
    cell: UnitCell,
    formula: str,
    settings: CifSettings,
    *,
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> tuple[tuple[AtomSite, ...], tuple[Notice, ...]]:
    """Read all atoms, put them exactly onto their sites and drop the empty ones.

    ``shift`` is added to all coordinates, fractional.

    Raises:
        UserInputError: ``cif_no_atoms``, ``cif_too_many_atoms``, ``cif_coordinate_missing``,
            ``cif_unknown_element``, ``cif_occupancy_invalid``.
    """
    columns = _columns(block)
    n = len(columns["x"])
    if n > settings.max_atoms:
        raise source.error("cif_too_many_atoms", f"lists {n} atoms; at most {settings.max_atoms} are read.")
    known = frozenset(_FORMULA_ELEMENT.findall(formula))
    labels = _unique_labels([columns["label"][i] or columns["type"][i] for i in range(n)])
    lost = [labels[i] for i in range(n) if not all(_is_number(columns[axis][i]) for axis in "xyz")]
    if lost:
        names = ", ".join(shown(label) for label in lost[:8])
        sentence = f"{len(lost)} atoms have no coordinates ({names}); give numbers for x, y and z or remove them."
        raise source.error("cif_coordinate_missing", sentence, atoms=[shown(label) for label in lost[:50]])
    atoms: list[AtomSite] = []
    interpreted: list[str] = []
    for i in range(n):
        species = _species(columns["type"][i], columns["label"][i], known, labels[i], source)
        if species.interpreted:
            interpreted.append(f"{shown(columns['type'][i] or columns['label'][i])} as {species.species}")
        atoms.append(_atom(columns, i, labels[i], species, source, settings))
    notices: list[Notice] = []
    if interpreted and any(columns["type"]):
        text = f"Atom types were interpreted: {', '.join(dict.fromkeys(interpreted[:10]))}."
        notices.append(Notice("cif_type_interpreted", text))
    atoms = [replace(a, x=a.x + shift[0], y=a.y + shift[1], z=a.z + shift[2]) for a in atoms]
    placed, moved = _place(atoms, operations, settings)
    with_adp, adp_notices = displacement_of(block, placed, cell)
    kept, dropped = _occupied(with_adp, source)
    return kept, (*notices, *moved, *adp_notices, *dropped)


def _columns(block: gemmi.cif.Block) -> dict[str, list[str]]:
    """All columns of the atom table as text of equal length; a missing column is empty."""
    import gemmi

    columns: dict[str, list[str]] = {}
    for name, tags in _COLUMNS.items():
        columns[name] = []
        for tag in tags:
            values = [gemmi.cif.as_string(value) for value in block.find_values(tag)]
            if values:
                columns[name] = values
                break
    n = len(columns["x"])
    return {name: values if len(values) == n else [""] * n for name, values in columns.items()}


def _number(text: str) -> float:
    """Number with an optional uncertainty in brackets; NaN where there is none."""
    import gemmi

    value = float(gemmi.cif.as_number(text.strip()))
    if math.isnan(value) and "/" in text:
        # Some hand-written files give 1/3.
        match = re.fullmatch(r"\s*([+-]?\d+)\s*/\s*([1-9]\d*)\s*", text)
        return int(match[1]) / int(match[2]) if match else value
    return value


def _is_number(text: str) -> bool:
    """Whether a coordinate is a finite number of sensible size."""
    value = _number(text)
    return math.isfinite(value) and abs(value) < 100.0


def _unique_labels(raw: list[str]) -> list[str]:
    """Printable labels without blanks, each once."""
    out: list[str] = []
    used: set[str] = set()
    for text in raw:
        base = re.sub(r"[^A-Za-z0-9_'+-]+", "_", text.strip())[:20] or "X"
        label, count = base, 1
        while label in used:
            count += 1
            label = f"{base}_{count}"
        used.add(label)
        out.append(label)
    return out


def _species(symbol: str, label: str, known: frozenset[str], name: str, source: Source) -> Species:
    """Species of one atom, from its type symbol, else from its label."""
    given = symbol if symbol not in ("", "?", ".") else ""
    found = species_from_symbol(given, known=known) if given else species_from_label(label, known=known)
    if found is None:
        text = given or label
        sentence = f"atom {shown(name)} has the type '{shown(text)}', which is no element; give its element symbol."
        raise source.error("cif_unknown_element", sentence, atom=shown(name), type=shown(text))
    return found


def _atom(
    columns: dict[str, list[str]], i: int, label: str, species: Species, source: Source, settings: CifSettings
) -> AtomSite:
    """Build one atom; the isotropic displacement parameter is U, or B / 8 pi^2."""
    occupancy = 1.0
    text = columns["occupancy"][i]
    if text not in ("", "?", "."):
        occupancy = _number(text)
        if not -settings.occupancy_tolerance <= occupancy <= 1.0 + settings.occupancy_tolerance:
            sentence = f"atom {shown(label)} has the occupancy '{shown(text)}'; expected a number from 0 to 1."
            raise source.error("cif_occupancy_invalid", sentence, atom=shown(label))
        occupancy = min(1.0, max(0.0, occupancy))
    u_iso = _number(columns["u"][i])
    if not math.isfinite(u_iso):
        u_iso = _number(columns["b"][i]) / (8.0 * math.pi**2)
    return AtomSite(
        label=label,
        species=species.species,
        element=species.element,
        x=_number(columns["x"][i]),
        y=_number(columns["y"][i]),
        z=_number(columns["z"][i]),
        occupancy=occupancy,
        u_iso=u_iso if math.isfinite(u_iso) else None,
    )


def _place(
    atoms: list[AtomSite], operations: Operations, settings: CifSettings
) -> tuple[list[AtomSite], tuple[Notice, ...]]:
    """Snap to special positions and count the equivalent positions."""
    out: list[AtomSite] = []
    moved: list[str] = []
    for atom in atoms:
        site = snap(operations, np.array([atom.x, atom.y, atom.z]), tolerance=settings.snap_tolerance)
        x, y, z = (float(value) for value in site.position)
        if site.moved > 1e-9:
            moved.append(atom.label)
        out.append(replace(atom, x=x, y=y, z=z, multiplicity=site.multiplicity))
    # Six-digit thirds are how a file writes a third; only larger corrections are news.
    if not moved:
        return out, ()
    text = f"Put exactly onto their special positions: {', '.join(moved[:12])}{' ...' if len(moved) > 12 else ''}."
    return out, (Notice("cif_position_snapped", text),)


def _occupied(atoms: list[AtomSite], source: Source) -> tuple[tuple[AtomSite, ...], tuple[Notice, ...]]:
    """Drop atoms of zero occupancy."""
    kept = tuple(atom for atom in atoms if atom.occupancy > 0.0)
    if not kept:
        raise source.error("cif_no_atoms", "all atoms have the occupancy 0; a Rietveld refinement needs atoms.")
    dropped = [atom.label for atom in atoms if atom.occupancy <= 0.0]
    if not dropped:
        return kept, ()
    return kept, (Notice("cif_empty_site_dropped", f"Atoms of occupancy 0 are left out: {', '.join(dropped[:12])}."),)
