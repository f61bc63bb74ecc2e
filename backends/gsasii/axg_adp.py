"""Anisotropic displacement parameters: which combinations a site allows, and what they do to a structure factor.

U_ij is meant on the basis a*_i e_i of the dictionary (Grosse-Kunstleve & Adams 2002, 10.1107/S0021889802008580):
U_ij a*_i a*_j is the mean of the products of the shifts in fractions of the cell, and turns like these.
"""

from __future__ import annotations

import numpy as np
from axg_symmetry import reduced_rows, site_rotations
from axr_wire import Refused

__all__ = ["COMPONENTS", "allowed_tensors", "damping", "equivalent_weights", "isotropic_tensor", "positive"]

COMPONENTS = ("u11", "u22", "u33", "u12", "u13", "u23")
_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def _metric(cell: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return the direct metric, shape (3, 3), and the lengths of the reciprocal axes, shape (3,)."""
    cosines = np.cos(np.radians(cell[3:]))
    angles = np.array([[1.0, cosines[2], cosines[1]], [cosines[2], 1.0, cosines[0]], [cosines[1], cosines[0], 1.0]])
    metric = angles * np.outer(cell[:3], cell[:3])
    return metric, np.sqrt(np.diag(np.linalg.inv(metric)))


def allowed_tensors(position: np.ndarray, group: dict[str, object], cell: list[float]) -> list[dict[str, float]]:
    """Return the tensors that a site's symmetry allows: for each free one, what moves with its leading component.

    Args:
        position: fractions, on the origin of the group.
        group: GSAS-II's space group.
        cell: lengths (angstrom) and angles (degrees).
    """
    rotations = site_rotations(position, group)
    stars = _metric(cell)[1]
    images = []
    for i, j in _PAIRS:
        unit = np.zeros((3, 3))
        unit[i, j] = unit[j, i] = 1.0
        mean = np.mean([rotation @ unit @ rotation.T for rotation in rotations], axis=0)
        images.append([mean[a, b] / (stars[a] * stars[b]) for a, b in _PAIRS])
    matrix = np.array(images)
    rows = reduced_rows(matrix / np.max(np.abs(matrix)))
    return [
        {COMPONENTS[k]: float(v) for k, v in enumerate(row / row[np.flatnonzero(row)[0]]) if v != 0.0} for row in rows
    ]


def isotropic_tensor(uiso: float, cell: list[float]) -> dict[str, float]:
    """Return the six components of an isotropic displacement."""
    metric, stars = _metric(cell)
    reciprocal = np.linalg.inv(metric) / np.outer(stars, stars)
    return {name: float(uiso * reciprocal[i, j]) for name, (i, j) in zip(COMPONENTS, _PAIRS, strict=True)}


def equivalent_weights(cell: list[float]) -> dict[str, float]:
    """Return how much each component adds to Ueq (Fischer & Tillmanns 1988, 10.1107/S0108270187012745)."""
    metric, stars = _metric(cell)
    found = {}
    for name, (i, j) in zip(COMPONENTS, _PAIRS, strict=True):
        found[name] = float((1.0 if i == j else 2.0) * metric[i, j] * stars[i] * stars[j] / 3.0)
    return found


def damping(turned: np.ndarray, tensor: np.ndarray, stars: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the Debye-Waller factor of an atom, and the derivative of its logarithm by the six components.

    Args:
        turned: indices, shape (..., 3).
        tensor: the six components, angstrom^2.
        stars: lengths of the reciprocal axes, 1/angstrom.

    Returns:
        Shape (...) and (6, ...).
    """
    scaled = turned * stars
    slopes = np.stack([-2.0 * np.pi**2 * (1.0 if i == j else 2.0) * scaled[..., i] * scaled[..., j] for i, j in _PAIRS])
    return np.exp(np.tensordot(tensor, slopes, axes=1)), slopes


def positive(tensor: list[float]) -> bool:
    """Return whether a tensor is that of a displacement: none of its mean squares is negative."""
    if not np.all(np.isfinite(tensor)):
        raise Refused("diverged", "adp_not_finite", "A displacement parameter is not finite.")
    matrix = np.zeros((3, 3))
    for value, (i, j) in zip(tensor, _PAIRS, strict=True):
        matrix[i, j] = matrix[j, i] = value
    return bool(np.linalg.eigvalsh(matrix)[0] > 0.0)
