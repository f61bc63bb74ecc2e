"""How uncertain is a cell when what else moves the lines is not known exactly?

Zero offset, specimen displacement, transparency and axial divergence move lines almost as a change of the cell does.
Cell lengths go with the wavelength, which is taken as known to its last digit.
"""

from __future__ import annotations

import math
import re

import numpy as np
from axr_linear import AXIAL_PATHS, Problem
from axr_marginal import PLAUSIBLE, marginal_esds, plausible_axial, wavelength_spread
from axr_names import map_path
from axr_private import Answer
from axr_state import State

__all__ = ["cell_uncertainties"]

_CELL = re.compile(r"phases\.\d+\.cell\.(a|b|c|alpha|beta|gamma)")


def cell_uncertainties(problem: Problem, answer: Answer | None) -> dict[str, float]:
    """Return the uncertainty of each free cell parameter by rietx path, in the unit of the parameter.

    Args:
        problem: the state linearised, with the columns of all candidates.
        answer: esds of the fit, which say how much to trust a point.

    Returns:
        Never less than the esd; empty where no cell is free.
    """
    esds = {} if answer is None else answer.esds()
    cells = [path for path in problem.free if _CELL.fullmatch(path) and esds.get(path, 0.0) > 0.0]
    if not cells:
        return {}
    free = np.stack([problem.columns[path] for path in problem.free], axis=1)
    nuisance, prior = _nuisance(problem)
    where = [problem.free.index(path) for path in cells]
    wider = marginal_esds(free, where, [esds[path] for path in cells], nuisance, prior)
    light = wavelength_spread(problem.state.instrument.source.lines[0].wavelength.value)
    found = {}
    for path, esd in zip(cells, wider, strict=True):
        length = _value(problem.state, path) if path.endswith((".a", ".b", ".c")) else 0.0
        found[path] = math.hypot(esd, length * light)
    return found


def _value(state: State, path: str) -> float:
    _, index, _, key = path.split(".")
    return float(getattr(state.structure.phases[int(index)].cell, key).value)


def _nuisance(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of what is held and moves lines, shape (rows, k), and their plausible sizes (k,)."""
    mapped = (map_path(path, problem.state.structure) for path in problem.columns if path not in problem.free)
    held = {item.name: item.path for item in mapped if item is not None and item.name in PLAUSIBLE}
    names = [name for name in PLAUSIBLE if name in held]
    columns = [problem.columns[held[name]] for name in names]
    sizes = [PLAUSIBLE[name] for name in names]
    if not any(path in problem.columns for path in AXIAL_PATHS):
        columns.append(problem.axial[:, plausible_axial()])
        sizes.append(1.0)
    return (np.stack(columns, axis=1) if columns else np.zeros((problem.residual.size, 0))), np.array(sizes)
