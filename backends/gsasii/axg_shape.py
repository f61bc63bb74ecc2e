"""GSAS-II's peak shape with axial divergence, as a few shifted copies of its pseudo-Voigt.

GSAS-II integrates over the axial divergence (Finger, Cox & Jephcoat 1994, 10.1107/S0021889894004218) for every
point and every derivative anew. The nodes and weights of that integral belong to the line, not to the point: here
they are worked out once per line, so that one call of GSAS-II's pseudo-Voigt per line remains. Its rule for the
number of nodes looks at the Lorentzian width alone: a broad line gets one node, that is a plain shift, and the
sum of squares jumps where the number changes. The rule is kept, so that a project opened in GSAS-II shows the
pattern that was refined, but the number is held during a pass. Where the rule asks for more than MOST_NODES
(hardly any Lorentzian width: up to 200) the integral is done to the same accuracy with few, after a substitution
that takes its singularity away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Nodes", "node_counts", "nodes_of"]

MOST_NODES = 15
SMOOTH_NODES = (12, 24, 48)
"""Numbers of nodes after the substitution: the widest gap between two is the foot's length over half of them."""
_TERMS = np.array([2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30])
"""Numbers of Gauss-Legendre terms that GSAS-II has tables of, as far as they are used here; half of them are nodes."""


@dataclass(frozen=True)
class Nodes:
    """Shifts and weights of the copies of lines that have equally many.

    Args:
        shifts: degrees from a copy's centre to the line's position, shape (m, k).
        weights: sum to one, shape (m, k).
    """

    shifts: np.ndarray
    weights: np.ndarray


def node_counts(position: np.ndarray, lorentz: np.ndarray, fwhm: np.ndarray, axial: float) -> np.ndarray:
    """Return the number of nodes of each line by GSAS-II's rule; below zero: that many after the substitution.

    Args:
        position: degrees 2theta, any shape.
        lorentz: Lorentzian width, centidegrees, same shape.
        fwhm: whole width, degrees, same shape.
        axial: (S+H)/L.
    """
    foot = np.nan_to_num(np.abs(position - _edge(position, axial)))
    table = np.searchsorted(_TERMS, np.floor(300.0 * foot / lorentz))
    smooth = np.searchsorted(SMOOTH_NODES[:-1], 2.0 * foot / fwhm)
    few = _TERMS[np.minimum(table, _TERMS.size - 1)] // 2
    return np.asarray(np.where(table < _TERMS.size, few, -np.array(SMOOTH_NODES)[smooth]))


def nodes_of(position: np.ndarray, count: int, axial: float) -> Nodes:
    """Return the nodes of lines that share a number of them.

    Args:
        position: degrees 2theta, shape (m,).
        count: as :func:`node_counts` gives it.
        axial: (S+H)/L.
    """
    edge = _edge(position, axial)
    if count < 0:
        at, weight = np.polynomial.legendre.leggauss(-count)
        at, weight = 0.5 * (at + 1.0), 0.5 * weight
        fraction, weight = 1.0 - at**2, 2.0 * at * weight
    else:
        at, weight = np.polynomial.legendre.leggauss(2 * count)
        fraction, weight = at[count:], weight[count:]
    delta = edge[:, None] + (position - edge)[:, None] * fraction
    weights = weight * _density(position, delta, axial)
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
