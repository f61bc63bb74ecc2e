"""A standard and a specimen measured apart, of known composition, simulated by the engine that will refine them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from autoxrd.domain.pattern import Pattern
from autoxrd.engines.protocol import Edit, EngineCommand
from autoxrd.engines.registry import get_engine
from autoxrd.io import instrument_from_anode, read_structures
from autoxrd.io.attenuation import composition_absorption

CORUNDUM = """data_corundum
_cell_length_a 4.7588
_cell_length_b 4.7588
_cell_length_c 12.9920
_cell_angle_alpha 90
_cell_angle_beta 90
_cell_angle_gamma 120
_space_group_name_H-M_alt 'R -3 c :H'
loop_
_atom_site_label
_atom_site_type_symbol
_atom_site_fract_x
_atom_site_fract_y
_atom_site_fract_z
_atom_site_occupancy
_atom_site_U_iso_or_equiv
Al Al 0 0 0.35217 1 0.004
O O 0.30625 0 0.25 1 0.005
"""
CRYSTALLINE = 0.60
"""Weight fraction of corundum in the specimen; the rest is a glass of the composition CaSiO3."""
COMPOSITION = "Al2O3:60,CaSiO3:40"
LONGER = 3.0
"""Counting time of the specimen over the standard's."""
_WAVELENGTH = 1.5405929


class Apart(NamedTuple):
    """Files of a standard and a specimen."""

    standard: Path
    specimen: Path
    cif: Path


def write_apart(directory: Path, engine: str, *, counts: float = 5000.0, seed: int = 11) -> Apart:
    """Write standard.xy, specimen.xy and corundum.cif."""
    files = Apart(*(directory / name for name in ("standard.xy", "specimen.xy", "corundum.cif")))
    files.cif.write_text(CORUNDUM)
    x = np.arange(22.0, 98.0, 0.03)
    bragg = _bragg(x, files.cif, engine)
    pure = counts * bragg / bragg.max()
    # a phase's intensity: its weight fraction over the specimen's mass absorption (O'Connor & Raven 1988)
    absorption = [composition_absorption(text, _WAVELENGTH) for text in ("Al2O3:100", COMPOSITION)]
    hump = np.exp(-0.5 * ((x - 30.0) / 5.0) ** 2)
    mixed = LONGER * (CRYSTALLINE * absorption[0] / absorption[1] * pure + 60.0 + 0.06 * counts * hump)
    rng = np.random.default_rng(seed)
    for path, model in ((files.standard, pure + 60.0), (files.specimen, mixed)):
        path.write_text("".join(f"{a:.3f} {b}\n" for a, b in zip(x, rng.poisson(model), strict=True)))
    return files


def _bragg(x: np.ndarray, cif: Path, engine: str) -> np.ndarray:
    flat = np.full(x.size, 100.0)
    flat[::7] += 10.0  # no engine takes a flat pattern
    session = get_engine(engine).start()
    try:
        blank = Pattern(x=x, y=flat, sigma=np.sqrt(flat))
        snapshot = session.prepare(blank, instrument_from_anode("Cu"), read_structures(cif), {"size_seed": True})
        values = {"profile.W": 0.006, "phase.corundum.size": 0.06, "phase.corundum.scale": 1.0}
        edits = tuple(Edit("value", {"selector": k, "value": v}) for k, v in values.items())
        _, result = session.execute(snapshot, EngineCommand(cycles=0, edits=edits, gains=False))
    finally:
        session.close()
    return np.asarray(result.phase_patterns.sum(axis=0))
