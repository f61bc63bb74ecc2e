"""Put atoms exactly onto their special positions and check what shares a site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray

__all__ = ["Operations", "SnappedSite", "shortest_contacts", "site_distances", "snap"]


@dataclass(frozen=True)
class Operations:
    """Symmetry operations as arrays: rotations (m, 3, 3) and translations (m, 3), fractional."""

    rotations: FloatArray
    translations: FloatArray

    @classmethod
    def from_triplets(cls, triplets: Sequence[str]) -> Operations:
        """Parse xyz triplets through gemmi."""
        import gemmi

        seitz = np.array([gemmi.Op(text).float_seitz() for text in triplets], dtype=np.float64)
        return cls(rotations=seitz[:, :3, :3], translations=seitz[:, :3, 3])

    def images(self, position: FloatArray) -> FloatArray:
        """All images of one position, shape (m, 3), not reduced to the cell."""
        return np.asarray(self.rotations @ position + self.translations, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class SnappedSite:
    """A position after snapping.

    Args:
        position: fractional coordinates, shape (3,).
        multiplicity: number of equivalent positions in the cell.
        moved: largest change of a coordinate, fraction of the cell.
    """

    position: FloatArray
    multiplicity: int
    moved: float


def _stabiliser(operations: Operations, position: FloatArray, tolerance: float) -> NDArray[np.bool_]:
    """Operations that map a position onto itself within a tolerance per coordinate."""
    delta = operations.images(position) - position
    delta -= np.rint(delta)
    return np.asarray(np.max(np.abs(delta), axis=1) <= tolerance)


def snap(operations: Operations, position: FloatArray, *, tolerance: float) -> SnappedSite:
    """Average a position over the operations that nearly fix it, so that they fix it exactly.

    Args:
        operations: the space group.
        position: fractional coordinates, shape (3,).
        tolerance: largest change of a coordinate that rounding in a file can explain.
    """
    n_operations = operations.translations.shape[0]
    # A coordinate wrong by t moves its image by up to 3 t on hexagonal axes (x - y, doubled).
    reach = 4.0 * tolerance
    for _ in range(8):
        near = _stabiliser(operations, position, reach)
        images = operations.images(position)[near]
        images = images - np.rint(images - position)
        mean = images.mean(axis=0)
        moved = float(np.max(np.abs(mean - position)))
        exact = _stabiliser(operations, mean, 1e-7)
        if moved <= tolerance and bool(np.all(exact[near])):
            return SnappedSite(_tidy(mean), n_operations // int(exact.sum()), moved)
        reach *= 0.5
    exact = _stabiliser(operations, position, 1e-7)
    return SnappedSite(position, n_operations // max(1, int(exact.sum())), 0.0)


def _tidy(position: FloatArray) -> FloatArray:
    """Remove the last digits of noise that averaging leaves."""
    out = np.round(position, 12)
    out[out == 0.0] = 0.0
    return out


def shortest_contacts(operations: Operations, orthogonalisation: FloatArray, positions: FloatArray) -> FloatArray:
    """Shortest distances between sites, periodic images included.

    Args:
        operations: the space group.
        orthogonalisation: matrix from fractional to Cartesian angstrom, shape (3, 3).
        positions: fractional coordinates of the asymmetric unit, shape (n, 3).

    Returns:
        Matrix (n, n) of the shortest distance in angstrom from site i to any image of site j that is
        further than 0.1 angstrom away (nearer is the same point).
    """
    n = positions.shape[0]
    shifts = np.array(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 3)).reshape(3, -1).T
    out = np.full((n, n), np.inf)
    for j in range(n):
        images = operations.images(positions[j])
        images = (images - np.floor(images))[:, None, :] + shifts[None, :, :]
        cartesian = images.reshape(-1, 3) @ orthogonalisation.T
        for i in range(n):
            home = (positions[i] - np.floor(positions[i])) @ orthogonalisation.T
            distance = np.sqrt(np.sum((cartesian - home) ** 2, axis=1))
            apart = distance[distance > 0.1]
            out[i, j] = float(apart.min()) if apart.size else np.inf
    return out


def site_distances(operations: Operations, orthogonalisation: FloatArray, positions: FloatArray) -> FloatArray:
    """Distance from each site to the nearest image of each other site, angstrom, shape (n, n), zero included."""
    n = positions.shape[0]
    out = np.zeros((n, n))
    for j in range(n):
        images = operations.images(positions[j])
        delta = positions[:, None, :] - images[None, :, :]
        delta -= np.rint(delta)
        cartesian = delta @ orthogonalisation.T
        out[:, j] = np.sqrt(np.min(np.sum(cartesian**2, axis=2), axis=1))
    return out
