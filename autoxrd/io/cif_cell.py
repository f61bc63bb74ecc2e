"""Read the unit cell of a CIF and make it agree exactly with its symmetry."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from autoxrd.domain.pattern import FloatArray, Notice
from autoxrd.domain.structure import UnitCell
from autoxrd.io.settings import CifSettings
from autoxrd.io.sites import Operations
from autoxrd.io.source import Source

if TYPE_CHECKING:
    import gemmi

__all__ = ["fit_cell", "orthogonalisation", "read_cell"]

_LENGTHS = ("a", "b", "c")
_ANGLES = ("alpha", "beta", "gamma")
_MIN_RELATIVE_VOLUME = 1e-3
"""Volume over a*b*c below which the three angles do not span a cell."""


def read_cell(block: gemmi.cif.Block, source: Source, *, min_length: float) -> tuple[float, ...]:
    """Read (a, b, c, alpha, beta, gamma), angstrom and degrees.

    Raises:
        UserInputError: ``cif_cell_missing``, ``cif_cell_invalid``.
    """
    import gemmi

    values: list[float] = []
    for kind, name in [("length", name) for name in _LENGTHS] + [("angle", name) for name in _ANGLES]:
        tag = f"_cell_{kind}_{name}"
        text = block.find_value(tag) or block.find_value(f"_cell.{kind}_{name}")
        if text is None:
            raise source.error("cif_cell_missing", f"block {block.name} has no {tag}; the unit cell is required.")
        value = gemmi.cif.as_number(text)
        low, high = (min_length, 1000.0) if kind == "length" else (5.0, 175.0)
        if not math.isfinite(value) or not low < value < high:
            unit = "angstrom" if kind == "length" else "degrees"
            sentence = f"{tag} is '{text[:30]}'; expected a number between {low:g} and {high:g} {unit}."
            raise source.error("cif_cell_invalid", sentence, tag=tag)
        values.append(value)
    if np.linalg.det(_metric(values)) <= (_MIN_RELATIVE_VOLUME * values[0] * values[1] * values[2]) ** 2:
        raise source.error("cif_cell_invalid", "the three cell angles do not span a cell.")
    return tuple(values)


def _metric(cell: tuple[float, ...] | list[float]) -> FloatArray:
    """Metric tensor of a cell, shape (3, 3), angstrom^2."""
    a, b, c = cell[:3]
    ca, cb, cg = (math.cos(math.radians(angle)) for angle in cell[3:])
    return np.array([[a * a, a * b * cg, a * c * cb], [a * b * cg, b * b, b * c * ca], [a * c * cb, b * c * ca, c * c]])


def _from_metric(metric: FloatArray) -> tuple[float, ...]:
    """Cell of a metric tensor."""
    a, b, c = (math.sqrt(metric[i, i]) for i in range(3))

    def angle(i: int, j: int, product: float) -> float:
        value = math.degrees(math.acos(max(-1.0, min(1.0, metric[i, j] / product))))
        # 90 and 120 come out of acos with noise in the last digits.
        return round(value, 10)

    return (round(a, 10), round(b, 10), round(c, 10), angle(1, 2, b * c), angle(0, 2, a * c), angle(0, 1, a * b))


def orthogonalisation(cell: UnitCell) -> FloatArray:
    """Matrix from fractional to Cartesian coordinates, angstrom, shape (3, 3): the metric's Cholesky factor."""
    return np.asarray(np.linalg.cholesky(_metric(cell.as_tuple())).T, dtype=np.float64)


def fit_cell(
    given: tuple[float, ...], operations: Operations, symbol: str, source: Source, settings: CifSettings
) -> tuple[UnitCell, tuple[Notice, ...]]:
    """Average the metric over the point group, so that the cell obeys the symmetry exactly.

    Raises:
        UserInputError: ``cif_cell_symmetry`` where more than rounding would change.
    """
    metric = _metric(given)
    rotations = operations.rotations
    mean = np.mean(np.transpose(rotations, (0, 2, 1)) @ metric @ rotations, axis=0)
    fitted = _from_metric(mean)
    length = max(abs(new / old - 1.0) for new, old in zip(fitted[:3], given[:3], strict=True))
    angle = max(abs(new - old) for new, old in zip(fitted[3:], given[3:], strict=True))
    if length > settings.cell_length_tolerance or angle > settings.cell_angle_tolerance_deg:
        shown_cell = " ".join(f"{value:g}" for value in given)
        sentence = f"the cell {shown_cell} does not fit the symmetry {symbol}; correct the cell or the space group."
        raise source.error("cif_cell_symmetry", sentence, space_group=symbol)
    if length < 1e-9 and angle < 1e-7:
        return UnitCell(*given), ()
    text = (
        f"The cell was made to obey {symbol} exactly: lengths changed by at most {length:.1e} relative, "
        f"angles by at most {angle:.4f} degrees."
    )
    return UnitCell(*fitted), (Notice("cif_cell_snapped", text),)
