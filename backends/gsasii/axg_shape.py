"""GSAS-II's peak shape with axial divergence, as a few shifted copies of its pseudo-Voigt.

GSAS-II integrates over the axial divergence (Finger, Cox & Jephcoat 1994, 10.1107/S0021889894004218) for every point
and every derivative anew, with a number of nodes that its Lorentzian width alone decides: a line with a width of
0.08 degrees at 30 degrees and (S+H)/L = 0.04 gets one, that is a plain shift, and its profile is off by a quarter of
its height; a line without Lorentzian width gets two hundred; and the sum of squares jumps where the number changes,
so that a fit of the divergence has no minimum to converge to. The nodes and weights belong to the line, not to the
point. Here they are worked out once per line, to convergence, after a substitution that takes the integrand's
singularity away; one call of GSAS-II's pseudo-Voigt per line remains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from GSASII import GSASIIpwd as G2pwd

__all__ = [
    "AXIAL_STEP",
    "FWHM_TO_VARIANCE",
    "PLAIN",
    "SLOPES",
    "Copies",
    "Nodes",
    "axial_foot",
    "axial_of",
    "node_counts",
    "nodes_of",
    "single_line",
]

PLAIN = G2pwd.pyd.pypsvoigt
SLOPES = G2pwd.pyd.pydpsvoigt
FWHM_TO_VARIANCE = 1e4 / (8.0 * math.log(2.0))
"""From a squared width in degrees^2 to GSAS-II's variance in centidegrees^2."""
AXIAL_FLOOR = 0.002
"""GSAS-II takes SH/L no lower than this, in silence."""
AXIAL_STEP = 1e-4
"""Step of the difference of nodes by SH/L."""
_SINGLE = 12
"""Nodes of a line that stands alone: as many for every position, so that a fit of it is smooth."""

_COUNTS = np.array([3, 6, 12, 24, 48])
"""Numbers of nodes in use; the widest gap between two is the length of the line's foot over half of them."""
_SPARE = 2.0


@dataclass(frozen=True)
class Nodes:
    """Shifts and weights of the copies of lines that have equally many.

    Args:
        shifts: degrees from a copy's centre to the line's position, shape (m, k).
        weights: sum to one, shape (m, k).
    """

    shifts: np.ndarray
    weights: np.ndarray


def node_counts(position: np.ndarray, fwhm: np.ndarray, axial: float) -> np.ndarray:
    """Return the number of nodes that each line's profile needs.

    Args:
        position: degrees 2theta, any shape.
        fwhm: width, degrees, same shape.
        axial: (S+H)/L.
    """
    foot = axial_foot(position, axial)
    wanted = 2.0 * foot / fwhm + _SPARE
    return np.asarray(_COUNTS[np.minimum(np.searchsorted(_COUNTS, wanted), _COUNTS.size - 1)])


def axial_foot(position: np.ndarray, axial: float) -> np.ndarray:
    """Return how far the asymmetric foot of lines reaches, degrees, same shape."""
    return np.asarray(np.nan_to_num(np.abs(position - _edge(position, axial))))


def nodes_of(position: np.ndarray, count: int, axial: float) -> Nodes:
    """Return the nodes of lines that share a number of them.

    Args:
        position: degrees 2theta, shape (m,).
        count: number of nodes.
        axial: (S+H)/L.
    """
    edge = _edge(position, axial)
    at, weight = np.polynomial.legendre.leggauss(count)
    at, weight = 0.5 * (at + 1.0), 0.5 * weight
    delta = edge[:, None] + (position - edge)[:, None] * (1.0 - at**2)
    weights = 2.0 * at * weight * _density(position, delta, axial)
    return Nodes(position[:, None] - delta, weights / weights.sum(axis=1, keepdims=True))


def _edge(position: np.ndarray, axial: float) -> np.ndarray:
    """Return the angle at which the asymmetric foot of a line begins, degrees."""
    cosine = np.cos(np.radians(position)) * np.sqrt(axial**2 + 1.0)
    return np.asarray(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def _density(position: np.ndarray, delta: np.ndarray, axial: float) -> np.ndarray:
    """Return the weight of each angle for equal apertures of specimen and detector, up to a factor."""
    line, here = np.radians(position)[:, None], np.radians(delta)
    gap = np.maximum(np.cos(here) ** 2 - np.cos(line) ** 2, 1e-30)
    return np.asarray((axial * np.abs(np.cos(line)) / np.sqrt(gap) - 1.0) / np.cos(here))


@dataclass(frozen=True)
class Copies:
    """One line: where it is seen, and the pseudo-Voigt copies it is made of.

    Args:
        line, number: emission line and reflection.
        window: points.
        grid: degrees from each copy's centre, shape (k, points).
        widths: variance and Lorentzian width.
        weights: of the copies, shape (k,).
        bends: derivatives of the copies' shifts and weights by SH/L, shape (k,) each.
    """

    line: int
    number: int
    window: slice
    grid: np.ndarray
    widths: tuple[float, float]
    weights: np.ndarray
    bends: tuple[np.ndarray, np.ndarray]

    def plain(self) -> np.ndarray:
        """Return the line's profile, shape (points,), unit area in centidegrees."""
        values = PLAIN(self.grid.size, self.grid.ravel(), *self.widths)
        return np.asarray(self.weights @ np.asarray(values, dtype=np.float64).reshape(self.grid.shape))

    def slopes(self) -> np.ndarray:
        """Return the profile and its derivatives by position, variance, width and SH/L, shape (5, points)."""
        found = np.array(SLOPES(self.grid.size, self.grid.ravel(), *self.widths), dtype=np.float64)
        value, by_grid, by_variance, by_width = found.reshape(4, *self.grid.shape)
        moved, weighted = self.bends
        by_axial = weighted @ value + (self.weights * moved) @ by_grid
        plain = [self.weights @ item for item in (value, by_grid, by_variance, by_width)]
        return np.stack([plain[0], -plain[1], plain[2], plain[3], by_axial])


def single_line(x: np.ndarray, position: float, widths: tuple[float, float], axial: float) -> Copies:
    """Return a line that is drawn on all points.

    Args:
        x: degrees, shape (n,).
        position: of the line, degrees.
        widths: variance (centideg^2) and Lorentzian width (centideg).
        axial: (S+H)/L.
    """
    nodes, more = (nodes_of(np.array([position]), _SINGLE, item) for item in (axial, axial + AXIAL_STEP))
    bends = ((more.shifts - nodes.shifts)[0] / AXIAL_STEP, (more.weights - nodes.weights)[0] / AXIAL_STEP)
    grid = (x - position) + nodes.shifts[0][:, None]
    return Copies(0, 0, slice(0, x.size), grid, widths, nodes.weights[0], bends)


def axial_of(values: dict[str, float]) -> float:
    """Return (S+H)/L of a state's values, GSAS-II's floor applied."""
    return max(2.0 * values["profile.S/L"], AXIAL_FLOOR)
