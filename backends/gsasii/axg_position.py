"""How uncertain is a cell when what else moves the lines is not known exactly?

Zero offset, specimen offset, transparency and axial divergence move lines almost as a change of the cell does, and cell
lengths go with the wavelength, which is taken as known to its last digit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from axg_axial import AxialSteps
from axg_model import CELL, Model
from axr_marginal import PLAUSIBLE, marginal_esds, wavelength_spread

__all__ = ["Linearised", "cell_uncertainties"]


@dataclass(frozen=True)
class Linearised:
    """The linearised problem: residual (calculated minus observed), columns by name, and which way each may go."""

    residual: np.ndarray
    columns: dict[str, np.ndarray]
    ways: dict[str, int]
    free: tuple[str, ...]
    axial: AxialSteps | None
    """What axial divergence would do, where it is neither free nor known."""


def cell_uncertainties(
    model: Model, problem: Linearised, values: dict[str, float], esds: Mapping[str, float]
) -> dict[str, float]:
    """Return the uncertainty of each free cell parameter by name, in its unit; never less than its esd.

    Args:
        model: GSAS-II's dictionaries.
        problem: the state linearised, with the columns of all candidates.
        values: the state's numbers.
        esds: of the fit.
    """
    cells = [name for name in problem.free if ".cell." in name and esds.get(name, 0.0) > 0.0]
    if not cells:
        return {}
    free = np.stack([problem.columns[name] for name in problem.free], axis=1)
    where = [problem.free.index(name) for name in cells]
    nuisance, prior = _nuisance(model, problem)
    wider = marginal_esds(free, where, [esds[name] for name in cells], nuisance, prior)
    light = wavelength_spread(values["instrument.wavelength"])
    lengths = [values[name] if name.rsplit(".", 1)[-1] in CELL[:3] else 0.0 for name in cells]
    return {n: math.hypot(esd, length * light) for n, esd, length in zip(cells, wider, lengths, strict=True)}


def _nuisance(model: Model, problem: Linearised) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of what is held and moves lines, shape (n, k), and their plausible sizes (k,)."""
    held = [name for name in PLAUSIBLE if name in problem.columns and name not in problem.free]
    columns, sizes = [problem.columns[name] for name in held], [PLAUSIBLE[name] for name in held]
    if problem.axial is not None:
        columns.append(problem.axial.plausible / model.sigma)
        sizes.append(1.0)
    return (np.stack(columns, axis=1) if columns else np.zeros((problem.residual.size, 0))), np.array(sizes)
