"""A small mixture with an internal standard and a glass, of known composition, simulated by the engine itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from autoxrd.domain.pattern import Pattern
from autoxrd.engines.protocol import Edit, EngineCommand
from autoxrd.engines.registry import get_engine
from autoxrd.io import instrument_from_anode, name_structures, read_structures
from tests.agent.small import CIF

HALITE = (
    CIF.replace("fluorite", "halite")
    .replace("5.4631", "5.6402")
    .replace("Ca Ca 0 0 0 1 0.006", "Na Na 0 0 0 1 0.012")
    .replace("F F 0.25 0.25 0.25 1 0.009", "Cl Cl 0.5 0.5 0.5 1 0.012")
)
STANDARD, MAIN = 0.20, 0.35
"""Weight fractions of fluorite and halite in the specimen; the rest is glass."""


def write_mixture(directory: Path, *, step_deg: float = 0.04, counts: float = 4000.0, seed: int = 5) -> list[Path]:
    """Write mixture.xy, fluorite.cif and halite.cif; return their paths."""
    paths = [directory / name for name in ("mixture.xy", "fluorite.cif", "halite.cif")]
    paths[1].write_text(CIF)
    paths[2].write_text(HALITE)
    x = np.arange(24.0, 92.0, step_deg)
    bragg = _bragg(x, paths[1:])
    hump = np.exp(-0.5 * ((x - 31.0) / 4.5) ** 2)
    model = counts * bragg / bragg.max() + 150.0 + 0.12 * counts * hump
    y = np.random.default_rng(seed).poisson(model)
    paths[0].write_text("".join(f"{a:.3f} {b}\n" for a, b in zip(x, y, strict=True)))
    return paths


def _bragg(x: np.ndarray, cifs: list[Path]) -> np.ndarray:
    """Return the two patterns, mixed by weight: two evaluations, the second with the ratio that was asked for."""
    structures = name_structures([s for path in cifs for s in read_structures(path)])
    flat = np.full(x.size, 100.0)
    flat[::7] += 10.0
    session = get_engine("rietx").start()
    try:
        blank = Pattern(x=x, y=flat, sigma=np.sqrt(flat))
        snapshot = session.prepare(blank, instrument_from_anode("Cu"), structures, {"size_seed": True})
        widths = {"profile.W": 0.006, "phase.fluorite.size": 0.06, "phase.halite.size": 0.09}
        edits = [Edit("value", {"selector": k, "value": v}) for k, v in widths.items()]
        even = [Edit("value", {"selector": f"phase.{s.name}.scale", "value": 1.0}) for s in structures]
        command = EngineCommand(cycles=0, edits=(*edits, *even), gains=False)
        _, result = session.execute(snapshot, command)
    finally:
        session.close()
    share = [p.weight_fraction.value for p in result.phases if p.weight_fraction is not None]
    return STANDARD / share[0] * result.phase_patterns[0] + MAIN / share[1] * result.phase_patterns[1]
