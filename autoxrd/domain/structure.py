"""What is a candidate crystal structure here."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoxrd.domain.pattern import Notice

__all__ = ["AtomSite", "CrystalStructure", "UnitCell"]


@dataclass(frozen=True, slots=True)
class UnitCell:
    """Cell lengths in angstrom and angles in degrees."""

    a: float
    b: float
    c: float
    alpha: float
    beta: float
    gamma: float

    def as_tuple(self) -> tuple[float, float, float, float, float, float]:
        """Return (a, b, c, alpha, beta, gamma)."""
        return (self.a, self.b, self.c, self.alpha, self.beta, self.gamma)


@dataclass(frozen=True, slots=True)
class AtomSite:
    """One atom of the asymmetric unit.

    Args:
        label: unique label within the structure.
        species: scattering species, element with charge where given, e.g. ``O2-``, ``Fe3+``.
        element: chemical symbol, e.g. ``O`` (``D`` for deuterium).
        x, y, z: fractional coordinates.
        occupancy: site occupation fraction, 0 to 1.
        u_iso: isotropic mean-square displacement, angstrom^2; None where the file gives none.
        u_aniso: (U11, U22, U33, U12, U13, U23) in angstrom^2, or None.
        multiplicity: number of equivalent positions in the cell.
    """

    label: str
    species: str
    element: str
    x: float
    y: float
    z: float
    occupancy: float = 1.0
    u_iso: float | None = None
    u_aniso: tuple[float, float, float, float, float, float] | None = None
    multiplicity: int = 1


@dataclass(frozen=True, slots=True)
class CrystalStructure:
    """A candidate phase as read from a CIF, checked.

    Args:
        name: unique name within the job, safe as part of a selector (letters, digits, ``_``, ``-``, ``+``).
        title: name as the file gives it, untrusted text.
        space_group: Hermann-Mauguin symbol with setting, as gemmi writes it (``R -3 c:H``).
        operations: all symmetry operations as xyz triplets, centring included, identity first.
        cell: unit cell.
        atoms: asymmetric unit, special positions already exact.
        formula: sum formula of the cell contents divided by the formula units where known.
        source_name, source_sha256: the file it came from.
    """

    name: str
    title: str
    space_group: str
    space_group_number: int
    operations: tuple[str, ...]
    cell: UnitCell
    atoms: tuple[AtomSite, ...]
    formula: str = ""
    source_name: str = ""
    source_sha256: str = ""
    notices: tuple[Notice, ...] = field(default=())
