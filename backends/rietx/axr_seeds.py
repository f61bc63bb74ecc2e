"""Starting values taken from the data: background curve, peak width, scale factors.

A state that starts near its answer costs tens of least-squares cycles less, and a root state whose
scale factors are off by orders of magnitude tells a planner nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import rietx as rx
from axr_private import compiled, table_of
from axr_state import State
from rietx.background.models import chebyshev_design_matrix
from scipy.optimize import nnls
from scipy.signal import find_peaks, peak_widths

__all__ = ["background_model", "fit_chebyshev", "peak_width", "seed_background", "seed_scales"]

CLIP_ROUNDS = 40
CLIP_SIGMA = 1.5
"""A point further above the curve than this many sigma is taken down to it before the next round."""
STRONGEST = 25
"""Number of the most prominent peaks that the typical width is read from."""
BIN_DEG = 1.0
BIN_WIDTHS = 8.0
"""Scale factors are matched on sums over bins of at least BIN_DEG and BIN_WIDTHS peak widths, so
that a wrong zero point does not drive them to nothing."""


def fit_chebyshev(x: np.ndarray, curve: np.ndarray, terms: int) -> np.ndarray:
    """Return the coefficients, shape (terms,), that follow a curve on its own range in least squares."""
    design = chebyshev_design_matrix(x, terms, float(x[0]), float(x[-1]))
    coefficients: np.ndarray = np.linalg.lstsq(design.T, curve, rcond=None)[0]
    return coefficients


def seed_background(x: np.ndarray, y: np.ndarray, sigma: np.ndarray, terms: int) -> np.ndarray:
    """Return Chebyshev coefficients of a curve under the peaks, shape (terms,).

    Points above the curve are clipped to it and the curve is fitted again, until peaks no longer
    pull (the iteration of Sonneveld & Visser 1975, doi:10.1107/S0021889875009417, with a polynomial).
    """
    design = chebyshev_design_matrix(x, terms, float(x[0]), float(x[-1])).T
    weight = 1.0 / sigma
    clipped = y.copy()
    coefficients: np.ndarray = np.zeros(terms)
    for _ in range(CLIP_ROUNDS):
        coefficients = np.linalg.lstsq(design * weight[:, None], clipped * weight, rcond=None)[0]
        ceiling = design @ coefficients + CLIP_SIGMA * sigma
        if np.all(clipped <= ceiling):
            break
        clipped = np.minimum(clipped, ceiling)
    return coefficients


def background_model(coefficients: np.ndarray) -> Any:
    """Return rietx's Chebyshev background with these coefficients."""
    return rx.BackgroundChebyshev(coefficients=[rx.Parameter(value=float(value)) for value in coefficients])


def peak_width(x: np.ndarray, y: np.ndarray, sigma: np.ndarray, background: np.ndarray) -> float | None:
    """Return the typical full width at half maximum of the strong peaks, degrees; None without clear peaks."""
    net = y - background
    smooth = np.convolve(net, np.ones(3) / 3.0, mode="same")
    peaks, found = find_peaks(smooth, prominence=6.0 * float(np.median(sigma)))
    if peaks.size == 0:
        return None
    strong = peaks[np.argsort(-found["prominences"], kind="stable")[:STRONGEST]]
    widths, _, left, right = peak_widths(smooth, strong, rel_height=0.5)
    grid = np.arange(x.size)
    degrees = np.interp(right, grid, x) - np.interp(left, grid, x)
    keep = widths > 1.0
    return float(np.median(degrees[keep])) if np.any(keep) else None


def seed_scales(state: State, width: float) -> Any:
    """Return the structure with scale factors that match the data's net intensity.

    Non-negative least squares of the phases' patterns on sums over broad bins. A phase that comes
    out at nothing starts at one thousandth of its largest possible scale, so that it keeps a gradient.
    """
    model = compiled(state.structure, state.instrument, state.pattern(), mode="rietveld", limits=state.limits)
    table = table_of(state.structure, state.instrument)
    values = table.decode(table.x0())
    net = model.y_obs - model.background(values)
    parts = [model.phase_component(index, values) for index in range(len(state.structure.phases))]
    edges = _bins(model.tt, max(BIN_DEG, BIN_WIDTHS * width))
    variance = np.add.reduceat(model.sigma**2, edges)
    columns = np.stack([np.add.reduceat(part, edges) for part in parts], axis=1) / np.sqrt(variance)[:, None]
    target = np.add.reduceat(net, edges) / np.sqrt(variance)
    norms = np.linalg.norm(columns, axis=0)
    usable = norms > 0
    factors = np.zeros(len(parts))
    if np.any(usable):
        factors[usable] = nnls(columns[:, usable] / norms[usable], target)[0] / norms[usable]
    structure = state.structure.model_copy(deep=True)
    for phase, factor, part in zip(structure.phases, factors, parts, strict=True):
        ceiling = float(np.max(np.maximum(model.y_obs, 0.0))) / max(float(part.max()), 1e-300)
        phase.scale.value = float(factor) if factor > 1e-3 * ceiling else 1e-3 * ceiling
    return structure


def _bins(x: np.ndarray, width: float) -> np.ndarray:
    """Return the start index of each non-empty bin."""
    number = np.floor((x - x[0]) / width).astype(np.int64)
    return np.flatnonzero(np.r_[True, np.diff(number) > 0])
