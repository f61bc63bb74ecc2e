"""Read anisotropic displacement parameters: U, B or beta, with the equivalent isotropic value."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from autoxrd.domain.pattern import FloatArray, Notice
from autoxrd.domain.structure import AtomSite, UnitCell

if TYPE_CHECKING:
    import gemmi

__all__ = ["displacement_of"]

_PAIRS = ("11", "22", "33", "12", "13", "23")
_INDEX = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def displacement_of(
    block: gemmi.cif.Block, atoms: list[AtomSite], cell: UnitCell
) -> tuple[list[AtomSite], tuple[Notice, ...]]:
    """Add anisotropic parameters to atoms and drop displacement parameters that cannot be.

    U_eq = (1/3) sum_ij U_ij a*_i a*_j a_i . a_j (Fischer & Tillmanns 1988, doi:10.1107/S0108270187012745).
    """
    table = _table(block, cell)
    out: list[AtomSite] = []
    refused: list[str] = []
    for atom in atoms:
        tensor = table.get(atom.label)
        if tensor is not None and not _positive(tensor):
            refused.append(atom.label)
            tensor = None
        if tensor is not None:
            u11, u22, u33, u12, u13, u23 = (float(tensor[i, j]) for i, j in _INDEX)
            atom = replace(atom, u_aniso=(u11, u22, u33, u12, u13, u23), u_iso=_equivalent(tensor, cell))
        elif atom.u_iso is not None and atom.u_iso <= 0.0:
            # Zero is how databases write "not determined"; a negative value is not physical.
            if atom.u_iso < 0.0:
                refused.append(atom.label)
            atom = replace(atom, u_iso=None)
        out.append(atom)
    if not refused:
        return out, ()
    text = f"Displacement parameters that are not positive are not used: {', '.join(refused[:12])}."
    return out, (Notice("cif_displacement_unphysical", text),)


def _table(block: gemmi.cif.Block, cell: UnitCell) -> dict[str, FloatArray]:
    """U tensors by label, angstrom^2, shape (3, 3)."""
    import gemmi

    labels = [gemmi.cif.as_string(value).strip() for value in block.find_values("_atom_site_aniso_label")]
    if not labels:
        return {}
    factors = _reciprocal_lengths(cell)
    for kind in ("U", "B", "beta"):
        columns = [[gemmi.cif.as_number(v) for v in block.find_values(f"_atom_site_aniso_{kind}_{p}")] for p in _PAIRS]
        if any(len(column) != len(labels) for column in columns):
            continue
        out: dict[str, FloatArray] = {}
        for row, label in enumerate(labels):
            tensor = np.zeros((3, 3))
            for column, (i, j) in zip(columns, _INDEX, strict=True):
                tensor[i, j] = tensor[j, i] = column[row]
            if not np.all(np.isfinite(tensor)):
                continue
            if kind == "B":
                tensor /= 8.0 * math.pi**2
            elif kind == "beta":
                tensor /= 2.0 * math.pi**2 * np.outer(factors, factors)
            out[label] = tensor
        return out
    return {}


def _reciprocal_lengths(cell: UnitCell) -> FloatArray:
    """(a*, b*, c*) in 1/angstrom."""
    import gemmi

    reciprocal = gemmi.UnitCell(*cell.as_tuple()).reciprocal()
    return np.array([reciprocal.a, reciprocal.b, reciprocal.c])


def _positive(tensor: FloatArray) -> bool:
    """Whether a displacement tensor has a positive trace and no clearly negative axis."""
    eigenvalues = np.linalg.eigvalsh(tensor)
    return bool(eigenvalues[-1] > 0.0 and eigenvalues[0] > -1e-6)


def _equivalent(tensor: FloatArray, cell: UnitCell) -> float:
    """Equivalent isotropic U of a tensor, angstrom^2."""
    factors = _reciprocal_lengths(cell)
    lengths = np.array([cell.a, cell.b, cell.c])
    cosines = np.cos(np.radians([cell.alpha, cell.beta, cell.gamma]))
    angles = np.array([[1.0, cosines[2], cosines[1]], [cosines[2], 1.0, cosines[0]], [cosines[1], cosines[0], 1.0]])
    metric = np.outer(lengths, lengths) * angles
    return float(np.sum(tensor * np.outer(factors, factors) * metric) / 3.0)
