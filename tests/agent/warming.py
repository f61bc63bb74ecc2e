"""A small temperature series of known truth: a cell that expands, and a second phase from half of the way on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from autoxrd.domain.pattern import Pattern
from autoxrd.engines.protocol import Edit, EngineCommand
from autoxrd.engines.registry import get_engine
from autoxrd.io import instrument_from_anode, name_structures, read_structures
from tests.agent.mixture import HALITE
from tests.agent.small import CIF

FIRST_KELVIN, STEP_KELVIN = 300.0, 40.0
EXPANSION = 2.5e-5
"""Relative change of a cell length per kelvin."""


def cell_at(kelvin: float) -> float:
    """Cell length of fluorite, angstrom."""
    return 5.4640 * (1.0 + EXPANSION * (kelvin - FIRST_KELVIN))


def write_series(directory: Path, second: list[float], *, counts: float = 3000.0) -> tuple[list[Path], list[Path]]:
    """Write patterns run_300K.xy, ... and the two CIFs.

    Args:
        directory: where to.
        second: weight fraction of halite in each pattern.
        counts: height of the strongest line.

    Returns:
        (patterns, structures).
    """
    cifs = [directory / name for name in ("fluorite.cif", "halite.cif")]
    cifs[0].write_text(CIF)
    cifs[1].write_text(HALITE)
    structures = name_structures([s for path in cifs for s in read_structures(path)])
    x = np.arange(25.0, 90.0, 0.05)
    flat = np.full(x.size, 100.0)
    flat[::7] += 10.0  # no engine takes a flat pattern
    session = get_engine("rietx").start()
    patterns = []
    try:
        blank = Pattern(x=x, y=flat, sigma=np.sqrt(flat))
        snapshot = session.prepare(blank, instrument_from_anode("Cu"), structures, {"size_seed": True})
        for number, share in enumerate(second):
            kelvin = FIRST_KELVIN + STEP_KELVIN * number
            values = {
                "profile.W": 0.006,
                "sample.displacement": -0.05,
                "phase.fluorite.size": 0.06,
                "phase.halite.size": 0.10,
                "phase.fluorite.scale": 1.0,
                "phase.halite.scale": 1.0,
                "phase.fluorite.cell.a": cell_at(kelvin),
                "phase.halite.cell.a": 5.6402 * (1.0 + EXPANSION * (kelvin - FIRST_KELVIN)),
            }
            edits = tuple(Edit("value", {"selector": k, "value": v}) for k, v in values.items())
            _, result = session.execute(snapshot, EngineCommand(cycles=0, edits=edits, gains=False))
            even = [p.weight_fraction.value for p in result.phases if p.weight_fraction is not None]
            parts = result.phase_patterns
            bragg = (1.0 - share) / even[0] * parts[0] + share / even[1] * parts[1]
            model = counts * bragg / (parts[0] / even[0]).max() + 120.0 + 60.0 * np.exp(-(x - 25.0) / 30.0)
            y = np.random.default_rng(100 + number).poisson(model)
            patterns.append(directory / f"run_{kelvin:.0f}K.xy")
            patterns[-1].write_text("".join(f"{a:.3f} {b}\n" for a, b in zip(x, y, strict=True)))
    finally:
        session.close()
    return patterns, cifs
