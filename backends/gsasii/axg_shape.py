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

from dataclasses import dataclass

import numpy as np

__all__ = ["Nodes", "node_counts", "nodes_of"]

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
    foot = np.nan_to_num(np.abs(position - _edge(position, axial)))
    wanted = 2.0 * foot / fwhm + _SPARE
    return np.asarray(_COUNTS[np.minimum(np.searchsorted(_COUNTS, wanted), _COUNTS.size - 1)])


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
