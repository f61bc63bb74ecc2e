"""A small laboratory pattern with known truth, simulated by the engine itself: fluorite, Cu, 25 to 100 degrees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from autoxrd.domain.pattern import Pattern
from autoxrd.engines.protocol import Edit, EngineCommand
from autoxrd.engines.registry import get_engine
from autoxrd.io import instrument_from_anode, read_structures

TRUTH = {
    "phase.fluorite.cell.a": 5.4655,
    "sample.displacement": -0.06,
    "profile.W": 0.006,
    "phase.fluorite.size": 0.06,
    "phase.fluorite.scale": 1.0,
}

CIF = """data_fluorite
_cell_length_a 5.4631
_cell_length_b 5.4631
_cell_length_c 5.4631
_cell_angle_alpha 90
_cell_angle_beta 90
_cell_angle_gamma 90
_space_group_name_H-M_alt 'F m -3 m'
loop_
_atom_site_label
_atom_site_type_symbol
_atom_site_fract_x
_atom_site_fract_y
_atom_site_fract_z
_atom_site_occupancy
_atom_site_U_iso_or_equiv
Ca Ca 0 0 0 1 0.006
F F 0.25 0.25 0.25 1 0.009
"""


def write_inputs(directory: Path) -> tuple[Path, Path]:
    """Write pattern.xy and fluorite.cif; return their paths."""
    cif = directory / "fluorite.cif"
    cif.write_text(CIF)
    pattern = directory / "pattern.xy"
    x, y = simulate(cif)
    pattern.write_text("".join(f"{a:.3f} {b:.0f}\n" for a, b in zip(x, y, strict=True)))
    return pattern, cif


def simulate(cif: Path, more: Mapping[str, float] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return 2theta (degrees) and counts with Poisson noise of a fixed seed; ``more`` is added to the truth."""
    x = np.arange(25.0, 100.0, 0.03)
    structures = read_structures(cif)
    instrument = instrument_from_anode("Cu")
    flat = np.full(x.size, 100.0)
    flat[::7] += 10.0  # no engine takes a flat pattern
    blank = Pattern(x=x, y=flat, sigma=np.sqrt(flat))
    session = get_engine("rietx").start()
    try:
        snapshot = session.prepare(blank, instrument, structures, {"size_seed": True})
        edits = tuple(Edit("value", {"selector": k, "value": v}) for k, v in (TRUTH | dict(more or {})).items())
        _, result = session.execute(snapshot, EngineCommand(cycles=0, edits=edits, gains=False))
    finally:
        session.close()
    bragg = result.phase_patterns.sum(axis=0)
    model = 4000.0 * bragg / bragg.max() + 120.0 + 60.0 * np.exp(-(x - 25.0) / 30.0)
    return x, np.random.default_rng(20261130).poisson(model).astype(float)
