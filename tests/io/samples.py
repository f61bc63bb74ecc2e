"""Small made-up patterns and CIFs for the reader tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def peaks(n: int = 400, start: float = 10.0, step: float = 0.05, seed: int = 1) -> tuple[NDArray, NDArray]:
    """A plausible pattern of whole counts: three lines on a background."""
    x = start + step * np.arange(n)
    y = np.full(n, 120.0)
    for centre, height in ((13.0, 2000.0), (18.0, 900.0), (24.0, 400.0)):
        y += height * np.exp(-4 * np.log(2) * ((x - centre) / 0.3) ** 2)
    return x, np.random.default_rng(seed).poisson(y).astype(float)


def write(path: Path, text: str, **kwargs: str) -> Path:
    """Write text as it is (no translation of line ends)."""
    path.write_bytes(text.encode(kwargs.get("encoding", "utf-8")))
    return path


def table(x: NDArray, *columns: NDArray, form: str = "%.4f %g", newline: str = "\n") -> str:
    """Rows of numbers."""
    return newline.join(form % row for row in zip(x, *columns, strict=True)) + newline


CIF = """data_test
_cell_length_a {a}
_cell_length_b {b}
_cell_length_c {c}
_cell_angle_alpha {alpha}
_cell_angle_beta {beta}
_cell_angle_gamma {gamma}
{symmetry}
loop_
_atom_site_label
_atom_site_type_symbol
_atom_site_fract_x
_atom_site_fract_y
_atom_site_fract_z
_atom_site_occupancy
_atom_site_U_iso_or_equiv
{atoms}
"""


def cif(
    atoms: str,
    *,
    symmetry: str = "_space_group_name_H-M_alt 'F m -3 m'",
    cell: tuple[object, ...] = (5.0, 5.0, 5.0, 90, 90, 90),
) -> str:
    """A small CIF."""
    a, b, c, alpha, beta, gamma = cell
    return CIF.format(a=a, b=b, c=c, alpha=alpha, beta=beta, gamma=gamma, symmetry=symmetry, atoms=atoms)
