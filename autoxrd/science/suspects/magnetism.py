"""Do unexplained neutron lines at low angle stand where the crystal lattice, or a doubled one, has reflections?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import gemmi
import numpy as np

from autoxrd.domain.instrument import Instrument, Radiation
from autoxrd.domain.pattern import FloatArray
from autoxrd.domain.state import UnexplainedPeak
from autoxrd.domain.structure import CrystalStructure
from autoxrd.science.suspects.settings import SuspectSettings

__all__ = ["MagneticOrder", "magnetic_order"]

_TRANSITION = ("V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Ru", "Os", "Ir")
_INNER = ("Ce", "Pr", "Nd", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "U", "Np", "Pu")
_MAGNETIC = frozenset((*_TRANSITION, *_INNER))
"""Elements whose ions carry ordered moments in solids."""

_WIDE = 0.1
"""Relative range of d over which the density of lattice lines is taken."""


@dataclass(frozen=True, slots=True)
class MagneticOrder:
    """Unexplained lines that magnetic order would explain.

    Args:
        phase: whose lattice indexes them.
        cell: ``the nuclear cell`` or ``a doubled cell``.
        two_theta_deg: the strongest of them.
        d_angstrom: its spacing.
        hkl: its index in the nuclear cell; halves for a doubled one.
        indexed_share: share of the unexplained low-angle area that is indexed.
        chance: probability that the strongest line is indexed by chance.
    """

    phase: str
    cell: str
    two_theta_deg: float
    d_angstrom: float
    hkl: tuple[float, float, float]
    indexed_share: float
    chance: float


def magnetic_order(
    peaks: Sequence[UnexplainedPeak],
    structures: Sequence[CrystalStructure],
    instrument: Instrument,
    settings: SuspectSettings,
) -> MagneticOrder | None:
    """Return the magnetic order that the unexplained lines of a neutron pattern suggest, None where none does.

    Args:
        peaks: lines that no calculated reflection explains.
        structures: refined phases.
        instrument: radiation.
        settings: thresholds.
    """
    if instrument.radiation is not Radiation.NEUTRON:
        return None
    low = sorted(
        (p for p in peaks if p.d_angstrom * settings.magnetic_s_max > 0.5), key=lambda p: (-p.area, p.two_theta_deg)
    )
    if not low:
        return None
    for halves in (1, 2):
        for structure in structures:
            if not _MAGNETIC & {atom.element for atom in structure.atoms}:
                continue
            found = _indexed(low, structure, halves, settings)
            if found is not None:
                return found
    return None


def _indexed(
    peaks: Sequence[UnexplainedPeak], structure: CrystalStructure, halves: int, settings: SuspectSettings
) -> MagneticOrder | None:
    strongest = peaks[0]
    indices, spacing = _lattice(structure, halves, 0.9 / settings.magnetic_s_max / 2.0)
    if spacing.size == 0:
        return None
    off, within = np.abs(spacing / strongest.d_angstrom - 1.0), _tolerance(strongest, settings)
    chance = 1.0 - math.exp(-float(np.sum(off < _WIDE)) * within / _WIDE)
    if off.min() > within or chance > settings.magnetic_chance:
        return None
    covered = sum(p.area for p in peaks if _near(p, spacing, peaks, settings))
    share = covered / sum(p.area for p in peaks)
    if share < settings.magnetic_share:
        return None
    best = indices[int(np.argmin(off))] / halves
    return MagneticOrder(
        phase=structure.name,
        cell="the nuclear cell" if halves == 1 else "a doubled cell",
        two_theta_deg=strongest.two_theta_deg,
        d_angstrom=strongest.d_angstrom,
        hkl=(float(best[0]), float(best[1]), float(best[2])),
        indexed_share=share,
        chance=chance,
    )


def _near(
    peak: UnexplainedPeak, spacing: FloatArray, peaks: Sequence[UnexplainedPeak], settings: SuspectSettings
) -> bool:
    """A line is indexed, or is the foot of a stronger one that is."""
    if float(np.min(np.abs(spacing / peak.d_angstrom - 1.0))) <= _tolerance(peak, settings):
        return True
    reach = settings.foot_deg
    return any(
        abs(p.two_theta_deg - peak.two_theta_deg) < reach
        and p.area > peak.area
        and float(np.min(np.abs(spacing / p.d_angstrom - 1.0))) <= _tolerance(p, settings)
        for p in peaks
    )


def _tolerance(peak: UnexplainedPeak, settings: SuspectSettings) -> float:
    """Return how far a spacing may be off, relative: at low angles a small shift of the line is a large one of d."""
    shift = 0.5 * math.radians(settings.magnetic_shift_deg) / math.tan(0.5 * math.radians(peak.two_theta_deg))
    return max(settings.magnetic_tolerance, shift)


def _lattice(structure: CrystalStructure, halves: int, smallest: float) -> tuple[FloatArray, FloatArray]:
    """Return indices, shape (n, 3), and distinct spacings, shape (n,), of a primitive lattice, centring ignored."""
    cell = structure.cell
    most = [int(halves * length / smallest) + 1 for length in (cell.a, cell.b, cell.c)]
    grids = np.meshgrid(*(np.arange(-m, m + 1) for m in most), indexing="ij")
    hkl = np.stack([g.ravel() for g in grids], axis=1).astype(float)
    metric = np.array(gemmi.UnitCell(*cell.as_tuple()).reciprocal_metric_tensor().as_mat33().tolist())
    inverse = np.einsum("ni,ij,nj->n", hkl / halves, metric, hkl / halves)
    keep = (inverse > 0) & (inverse < 1.0 / smallest**2)
    spacing = 1.0 / np.sqrt(inverse[keep])
    values, first = np.unique(np.round(spacing, 4), return_index=True)
    # of equal spacings the index with the fewest minus signs reads best
    rows = hkl[keep]
    order = np.lexsort((rows.min(axis=1) < 0, np.round(spacing, 4)))
    first = order[np.searchsorted(np.round(spacing, 4)[order], values)]
    return rows[first], spacing[first]
