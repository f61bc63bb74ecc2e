"""Starting values that the data alone give: background curve, peak width, and factors that match parts to it.

A state that starts near its answer costs tens of least-squares cycles less, and a root state whose
scale factors are off by orders of magnitude tells a planner nothing. numpy and scipy only.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls
from scipy.signal import find_peaks, peak_widths

__all__ = ["chebyshev_rows", "factor_beside", "fit_chebyshev", "match_factors", "peak_width", "seed_background"]

CLIP_ROUNDS = 40
CLIP_SIGMA = 1.5
"""A point further above the curve than this many sigma is taken down to it before the next round."""
STRONGEST = 15
"""Number of the most prominent peaks that the typical width is read from."""
BIN_DEG = 1.0
BIN_WIDTHS = 8.0
"""Scale factors are matched on sums over bins of at least BIN_DEG and BIN_WIDTHS peak widths, so
that a wrong zero point does not drive them to nothing."""


def chebyshev_rows(x: np.ndarray, terms: int, lower: float, upper: float) -> np.ndarray:
    """Return Chebyshev polynomials of the first kind on [lower, upper], shape (terms, n)."""
    at = 2.0 * (np.asarray(x, dtype=np.float64) - lower) / (upper - lower) - 1.0
    rows = np.empty((terms, at.size))
    for order in range(terms):
        rows[order] = (1.0, at)[order] if order < 2 else 2.0 * at * rows[order - 1] - rows[order - 2]
    return rows


def fit_chebyshev(x: np.ndarray, curve: np.ndarray, terms: int) -> np.ndarray:
    """Return the coefficients, shape (terms,), that follow a curve on its own range in least squares."""
    design = chebyshev_rows(x, terms, float(x[0]), float(x[-1]))
    coefficients: np.ndarray = np.linalg.lstsq(design.T, curve, rcond=None)[0]
    return coefficients


def seed_background(x: np.ndarray, y: np.ndarray, sigma: np.ndarray, terms: int) -> np.ndarray:
    """Return Chebyshev coefficients of a curve under the peaks, shape (terms,).

    Points above the curve are clipped to it and the curve is fitted again, until peaks no longer
    pull (the iteration of Sonneveld & Visser 1975, doi:10.1107/S0021889875009417, with a polynomial).
    """
    design = chebyshev_rows(x, terms, float(x[0]), float(x[-1])).T
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


def peak_width(
    x: np.ndarray, y: np.ndarray, sigma: np.ndarray, background: np.ndarray, lines: list[tuple[float, float]]
) -> float | None:
    """Return the typical full width at half maximum of the strong peaks, degrees; None without clear peaks.

    Args:
        x: abscissa, shape (n,), degrees.
        y: intensity, shape (n,).
        sigma: its uncertainty, shape (n,).
        background: curve under the peaks, shape (n,).
        lines: wavelength and intensity of each emission line; a doublet's unresolved splitting is taken out.
    """
    net = y - background
    smooth = np.convolve(net, np.ones(3) / 3.0, mode="same")
    peaks, found = find_peaks(smooth, prominence=6.0 * float(np.median(sigma)))
    if peaks.size == 0:
        return None
    strong = peaks[np.argsort(-found["prominences"], kind="stable")[:STRONGEST]]
    widths, _, left, right = peak_widths(smooth, strong, rel_height=0.5)
    grid = np.arange(x.size)
    degrees = np.interp(right, grid, x) - np.interp(left, grid, x)
    steps = (x[-1] - x[0]) / (x.size - 1)
    # the running mean of three points adds its variance, 2/3 step^2, to that of a Gaussian peak
    degrees = np.sqrt(np.maximum(degrees**2 - 8.0 * np.log(2.0) * (2.0 / 3.0) * steps**2, steps**2))
    single = [_single_width(width, x[peak], lines) for width, peak in zip(degrees, strong, strict=True)]
    keep = widths > 1.0
    return float(np.median(np.array(single)[keep])) if np.any(keep) else None


def _single_width(observed: float, two_theta: float, lines: list[tuple[float, float]]) -> float:
    """Return the width of one line whose doublet is seen with this width."""
    sine = np.sin(np.radians(two_theta / 2.0))
    first, others = lines[0], lines[1:]
    split = [
        (2.0 * np.degrees(np.arcsin(min(sine * length / first[0], 1.0))) - two_theta, weight / first[1])
        for length, weight in others
    ]
    low, high = 0.1 * observed, observed
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _seen_width(middle, split, observed) < observed else (low, middle)
    return 0.5 * (low + high)


def _seen_width(width: float, split: list[tuple[float, float]], reach: float) -> float:
    """Return the full width at half maximum around the top of a line and its satellites (half Lorentzian)."""
    t = np.linspace(-2.0 * reach, 2.0 * reach, 801)

    def shape(at: np.ndarray) -> np.ndarray:
        ratio = (at / width) ** 2
        mixed: np.ndarray = 0.5 / (1.0 + 4.0 * ratio) + 0.5 * np.exp(-4.0 * np.log(2.0) * ratio)
        return mixed

    total = shape(t)
    for shift, weight in split:
        total = total + weight * shape(t - shift)
    top = int(np.argmax(total))
    below = total < 0.5 * total[top]
    left = np.flatnonzero(below[:top])
    right = np.flatnonzero(below[top:])
    start = left[-1] if left.size else 0
    end = top + right[0] if right.size else t.size - 1
    return float(t[end] - t[start])


def match_factors(
    x: np.ndarray, net: np.ndarray, sigma: np.ndarray, parts: list[np.ndarray], width: float, top: float
) -> list[float]:
    """Return the factor of each part that matches the data's net intensity.

    Non-negative least squares on sums over broad bins. A part that comes out at nothing gets one
    thousandth of its largest possible factor, so that it keeps a gradient.

    Args:
        x: abscissa, shape (n,), degrees.
        net: intensity less background, shape (n,).
        sigma: its uncertainty, shape (n,).
        parts: patterns of the phases, each of shape (n,).
        width: typical peak width, degrees.
        top: largest intensity.
    """
    edges = _bins(x, max(BIN_DEG, BIN_WIDTHS * width))
    variance = np.add.reduceat(sigma**2, edges)
    columns = np.stack([np.add.reduceat(part, edges) for part in parts], axis=1) / np.sqrt(variance)[:, None]
    target = np.add.reduceat(net, edges) / np.sqrt(variance)
    norms = np.linalg.norm(columns, axis=0)
    usable = norms > 0
    factors = np.zeros(len(parts))
    if np.any(usable):
        factors[usable] = nnls(columns[:, usable] / norms[usable], target)[0] / norms[usable]
    return [max(float(factor), _least(part, top)) for factor, part in zip(factors, parts, strict=True)]


def factor_beside(rest: np.ndarray, sigma: np.ndarray, own: np.ndarray, top: float) -> float:
    """Return the factor of a pattern that matches best what others leave, at least one thousandth of its largest.

    Args:
        rest: intensity less background and the other patterns, shape (n,).
        sigma: its uncertainty, shape (n,).
        own: the pattern, shape (n,).
        top: largest intensity.
    """
    weight = 1.0 / np.square(sigma)
    power = float(np.dot(weight, own * own))
    factor = float(np.dot(weight, rest * own)) / power if power > 0.0 else 0.0
    return max(factor, _least(own, top))


def _least(part: np.ndarray, top: float) -> float:
    """Return one thousandth of the largest factor that a pattern can have: below it, a scale has no gradient."""
    return 1e-3 * top / max(float(part.max()), 1e-300)


def _bins(x: np.ndarray, width: float) -> np.ndarray:
    """Return the start index of each non-empty bin."""
    number = np.floor((x - x[0]) / width).astype(np.int64)
    return np.flatnonzero(np.r_[True, np.diff(number) > 0])
