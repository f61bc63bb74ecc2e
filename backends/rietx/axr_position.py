"""How uncertain is a cell when what else moves the lines is not known exactly?

Zero offset, specimen displacement, transparency and axial divergence move lines almost as a change of the cell does.
A fit frees one or two of them and holds the rest at values that nobody measured; its esds are conditional on these.
Here all are let go at once, each within what it plausibly is, and the cell's esd follows from the joint normal
equations with those prior variances: Bayesian marginalisation of nuisance parameters to first order (Sivia & Skilling
2006, Data Analysis, section 8.2). Cell lengths go with the wavelength, which is taken as known to its last digit.
"""

from __future__ import annotations

import math
import re

import numpy as np
from axr_gain_columns import AXIAL_TRIALS, axial_steps
from axr_linear import AXIAL_PATHS, Problem
from axr_private import Answer
from axr_state import State

__all__ = ["PLAUSIBLE", "PLAUSIBLE_AXIAL", "cell_uncertainties"]

PLAUSIBLE = {
    "instrument.zero_shift": 0.02,
    "instrument.geometry.sample_displacement": 0.1,
    "instrument.geometry.sample_transparency": 4e-4,
    "instrument.geometry.capillary_offset_along_beam": 0.05,
    "instrument.geometry.capillary_offset_across_beam": 0.05,
}
"""Standard deviations, in degrees, mm and radians: alignment of a goniometer and mounting of a specimen (Jenkins &
Snyder 1996, Introduction to X-ray Powder Diffractometry, sections 8.3 and 9.2); 1/(2 mu R) of a light oxide powder."""
PLAUSIBLE_AXIAL = 0.03
"""S/L = H/L that a fit without it may lack (Finger, Cox & Jephcoat 1994, doi:10.1107/S0021889894004218)."""
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
    scale = np.linalg.norm(free, axis=0)
    scale[scale == 0.0] = 1.0
    alone = np.diag(np.linalg.pinv((free / scale).T @ (free / scale)))
    where = [problem.free.index(path) for path in cells]
    # the square of how much less a point tells than its sigma says: misfit and serial correlation
    trust = np.array([esds[path] ** 2 / (alone[k] / scale[k] ** 2) for path, k in zip(cells, where, strict=True)])
    weight = float(np.median(trust))
    columns = np.concatenate((free / scale, nuisance * prior), axis=1)
    normal = columns.T @ columns / weight
    normal[np.arange(len(scale), len(normal)), np.arange(len(scale), len(normal))] += 1.0
    together = np.diag(np.linalg.pinv(normal, hermitian=True))
    light = _wavelength_spread(problem.state.instrument.source.lines[0].wavelength.value)
    found = {}
    for path, k in zip(cells, where, strict=True):
        wider = esds[path] * math.sqrt(max(together[k] / (alone[k] * weight), 1.0))
        length = _value(problem.state, path) if path.endswith((".a", ".b", ".c")) else 0.0
        found[path] = math.hypot(wider, length * light)
    return found


def _value(state: State, path: str) -> float:
    _, index, _, key = path.split(".")
    return float(getattr(state.structure.phases[int(index)].cell, key).value)


def _wavelength_spread(wavelength: float) -> float:
    """Return the relative standard deviation of a wavelength that is right to half of its last digit."""
    digits = len(repr(float(wavelength)).partition(".")[2])
    return 0.5 * 10.0**-digits / math.sqrt(3.0) / float(wavelength)


def _nuisance(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of what is held and moves lines, shape (rows, k), and their plausible sizes (k,)."""
    held = [path for path in PLAUSIBLE if path in problem.columns and path not in problem.free]
    columns = [problem.columns[path] for path in held]
    sizes = [PLAUSIBLE[path] for path in held]
    if not any(path in problem.columns for path in AXIAL_PATHS):
        number = int(np.argmin(np.abs(np.array(AXIAL_TRIALS) - PLAUSIBLE_AXIAL)))
        columns.append(axial_steps(problem.state)[:, number] * problem.weight)
        sizes.append(1.0)
    return (np.stack(columns, axis=1) if columns else np.zeros((problem.residual.size, 0))), np.array(sizes)
