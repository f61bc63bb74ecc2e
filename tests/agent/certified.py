"""Two phases, one of certified cell, measured with an instrument that moves lines: simulated by the engine itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from autoxrd.domain.instrument import EmissionLine, Geometry, Instrument, Radiation
from autoxrd.domain.pattern import Pattern
from autoxrd.engines.protocol import Edit, EngineCommand
from autoxrd.engines.registry import get_engine
from autoxrd.io import instrument_from_anode, name_structures, read_structures
from tests.agent.mixture import HALITE
from tests.agent.small import CIF

TRUE_FLUORITE, TRUE_HALITE = 5.4652, 5.6417
"""Cells of the specimen, angstrom; the files have 5.4631 and 5.6402."""
GIVEN_WAVELENGTH, TRUE_WAVELENGTH = 0.8, 0.8 * (1.0 + 4e-4)
"""Of the beam, as the user states it and as it was; angstrom."""
DISPLACEMENT_MM, ZERO_DEG = -0.12, 0.008
"""Of the specimen in the diffractometer, and of the beam's."""


@dataclass(frozen=True)
class Specimen:
    """Files of a simulated measurement."""

    pattern: Path
    fluorite: Path
    halite: Path


def tube() -> Instrument:
    """Return a laboratory diffractometer."""
    return instrument_from_anode("Cu")


def beam(wavelength_angstrom: float) -> Instrument:
    """Return a diffractometer at a synchrotron."""
    lines = (EmissionLine(wavelength_angstrom, 1.0),)
    return Instrument(Radiation.XRAY, Geometry.DEBYE_SCHERRER, lines, polarization=1.0)


def measured(
    directory: Path, *, at: Instrument, moved: Mapping[str, float], seed: int = 11, counts: float = 8000.0
) -> Specimen:
    """Write a pattern and the two CIFs, whose cells are not those of the specimen.

    Args:
        directory: where.
        at: the instrument.
        moved: values of parameters that move lines.
        seed: of the noise.
        counts: of the highest channel.
    """
    found = Specimen(*(directory / name for name in ("mixture.xy", "fluorite.cif", "halite.cif")))
    found.fluorite.write_text(CIF)
    found.halite.write_text(HALITE)
    structures = name_structures([s for path in (found.fluorite, found.halite) for s in read_structures(path)])
    cells = {"fluorite": TRUE_FLUORITE, "halite": TRUE_HALITE}
    true = tuple(replace(s, cell=replace(s.cell, a=(a := cells[s.name]), b=a, c=a)) for s in structures)
    x = np.arange(20.0, 100.0, 0.03) if at.geometry is Geometry.BRAGG_BRENTANO else np.arange(8.0, 60.0, 0.01)
    flat = np.full(x.size, 100.0)
    flat[::7] += 10.0  # no engine takes a flat pattern
    width = 6e-3 if at.geometry is Geometry.BRAGG_BRENTANO else 8e-4
    sizes = {"phase.fluorite.size": 8 * width, "phase.halite.size": 12 * width}
    values = {"profile.W": width, **sizes, "phase.fluorite.scale": 1.0, "phase.halite.scale": 0.6, **moved}
    session = get_engine("rietx").start()
    try:
        blank = Pattern(x=x, y=flat, sigma=np.sqrt(flat))
        root = session.prepare(blank, at, true, {"size_seed": True})
        edits = tuple(Edit("value", {"selector": name, "value": value}) for name, value in values.items())
        _, result = session.execute(root, EngineCommand(cycles=0, edits=edits, gains=False))
    finally:
        session.close()
    bragg = result.y_calc - result.background
    y = np.random.default_rng(seed).poisson(counts * bragg / bragg.max() + 0.03 * counts)
    found.pattern.write_text("".join(f"{a:.3f} {b}\n" for a, b in zip(x, y, strict=True)))
    return found
