"""One pattern of known truth: phases, instrument, specimen and counts drawn at random within what laboratories have."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import gemmi
import numpy as np

from autoxrd.domain.instrument import ANODE_LINES, Geometry, Instrument, Profile, Radiation
from autoxrd.domain.pattern import FloatArray, Pattern
from autoxrd.domain.structure import CrystalStructure
from autoxrd.engines.protocol import Edit, EngineCommand, EngineSession
from benchmarks.defects.structures import CRYSTALS, cif_text, structure

__all__ = ["Drawn", "draw"]

_X_DEG = np.arange(15.0, 110.0, 0.025)
_CELL = 5e-4
"""Relative change of a cell length from the published one: temperature and composition."""
_COORDINATE = 0.003
"""Of a published coordinate, angstrom."""
_EQUAL_LENGTHS = {
    gemmi.CrystalSystem.Cubic: (0, 0, 0),
    gemmi.CrystalSystem.Hexagonal: (0, 0, 2),
    gemmi.CrystalSystem.Trigonal: (0, 0, 2),
    gemmi.CrystalSystem.Tetragonal: (0, 0, 2),
}
_LEVELS = (1e3, 1e4, 1e5)
"""Counts of the highest channel."""


@dataclass(frozen=True)
class Drawn:
    """A pattern that was drawn.

    Args:
        number: which one; the seed.
        names: its phases.
        level: counts of the highest channel.
        counts: shape (n,).
        true: parameter names with the values that the pattern was computed with.
    """

    number: int
    names: tuple[str, ...]
    level: float
    counts: FloatArray
    true: dict[str, float]

    def write(self, folder: Path) -> tuple[Path, list[Path]]:
        """Write the pattern and the starting structures; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        pattern = folder / "pattern.xy"
        rows = (f"{x:.4f} {y:.0f}" for x, y in zip(_X_DEG, self.counts, strict=True))
        pattern.write_text("\n".join(rows) + "\n", encoding="utf-8")
        structures = []
        for name in self.names:
            path = folder / f"{name}.cif"
            path.write_text(cif_text(name), encoding="utf-8")
            structures.append(path)
        return pattern, structures


def draw(session: EngineSession, number: int) -> Drawn:
    """Draw the pattern of a number; equal numbers give equal patterns."""
    random = np.random.default_rng(number)
    names = tuple(random.permutation(sorted(CRYSTALS))[: random.integers(1, 3)])
    instrument = Instrument(
        Radiation.XRAY,
        Geometry.BRAGG_BRENTANO,
        ANODE_LINES["Cu"],
        profile=_profile(random),
    )
    phases = tuple(_drawn(structure(name), random) for name in names)
    blank = Pattern(x=_X_DEG, y=np.full(_X_DEG.size, 100.0), sigma=np.full(_X_DEG.size, 10.0))
    root = session.prepare(blank, instrument, phases, {})
    edits = (*_instrument_edits(random), *(edit for name in names for edit in _phase_edits(name, random)))
    _, result = session.execute(root, EngineCommand(cycles=0, edits=edits, gains=False))
    level = float(random.choice(_LEVELS))
    bragg = (result.y_calc - result.background) * level / float(np.max(result.y_calc - result.background))
    at = (_X_DEG - _X_DEG[0]) / (_X_DEG[-1] - _X_DEG[0])
    smooth = level * random.uniform(0.02, 0.1) * (1.0 - random.uniform(0.0, 0.9) * at + 0.3 * at * at) + 5.0
    true = {item.name: item.value for item in result.parameters}
    return Drawn(number, names, level, random.poisson(bragg + smooth).astype(float), true)


def _drawn(given: CrystalStructure, random: np.random.Generator) -> CrystalStructure:
    """Return a structure with a cell, coordinates and displacement parameters of its own, within its symmetry."""
    group = gemmi.SpaceGroup(given.space_group)
    lengths = np.array([given.cell.a, given.cell.b, given.cell.c])
    atoms = []
    for atom in given.atoms:
        at = np.array([atom.x, atom.y, atom.z])
        x, y, z = at + _allowed(group, at, random.normal(0.0, _COORDINATE, 3) / lengths)
        uiso = (atom.u_iso or 0.006) * random.uniform(0.6, 1.6)
        atoms.append(dataclasses.replace(atom, x=float(x), y=float(y), z=float(z), u_iso=uiso))
    change = random.normal(0.0, _CELL, 3)[list(_EQUAL_LENGTHS.get(group.crystal_system(), (0, 1, 2)))]
    a, b, c = (float(v) for v in lengths * (1.0 + change))
    return dataclasses.replace(given, atoms=tuple(atoms), cell=dataclasses.replace(given.cell, a=a, b=b, c=c))


def _allowed(group: gemmi.SpaceGroup, at: FloatArray, move: FloatArray) -> FloatArray:
    """Return the part of a displacement that the symmetry of a site allows, in fractions of the cell."""
    kept = []
    for operation in group.operations():
        image = np.array(operation.apply_to_xyz(list(at)))
        if np.allclose(image - at, np.round(image - at), atol=1e-3):
            kept.append(np.array(operation.rot) / operation.DEN @ move)
    return np.asarray(np.mean(kept, axis=0))


def _profile(random: np.random.Generator) -> Profile:
    """Return widths of a laboratory diffractometer, degrees and square degrees."""
    u, v, w = random.uniform(0.001, 0.005), -random.uniform(0.0, 0.003), random.uniform(0.0015, 0.005)
    return Profile(u=u, v=v, w=w, x=random.uniform(0.0, 0.015), y=random.uniform(0.0, 0.015))


def _instrument_edits(random: np.random.Generator) -> list[Edit]:
    axial = random.uniform(0.0, 0.035)
    values = {
        "instrument.zero": random.normal(0.0, 0.01),
        "sample.displacement": random.normal(0.0, 0.1),
        "sample.transparency": abs(random.normal(0.0, 1.5e-4)),
        "profile.S/L": axial,
        "profile.H/L": axial,
    }
    return [Edit("value", {"selector": name, "value": float(value)}) for name, value in values.items()]


def _phase_edits(name: str, random: np.random.Generator) -> list[Edit]:
    values = {"size": random.uniform(0.02, 0.15), "strain": random.uniform(0.0, 0.2), "scale": random.uniform(0.3, 1.0)}
    return [Edit("value", {"selector": f"phase.{name}.{key}", "value": float(v)}) for key, v in values.items()]
