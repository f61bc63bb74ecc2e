"""Which curve lies under the lines of a pattern? Asymmetrically reweighted penalised least squares, from data alone.

Baek, Park, Ahn & Choo (2015), doi:10.1039/C4AN01061B, as pybaselines has it; GSAS-II's automatic background does the
same. The curve is no measurement: it was drawn through the very points that it is then held against, and what that
costs is told with it (:attr:`Baseline.parameters`).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from autoxrd.domain.pattern import FloatArray
from autoxrd.errors import UserInputError

__all__ = ["DEFAULT_BASELINE_SETTINGS", "Baseline", "BaselineSettings", "estimate_baseline"]


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """Of the automatic background.

    Args:
        wave_fwhm: shortest wave that the curve follows, in widths of a line. On simulated patterns (30 lines of 0.1 and
            0.2 degrees over 80, half Lorentzian) the error grows by a sixth from 30 widths to 20 and by as much again
            to 15, as the curve climbs up the lines; but a hump is taken for a line, and passed below, where it is
            narrower than one wave with 200 counts under it, than two waves with 20 000.
        least_share: shortest wave as a share of the range, however narrow the lines: 20 waves are worth 44 parameters.
        most_share: longest wave as a share of the range.
        first_share: wave of the first curve, from which the width of a line is read.
        strongest: number of the most prominent lines that the width is read from.
        prominence: how far a line stands out, in units of the noise.
        nodes: points of the curve that is handed on for each of its shortest waves; straight lines between them.
        points: most points to a wave: a finer pattern is averaged first, as the stiffness grows with their fourth power
            and soon leaves no digits.
        min_points: least number of points.
        rounds: most rounds of reweighting.
        tolerance: relative change of the weights at which they have settled.
    """

    wave_fwhm: float = 20.0
    least_share: float = 1.0 / 20.0
    most_share: float = 0.5
    first_share: float = 0.25
    strongest: int = 15
    prominence: float = 6.0
    nodes: int = 32
    points: int = 512
    min_points: int = 50
    rounds: int = 100
    tolerance: float = 1e-3


DEFAULT_BASELINE_SETTINGS = BaselineSettings()
_FWHM_TO_NOISE = 1.4826 / math.sqrt(2.0)
"""Median of the absolute difference of neighbours to a standard deviation."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A curve under the lines.

    Args:
        x: where it is given, on the pattern's axis, rising, shape (k,).
        y: its intensity, shape (k,).
        wave: length of the wave that it follows to one half, in the unit of the axis.
        parameters: effective number of its parameters: the trace of the smoother (Hastie & Tibshirani 1990,
            Generalized Additive Models, section 3.5).
        fwhm: width of a line as read from the pattern, None where the wave was given or there is no clear line.
    """

    x: FloatArray
    y: FloatArray
    wave: float
    parameters: float
    fwhm: float | None = None


def estimate_baseline(
    x: FloatArray,
    y: FloatArray,
    *,
    wave: float | None = None,
    settings: BaselineSettings = DEFAULT_BASELINE_SETTINGS,
) -> Baseline:
    """Draw a curve under the lines of a pattern.

    The penalty lambda of a wave of L points is (L / 2 pi)^4: a sine of that length is followed to one half
    (Eilers 2003, doi:10.1021/ac034173t, for second differences).

    Args:
        x: abscissa, rising, shape (n,); over a gap (an excluded region) the pattern is taken as straight.
        y: observed intensity, shape (n,).
        wave: shortest wave that it follows, in the unit of ``x``; None reads the width of a line and takes
            ``settings.wave_fwhm`` of them, between ``least_share`` and ``most_share`` of the range.
        settings: thresholds.

    Raises:
        UserInputError: ``estimate_impossible``.
    """
    if x.size < settings.min_points:
        text = f"A background is estimated from at least {settings.min_points} points, not {x.size}."
        raise UserInputError("estimate_impossible", text)
    grid, even = _evenly(x, y)
    step, reach = float(grid[1] - grid[0]), float(grid[-1] - grid[0])
    if wave is not None and not 4.0 * step <= wave <= 2.0 * reach:
        text = f"The shortest wave of a background is between {4 * step:.3g} and {2 * reach:.3g}, not {wave:g}."
        raise UserInputError("estimate_impossible", text)
    fwhm = None
    if wave is None:
        fwhm = _line_width(even, settings)
        asked = settings.wave_fwhm * fwhm * step if fwhm is not None else 0.0
        wave = min(max(asked, settings.least_share * reach), settings.most_share * reach)
    curve, weights, stiffness = _drawn(even, wave / step, settings)
    nodes = np.linspace(grid[0], grid[-1], min(math.ceil(settings.nodes * reach / wave) + 1, grid.size))
    return Baseline(
        x=nodes,
        y=np.interp(nodes, grid, curve),
        wave=wave,
        parameters=_effective_parameters(weights, stiffness),
        fwhm=None if fwhm is None else fwhm * step,
    )


def _evenly(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a pattern on even steps of its usual size, both ends kept."""
    count = round(float(x[-1] - x[0]) / float(np.median(np.diff(x)))) + 1
    grid = np.linspace(x[0], x[-1], max(count, x.size // 2))
    return grid, np.interp(grid, x, y)


def _drawn(y: FloatArray, points: float, settings: BaselineSettings) -> tuple[FloatArray, FloatArray, float]:
    """Return the curve, the weights that it was drawn with, and its stiffness, for waves of so many points."""
    # an import of a second, wanted by few jobs
    from pybaselines.whittaker import arpls

    width = max(math.ceil(points / settings.points), 1)
    if width > 1:
        starts = np.arange(0, y.size - width // 2, width)
        sizes = np.diff(np.append(starts, y.size))
        curve, weights, stiffness = _drawn(np.add.reduceat(y, starts) / sizes, points / width, settings)
        return np.interp(np.arange(y.size), starts + 0.5 * (sizes - 1), curve), weights, stiffness
    stiffness = (points / (2.0 * math.pi)) ** 4
    with warnings.catch_warnings():
        # a pattern without noise ends with no point under the curve: the last curve stands
        warnings.simplefilter("ignore")
        curve, told = arpls(y, lam=stiffness, diff_order=2, max_iter=settings.rounds, tol=settings.tolerance)
    if not np.all(np.isfinite(curve)):
        raise UserInputError("estimate_impossible", "No background can be estimated from this pattern.")
    return np.asarray(curve), np.asarray(told["weights"]), stiffness


def _line_width(y: FloatArray, settings: BaselineSettings) -> float | None:
    """Return the usual width at half height of the clearest lines, in steps; None where there is none."""
    from scipy.signal import find_peaks, peak_widths

    net = y - _drawn(y, settings.first_share * y.size, settings)[0]
    smooth = np.convolve(net, np.ones(3) / 3.0, mode="same")
    noise = _FWHM_TO_NOISE * float(np.median(np.abs(np.diff(y))))
    peaks, found = find_peaks(smooth, prominence=max(settings.prominence * noise, 1e-12))
    if peaks.size == 0:
        return None
    strong = peaks[np.argsort(-found["prominences"], kind="stable")[: settings.strongest]]
    return float(np.median(peak_widths(smooth, strong, rel_height=0.5)[0]))


def _effective_parameters(weights: FloatArray, stiffness: float) -> float:
    """Return trace((W + lambda D'D)^-1 W), D the second differences, without the inverse of the whole matrix.

    Hutchinson & de Hoog (1985), doi:10.1007/BF01389878: of a banded matrix L D L' the central bands of the inverse
    follow from below upwards.
    """
    count = weights.size
    pivot, first, second = _factors(weights, stiffness)
    # entries (i, i), (i, i+1), (i+1, i+1) of the inverse below the row at hand
    here, beside, after, total = 0.0, 0.0, 0.0, 0.0
    for row in range(count - 1, -1, -1):
        a = first[row + 1] if row + 1 < count else 0.0
        b = second[row + 2] if row + 2 < count else 0.0
        to_next = -(a * here + b * beside)
        to_second = -(a * beside + b * after)
        after, beside, here = here, to_next, 1.0 / pivot[row] - a * to_next - b * to_second
        total += here * float(weights[row])
    return total


def _factors(weights: FloatArray, stiffness: float) -> tuple[list[float], list[float], list[float]]:
    """Return D and the two lower bands of L in W + lambda D'D = L D L', by row."""
    count = weights.size
    diagonal, off = np.full(count, 6.0), np.full(count, -4.0)
    diagonal[[0, -1]], diagonal[[1, -2]], off[[1, -1]] = 1.0, 5.0, -2.0
    middle = (weights + stiffness * diagonal).tolist()
    sides = (stiffness * off).tolist()
    pivot, first, second = [0.0] * count, [0.0] * count, [0.0] * count
    for row in range(count):
        far = stiffness / pivot[row - 2] if row > 1 else 0.0
        near = (sides[row] - far * pivot[row - 2] * first[row - 1]) / pivot[row - 1] if row > 0 else 0.0
        less = (near * near * pivot[row - 1] if row > 0 else 0.0) + (far * far * pivot[row - 2] if row > 1 else 0.0)
        pivot[row], first[row], second[row] = middle[row] - less, near, far
    return pivot, first, second
