"""Distances that atoms should keep: further observations of a fit, which enter no figure of the data."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
from axg_model import cell_of
from axg_names import Column
from axg_phases import phase_index
from axg_state import State
from axg_symmetry import all_operations, space_group
from GSASII import GSASIIlattice as G2lat

__all__ = ["Restraints", "restrain_distances"]

MOST = 2000
SAME_ANGSTROM = 0.1
"""Atoms closer than this are one, or on one site."""


def restrain_distances(state: State, values: dict[str, Any]) -> State:
    """Restrain the distances between some atoms that are bonded now.

    Args:
        state: where to.
        values: ``phase``; ``from`` and ``to``: labels, parted by blanks; ``distance_angstrom`` and ``esd_angstrom``;
            ``within``: pairs up to this multiple of the distance count as bonded.

    Raises:
        ValueError: an atom is unknown, or no pair is close enough.
    """
    index = phase_index(state, values["phase"])
    phase = state.phases[index]
    labels = [atom["label"] for atom in phase.domain["atoms"]]
    ends = [str(values[key]).split() for key in ("from", "to")]
    missing = [label for end in ends for label in end if label not in labels]
    if missing:
        raise ValueError(f"phase {phase.name} has no atom {', '.join(missing)}")
    wanted, esd, within = (float(values[key]) for key in ("distance_angstrom", "esd_angstrom", "within"))
    if not (wanted > 0.0 and esd > 0.0 and within >= 1.0):
        raise ValueError("a distance and its esd are positive, 'within' is at least 1")
    found: list[tuple[str | float, ...]] = []
    for first, second in itertools.product(*ends):
        images = _images(state, index, first, second, within * wanted)
        found += [(phase.name, first, second, *image, wanted, esd) for image in images]
    if not found:
        raise ValueError(f"no pair of {' '.join(ends[0])} and {' '.join(ends[1])} is within {within * wanted:.2f} A")
    every = tuple(dict.fromkeys((*state.restraints, *found)))
    if len(every) > MOST:
        raise ValueError(f"more than {MOST} distances cannot be restrained")
    return replace(state, restraints=every)


def _images(state: State, index: int, first: str, second: str, reach: float) -> list[tuple[float, ...]]:
    """Return rotation and translation (nine and three numbers) of each image of one atom near another."""
    phase = state.phases[index]
    metric = G2lat.cell2Gmat(cell_of(phase, state.values))[1]
    here, there = (_position(state.values, phase.name, label) for label in (first, second))
    seen: list[np.ndarray] = []
    found = []
    for rotation, shift in all_operations(space_group(phase.symbol), phase.shift):
        base = rotation @ there + shift
        for step in itertools.product((-2, -1, 0, 1, 2), repeat=3):
            image = base + np.array(step) - np.floor(base - here + 0.5)
            length = float(np.sqrt((image - here) @ metric @ (image - here)))
            new = not any(np.allclose(image, other, atol=1e-4) for other in seen)
            if SAME_ANGSTROM < length <= reach and new:
                seen.append(image)
                moved = image - rotation @ there
                found.append((*map(float, rotation.ravel()), *map(float, moved)))
    return found


def _position(values: dict[str, float], phase: str, label: str) -> np.ndarray:
    return np.array([values[f"phase.{phase}.atom.{label}.{axis}"] for axis in "xyz"])


class Restraints:
    """The restrained distances of a state, as rows beside the data's.

    Args:
        state: the state.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._rows = state.restraints if state.mode == "rietveld" else ()
        self._phases = {phase.name: phase for phase in state.phases}

    def __len__(self) -> int:
        return len(self._rows)

    def distances(self, values: dict[str, float]) -> np.ndarray:
        """Return the distances, angstrom, shape (m,)."""
        metrics = {name: G2lat.cell2Gmat(cell_of(phase, values))[1] for name, phase in self._phases.items()}
        found = []
        for row in self._rows:
            name, first, second = str(row[0]), str(row[1]), str(row[2])
            numbers = np.array(row[3:15], dtype=float)
            image = numbers[:9].reshape(3, 3) @ _position(values, name, second) + numbers[9:]
            across = image - _position(values, name, first)
            found.append(np.sqrt(across @ metrics[name] @ across))
        return np.array(found)

    def residual(self, values: dict[str, float]) -> np.ndarray:
        """Return wanted less present distance over esd, shape (m,)."""
        wanted, esd = np.array([row[15:17] for row in self._rows], dtype=float).T
        return np.asarray((wanted - self.distances(values)) / esd)

    def jacobian(self, values: dict[str, float], columns: tuple[Column, ...]) -> np.ndarray:
        """Return the derivatives of distance over esd by columns, shape (columns, m)."""
        esd = np.array([float(row[16]) for row in self._rows])
        rows = np.zeros((len(columns), len(self._rows)))
        for number, column in enumerate(columns):
            if any(_moves_atoms(key) for key, _ in column.moves):
                up, down, span = column.around(values)
                rows[number] = (self.distances(up) - self.distances(down)) / span / esd
        return rows


def _moves_atoms(key: str) -> bool:
    return ".cell." in key or (".atom." in key and key.endswith((".x", ".y", ".z")))
