"""Which coefficients of Stephens' (1999) microstrain does a group leave free? doi:10.1107/S0021889898006001."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from rietx.crystallography.stephens import S_NAMES, strain_basis
from rietx.crystallography.symmetry import resolve_group, rotation_matrices

__all__ = ["stephens_basis", "stephens_columns"]


@functools.lru_cache(maxsize=256)
def _basis(space_group: str, operations: tuple[str, ...] | None) -> np.ndarray:
    group = resolve_group(space_group, None if operations is None else list(operations))
    return np.asarray(strain_basis(rotation_matrices(group)), dtype=np.float64)


def stephens_basis(phase: Any) -> np.ndarray:
    """Return what each free column adds to rietx's fifteen coefficients, shape (k, 15)."""
    operations = phase.symmetry_operations
    return _basis(phase.space_group, None if operations is None else tuple(operations))


def stephens_columns(phase: Any) -> tuple[tuple[str, float], ...]:
    """Return, for each free column of a phase's microstrain, the coefficient that stands for it and their ratio."""
    firsts = [(row, int(np.flatnonzero(row)[0])) for row in stephens_basis(phase)]
    return tuple((S_NAMES[first].upper(), float(row[first])) for row, first in firsts)
