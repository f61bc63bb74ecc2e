"""Which pattern do the skills show their steps on? A simulated mixture of known truth, written to skills/example.

``python -m benchmarks.example_pattern`` writes it again, and an instrument file in GSAS-II's form beside it; the
embedded engine computes the lines, the noise is Poisson with a fixed seed. The CIFs are those of the literature; the
specimen's cells, displacement and widths differ from them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from autoxrd.domain.pattern import FloatArray, Pattern
from autoxrd.engines.protocol import Edit, EngineCommand
from autoxrd.engines.registry import get_engine
from autoxrd.io import instrument_from_anode
from benchmarks.defects.structures import cif_text, structure

__all__ = ["CELL_FACTOR", "DISPLACEMENT_MM", "SHARES", "simulate", "true_cells", "write_example"]

FOLDER = Path(__file__).resolve().parents[1] / "skills" / "example"
X_DEG = np.arange(24.0, 90.0, 0.03)
SHARES = {"corundum": 0.7, "zincite": 0.3}
"""Weight fractions of the specimen."""
CELL_FACTOR = {"corundum": 1.0006, "zincite": 0.9995}
"""Cell lengths of the specimen over those of the CIF."""
DISPLACEMENT_MM = -0.08
_RADIUS_MM = 217.5
INSTRUMENT = """#GSAS-II instrument parameter file; do not add/delete items!
Type:PXC
Bank:1.0
Lam1:1.5405929
Lam2:1.5444274
I(L2)/I(L1):0.5
Zero:0.0
Polariz.:0.5
Azimuth:0.0
U:7.2135
V:-5.4101
W:10.8202
X:0.0
Y:0.0
Z:0.0
SH/L:0.002
Gonio. radius:217.5
"""
"""The widths that the pattern was made with, in GSAS-II's units: variance in centidegrees^2, 1e4/(8 ln 2) of ours."""
_WIDTHS = {"profile.U": 0.004, "profile.V": -0.003, "profile.W": 0.006}
_BROADENING = {"corundum": {"size": 0.04, "strain": 0.03}, "zincite": {"size": 0.12, "strain": 0.03}}
_TOP_COUNTS = 6000.0
_SEED = 20261205


def simulate() -> FloatArray:
    """Return counts on ``X_DEG``."""
    flat = np.full(X_DEG.size, 100.0)
    flat[::7] += 10.0  # no engine takes a flat pattern
    blank = Pattern(x=X_DEG, y=flat, sigma=np.sqrt(flat))
    instrument = replace(instrument_from_anode("Cu"), goniometer_radius_mm=_RADIUS_MM)
    session = get_engine("rietx").start()
    try:
        snapshot = session.prepare(blank, instrument, [structure(name) for name in SHARES], {})
        edits = tuple(Edit("value", {"selector": k, "value": v}) for k, v in _truth().items())
        _, result = session.execute(snapshot, EngineCommand(cycles=0, edits=edits, gains=False))
    finally:
        session.close()
    bragg = np.zeros(X_DEG.size)
    for phase, curve in zip(result.phases, result.phase_patterns, strict=True):
        assert phase.weight_fraction is not None
        bragg += curve * SHARES[phase.name] / phase.weight_fraction.value
    at = (X_DEG - X_DEG[0]) / (X_DEG[-1] - X_DEG[0])
    mean = _TOP_COUNTS * bragg / bragg.max() + 260.0 - 190.0 * at + 90.0 * at * at
    return np.random.default_rng(_SEED).poisson(mean).astype(float)


def _truth() -> dict[str, float]:
    values = {**_WIDTHS, "sample.displacement": DISPLACEMENT_MM}
    for name, factor in CELL_FACTOR.items():
        cell = structure(name).cell
        values |= {f"phase.{name}.cell.a": cell.a * factor, f"phase.{name}.cell.c": cell.c * factor}
        values |= {f"phase.{name}.{key}": value for key, value in _BROADENING[name].items()}
    return values


def true_cells() -> list[str]:
    """Return the specimen's a and c of each phase, angstrom, to five decimals."""
    cells = {name: structure(name).cell for name in SHARES}
    return [f"{length * CELL_FACTOR[name]:.5f}" for name, cell in cells.items() for length in (cell.a, cell.c)]


def write_example(folder: Path = FOLDER) -> None:
    """Write mixture.xy and a CIF of each phase."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = (f"{x:.2f} {y:.0f}\n" for x, y in zip(X_DEG, simulate(), strict=True))
    (folder / "mixture.xy").write_text("".join(rows), encoding="utf-8")
    (folder / "cu.instprm").write_text(INSTRUMENT, encoding="utf-8")
    for name in SHARES:
        (folder / f"{name}.cif").write_text(cif_text(name), encoding="utf-8")


if __name__ == "__main__":
    write_example()
