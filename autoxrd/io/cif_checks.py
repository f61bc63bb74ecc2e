"""Check a structure as a whole: full sites, contents against the formula, the choice of origin."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from autoxrd.domain.pattern import FloatArray, Notice
from autoxrd.domain.structure import AtomSite, UnitCell
from autoxrd.io.cif_cell import orthogonalisation
from autoxrd.io.settings import CifSettings
from autoxrd.io.sites import Operations, shortest_contacts, site_distances
from autoxrd.io.source import Source, shown
from autoxrd.io.symmetry import Symmetry

__all__ = ["check_contents", "check_origin", "check_sites"]

_FORMULA_TERM = re.compile(r"([A-Z][a-z]?)\s*(\d+\.?\d*|\.\d+)?")
_MAX_ATOMS_FOR_CONTACTS = 60
"""The pairwise search costs n^2 times the order of the group; larger structures skip it."""


def check_sites(
    atoms: Sequence[AtomSite], operations: Operations, cell: UnitCell, source: Source, settings: CifSettings
) -> None:
    """Refuse sites that hold more than one atom in sum.

    Raises:
        UserInputError: ``cif_site_overfull``, naming the atoms.
    """
    if len(atoms) > _MAX_ATOMS_FOR_CONTACTS * 5:
        return
    positions = np.array([[atom.x, atom.y, atom.z] for atom in atoms])
    same = site_distances(operations, orthogonalisation(cell), positions) < settings.same_site_angstrom
    for i in range(len(atoms)):
        group = [atoms[j] for j in np.flatnonzero(same[i]).tolist()]
        total = sum(member.occupancy for member in group)
        if len(group) > 1 and total > 1.0 + settings.occupancy_tolerance:
            names = ", ".join(shown(member.label) for member in group[:8])
            sentence = (
                f"atoms {names} stand on one site (equivalent by symmetry) with occupancies that sum to {total:.3f}; "
                "expected at most 1: list each site once and give shared sites fractions."
            )
            raise source.error("cif_site_overfull", sentence, atoms=[shown(m.label) for m in group[:50]], total=total)


def check_contents(atoms: Sequence[AtomSite], formula: str, units: str) -> tuple[str, tuple[Notice, ...]]:
    """Compare the cell contents with the formula that the file gives.

    Returns:
        The sum formula of the contents, per formula unit where that is known, and notices.
    """
    contents: dict[str, float] = {}
    for atom in atoms:
        contents[atom.element] = contents.get(atom.element, 0.0) + atom.multiplicity * atom.occupancy
    stated = _parse_formula(formula)
    z = float(units) if re.fullmatch(r"\d{1,4}(\.\d+)?", units) and float(units) > 0.0 else None
    if z is not None and not _divides(contents, z):
        # A Z that leaves broken amounts says nothing about the formula unit.
        z = None
    text = _hill(contents, z or _common_divisor(contents))
    if not stated:
        return text, ()
    return text, _formula_notice(contents, stated, z, formula, text)


def _divides(contents: Mapping[str, float], z: float) -> bool:
    """Whether whole contents stay whole when divided by Z; broken contents (mixed sites) may be anything."""
    return all(
        abs(amount / z - round(amount / z)) < 1e-3 for amount in contents.values() if abs(amount - round(amount)) < 1e-3
    )


def _formula_notice(
    contents: Mapping[str, float], stated: Mapping[str, float], z: float | None, formula: str, text: str
) -> tuple[Notice, ...]:
    """Say so where contents and formula differ in elements, ratios or number of formula units."""
    ratios = [contents.get(element, 0.0) / amount for element, amount in stated.items() if amount > 0.0]
    unit = z or float(np.median(ratios))
    elements = set(stated) | set(contents)
    wrong = [
        element
        for element in sorted(elements)
        if abs(contents.get(element, 0.0) - unit * stated.get(element, 0.0))
        > 0.02 * max(unit * stated.get(element, 0.0), 1.0)
    ]
    if not wrong:
        return ()
    message = (
        f"The atoms give {text}, the file states {shown(formula)}"
        + (f" with Z = {z:g}" if z else "")
        + f": they differ in {', '.join(wrong)}."
    )
    return (Notice("cif_formula_differs", message),)


def _parse_formula(formula: str) -> dict[str, float]:
    """Amounts by element of a simple sum formula; empty where it has brackets or signs."""
    if re.search(r"[()\[\]+,]", formula):
        return {}
    out: dict[str, float] = {}
    for element, amount in _FORMULA_TERM.findall(formula):
        out[element] = out.get(element, 0.0) + (float(amount) if amount else 1.0)
    return out


def _common_divisor(contents: Mapping[str, float]) -> float:
    """Greatest common divisor of whole contents, else 1."""
    counts = [round(amount) for amount in contents.values()]
    if any(abs(amount - count) > 1e-3 or count < 1 for amount, count in zip(contents.values(), counts, strict=True)):
        return 1.0
    return float(reduce(math.gcd, counts))


def _hill(contents: Mapping[str, float], divisor: float) -> str:
    """Sum formula in Hill order."""
    first = ["C", "H"] if "C" in contents else []
    order = [element for element in first if element in contents]
    order += sorted(element for element in contents if element not in order)
    parts = []
    for element in order:
        amount = contents[element] / divisor
        parts.append(element if abs(amount - 1.0) < 5e-4 else f"{element}{amount:.3f}".rstrip("0").rstrip("."))
    return " ".join(parts)


def check_origin(
    atoms: Sequence[AtomSite],
    operations: Operations,
    symmetry: Symmetry,
    cell: UnitCell,
    source: Source,
    settings: CifSettings,
) -> None:
    """Refuse coordinates that make sense only with the other origin choice of the group.

    Silicon at 0,0,0 in F d -3 m:2 is such a case: 16 atoms instead of 8, twice the density, and a fit
    that nothing can repair. The other origin must repair it without doubt: every full atom at a sane
    distance, and fewer atoms in the cell.

    Raises:
        UserInputError: ``cif_origin_conflict``.
    """
    if not symmetry.origin_alternatives or len(atoms) > _MAX_ATOMS_FOR_CONTACTS:
        return
    full = [atom for atom in atoms if atom.occupancy > 0.5]
    if not full:
        return
    matrix = orthogonalisation(cell)
    here = _closest(full, operations, matrix)
    if here >= settings.short_contact_ratio:
        return
    other = Operations.from_triplets(symmetry.origin_alternatives)
    there = _closest(full, other, matrix)
    if there < 1.0 or _count(full, other) >= _count(full, operations):
        return
    sentence = (
        f"the coordinates do not belong to the origin of {symmetry.symbol}: atoms come within {100 * here:.0f} % of "
        "the sum of their radii, while the other origin choice gives normal distances; correct the symbol, "
        "the operators or the coordinates."
    )
    raise source.error("cif_origin_conflict", sentence, space_group=symmetry.symbol)


def _closest(atoms: Sequence[AtomSite], operations: Operations, matrix: FloatArray) -> float:
    """Smallest ratio of a distance to the sum of covalent radii."""
    import gemmi

    positions = np.array([[atom.x, atom.y, atom.z] for atom in atoms])
    radii = np.array([gemmi.Element(atom.element).covalent_r for atom in atoms])
    distances = shortest_contacts(operations, matrix, positions)
    return float(np.min(distances / (radii[:, None] + radii[None, :])))


def _count(atoms: Sequence[AtomSite], operations: Operations) -> int:
    """Number of atoms in the cell under a group."""
    total = 0
    for atom in atoms:
        position = np.array([atom.x, atom.y, atom.z])
        delta = operations.images(position) - position
        delta -= np.rint(delta)
        total += operations.translations.shape[0] // max(1, int(np.sum(np.max(np.abs(delta), axis=1) < 1e-4)))
    return total
