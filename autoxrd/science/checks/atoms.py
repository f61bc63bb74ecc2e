"""Are occupancies, displacement parameters and distances possible?"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import gemmi
import numpy as np
from numpy.typing import NDArray

from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import Violation
from autoxrd.domain.structure import AtomSite, UnitCell
from autoxrd.science.checks.cell import cell_is_valid, refined_cell
from autoxrd.science.checks.common import Parameters, Severity, violation
from autoxrd.science.inputs import PhaseOutcome
from autoxrd.science.settings import Limits

__all__ = ["check_atoms", "short_contacts"]

_BLOCK = 1 << 16
"""Distances that are held at a time."""
_SPECIAL_ANGSTROM = 0.02
_NEIGHBOURS = np.array(sorted(product((-1.0, 0.0, 1.0), repeat=3), key=lambda t: sum(map(abs, t))))
"""Lattice translations to the cell itself and the cells around it."""


def check_atoms(phase: PhaseOutcome, parameters: Parameters, limits: Limits) -> list[Violation]:
    """Return ``occupancy_range``, ``uiso_range``, ``site_sum`` and ``distance_short`` of a phase."""
    found = []
    for atom in phase.structure.atoms:
        name = f"phase.{phase.name}.atom.{atom.label}"
        found += _occupancy(atom, name, parameters, limits)
        found += _displacement(atom, name, parameters, limits)
    cell = refined_cell(phase)
    if cell_is_valid(cell) and phase.structure.atoms:
        found += _contacts(phase, cell, parameters, limits)
    return found


def _beyond(excess: float, esd: float, limits: Limits) -> Severity:
    """A value outside by no more than a few esd may well be inside: soft."""
    return "soft" if esd > 0 and excess <= limits.esd_sigmas * esd else "hard"


def _occupancy(atom: AtomSite, name: str, parameters: Parameters, limits: Limits) -> list[Violation]:
    value = atom.occupancy
    excess = max(value - 1.0, -value)
    if excess <= limits.occupancy_tolerance:
        return []
    severity = _beyond(excess, parameters.esd(f"{name}.occupancy"), limits)
    limit = 1.0 if value > 1.0 else 0.0
    text = f"The occupancy of {atom.label} is {value:.4f}."
    return [violation("occupancy_range", f"{name}.occupancy", text, value=value, limit=limit, severity=severity)]


def _displacement(atom: AtomSite, name: str, parameters: Parameters, limits: Limits) -> list[Violation]:
    values = [v for v in (atom.u_iso, *(atom.u_aniso[:3] if atom.u_aniso else ())) if v is not None]
    subject = f"{name}.uiso"
    esd = parameters.esd(subject)
    for value in values:
        if value <= 0.0:
            # a value that nobody refined is the input's, not the fit's
            released = parameters.get(subject)
            free = released is not None and released.released
            severity: Severity = _beyond(-value, esd, limits) if free else "soft"
            text = f"The mean-square displacement of {atom.label} is {value:.5f} angstrom^2, not positive."
            return [violation("uiso_range", subject, text, value=value, limit=0.0, severity=severity)]
        if value > limits.uiso_max:
            severity = _beyond(value - limits.uiso_max, esd, limits)
            text = f"The mean-square displacement of {atom.label} is {value:.4f} angstrom^2: it scatters nothing."
            return [violation("uiso_range", subject, text, value=value, limit=limits.uiso_max, severity=severity)]
    return []


@lru_cache(maxsize=256)
def _radius(element: str) -> float:
    return float(gemmi.Element(element).covalent_r)


@lru_cache(maxsize=64)
def _operators(triplets: tuple[str, ...]) -> tuple[FloatArray, FloatArray]:
    """Return rotations (o, 3, 3) and translations (o, 3)."""
    ops = [gemmi.Op(triplet) for triplet in triplets] or [gemmi.Op("x,y,z")]
    rotations = np.array([op.rot for op in ops], dtype=float) / gemmi.Op.DEN
    return rotations, np.array([op.tran for op in ops], dtype=float) / gemmi.Op.DEN


def _orthogonal(cell: UnitCell) -> FloatArray:
    return np.array(gemmi.UnitCell(*cell.as_tuple()).orth.mat.tolist())


def _translations(cell: UnitCell, reach: float) -> FloatArray:
    """Return lattice translations beside the nearest-image one that can bring atoms within ``reach``."""
    reciprocal = gemmi.UnitCell(*cell.as_tuple()).reciprocal()
    near = 2.0 * reach * max(reciprocal.a, reciprocal.b, reciprocal.c) >= 1.0
    return _NEIGHBOURS if near else _NEIGHBOURS[:1]


def short_contacts(
    atoms: tuple[AtomSite, ...], operations: tuple[str, ...], cell: UnitCell, limit: FloatArray
) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
    """Return pairs (i, j, distance in angstrom) closer than ``limit[i, j]``, shortest per pair, i <= j.

    An atom's distance to itself is that to its own symmetry images and translations.
    """
    rotations, shifts = _operators(operations)
    frac = np.array([(a.x, a.y, a.z) for a in atoms])
    images = (np.einsum("oij,aj->aoi", rotations, frac) + shifts).reshape(-1, 3)
    owner = np.repeat(np.arange(len(atoms)), len(rotations))
    first_image = np.arange(len(atoms)) * len(rotations)
    orth, extra = _orthogonal(cell), _translations(cell, float(limit.max()))
    moved = (extra @ orth.T)[:, None, None, :]
    best = np.full((len(atoms), len(atoms)), np.inf)
    size = max(_BLOCK // (len(images) * len(extra)), 1)
    for begin in range(0, len(atoms), size):
        rows = np.arange(begin, min(begin + size, len(atoms)))
        delta = images[None, :, :] - frac[rows, None, :]
        delta -= np.round(delta)
        square = np.sum(np.square(delta @ orth.T + moved), axis=3)
        # an image on the atom itself is the atom: a special position, given to the digits of a file
        square[(owner == rows[:, None]) & (square < _SPECIAL_ANGSTROM**2)] = np.inf
        best[rows] = np.sqrt(np.minimum.reduceat(square.min(axis=0), first_image, axis=1))
    first, second = np.nonzero(best < limit)
    once = first <= second
    first, second = first[once], second[once]
    return first.astype(np.int64), second.astype(np.int64), best[first, second]


def _contacts(phase: PhaseOutcome, cell: UnitCell, parameters: Parameters, limits: Limits) -> list[Violation]:
    atoms = phase.structure.atoms
    radii = np.array([_radius(atom.element) for atom in atoms])
    limit = np.maximum(limits.distance_factor * (radii[:, None] + radii[None, :]), limits.same_site_angstrom)
    first, second, distance = short_contacts(atoms, phase.structure.operations, cell, limit)
    found = _sites(phase, first, second, distance, parameters, limits)
    for i, j, d in zip(first, second, distance, strict=True):
        together = atoms[i].occupancy + atoms[j].occupancy
        allowed = limits.coincident_occupancy if d < limits.same_site_angstrom else limits.distance_occupancy
        if together <= allowed:
            continue
        subject = f"phase.{phase.name}.atom.{atoms[i].label}-{atoms[j].label}"
        text = f"{atoms[i].label} and {atoms[j].label} are {d:.3f} angstrom apart; the radii ask for {limit[i, j]:.2f}."
        found.append(violation("distance_short", subject, text, value=float(d), limit=float(limit[i, j])))
    return found


def _sites(
    phase: PhaseOutcome,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    distance: FloatArray,
    parameters: Parameters,
    limits: Limits,
) -> list[Violation]:
    """Sum the occupancies of atoms that share a site."""
    atoms = phase.structure.atoms
    group = list(range(len(atoms)))
    for i, j, d in zip(first, second, distance, strict=True):
        if i != j and d < limits.same_site_angstrom:
            old, new = group[j], group[i]
            group = [new if g == old else g for g in group]
    found = []
    for label in sorted(set(group)):
        members = [atoms[i] for i, g in enumerate(group) if g == label]
        total = sum(atom.occupancy for atom in members)
        if len(members) < 2 or total - 1.0 <= limits.occupancy_tolerance:
            continue
        esds = [parameters.esd(f"phase.{phase.name}.atom.{atom.label}.occupancy") for atom in members]
        severity = _beyond(total - 1.0, float(np.hypot.reduce(esds)), limits)
        shown = ", ".join(f"{atom.label} {atom.occupancy:.3f}" for atom in members)
        subject = f"phase.{phase.name}.site.{'+'.join(atom.label for atom in members)}"
        text = f"The occupancies of one site sum to {total:.3f} ({shown})."
        found.append(violation("site_sum", subject, text, value=total, limit=1.0, severity=severity))
    return found
