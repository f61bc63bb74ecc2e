"""Do GSAS-II's own steps, taken through the engine's protocol, end where GSAS-II by hand ended?

Usage: ``AUTOXRD_GSASII_PYTHON=... python -m benchmarks.gsasii_reference DATA REFERENCE [ROW ...]``

DATA is the directory of the open patterns, REFERENCE the JSON of figures that a person reached in GSAS-II. What is
free, the function of the background and the start of the profile are those of the reference, so that no choice of a
planner is in the comparison: what differs is the engine. One line for each row: Rwp here and there, cells in ppm.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoxrd.agent.inputs import Request, load_job
from autoxrd.engines.protocol import Edit, EngineCommand, EngineResult, EngineSession
from autoxrd.engines.registry import get_engine

VARIANCE = 8.0 * math.log(2.0) / 1e4
"""From GSAS-II's centidegrees^2 of variance to a squared width in degrees^2."""
CPD = ("qpa-cpd1-open/1000017.cif", "qpa-cpd1-open/zincite.cif", "qpa-cpd1-open/1000043.cif")
BASE = ("phase.*.scale", "background.*")
CPD_STEPS = (
    BASE,
    ("sample.displacement",),
    ("phase.*.cell",),
    ("profile.W", "profile.X"),
    ("profile.U", "profile.V", "profile.Y"),
)


@dataclass(frozen=True)
class Row:
    """One reference fit: files, start of the profile in GSAS-II's units, and what was freed in turn."""

    pattern: str
    structures: tuple[str, ...]
    instrument: str | None
    steps: tuple[tuple[str, ...], ...]
    start: dict[str, float]
    background: tuple[str, int] = ("chebyschev-1", 6)
    limits: tuple[float, float] | None = None
    mode: str = "rietveld"
    radius_mm: float | None = None


LAB = {"U": 2.0, "V": -2.0, "W": 5.0, "X": 0.0, "Y": 0.0, "SH/L": 0.002}
SHAPE = (BASE, ("phase.*.cell", "sample.displacement"), ("phase.*.size", "phase.*.strain"))
ATOMS = ("phase.*.atom.*.position", "phase.*.uiso")
PBSO4 = ("lab-pbso4-rrr-xray/PBSO4.XRA", ("lab-pbso4-rrr-xray/PbSO4-Wyckoff.cif",), "lab-pbso4-rrr-xray/INST_XRY.PRM")


def _cpd(letter: str, sizes: str, uiso: str) -> Row:
    steps = (*CPD_STEPS, tuple(f"phase.{name}.size" for name in sizes.split()))
    steps = (*steps, tuple(f"phase.{name}.uiso" for name in uiso.split()))
    start = {**LAB, "SH/L": 0.04}
    return Row(f"qpa-cpd1-open/cpd-1{letter}.prn", CPD, None, steps, start, ("chebyschev-1", 8), (15.0, 145.0))


ROWS = {
    "fap_labdata": Row(
        "lab-fap-gsas2/FAP.XRA",
        ("lab-fap-gsas2/fluorapatite.cif",),
        "lab-fap-gsas2/INST_XRY.PRM",
        (*SHAPE, ATOMS),
        LAB,
        ("log interpolate", 9),
        (15.0, 130.02),
    ),
    "pbso4_rietveld_16_90": Row(
        *PBSO4, (*SHAPE, ("phase.*.atom.*.position", "phase.*.uiso")), LAB, limits=(16.0, 90.0)
    ),
    "pbso4_lebail_16_90": Row(*PBSO4, SHAPE, LAB, limits=(16.0, 90.0), mode="lebail"),
    "garnet_cwn": Row(
        "neut-garnet-d1a/garnet.raw",
        ("neut-garnet-d1a/garnet_YFeAl.cif",),
        "neut-garnet-d1a/inst_d1a.prm",
        (
            BASE,
            ("phase.*.cell", "instrument.zero", "phase.*.atom.Fe*.occupancy"),
            ("phase.*.uiso", "phase.*.atom.*.position"),
            ("profile.U", "profile.V", "profile.W", "sample.offset"),
        ),
        {"SH/L": 0.002, "X": 0.0, "Y": 0.0},
        ("chebyschev-1", 3),
        radius_mm=650.0,
    ),
    "cpd_1a": _cpd("a", "Fluorite", "Fluorite"),
    "cpd_1e": _cpd("e", "Corundum zincite Fluorite", "Corundum zincite Fluorite"),
    "cpd_1g": _cpd("g", "Corundum zincite Fluorite", "Corundum zincite Fluorite"),
}


def fit(session: EngineSession, row: Row, data: Path) -> EngineResult:
    """Take a row's steps; the last ones once more together."""
    given: dict[str, Any] = {"anode": "Cu", "monochromator_two_theta_deg": 26.57}
    if row.instrument is not None:
        given = {"instrument": data / row.instrument}
    structures = tuple(data / name for name in row.structures)
    job, _ = load_job(Request(pattern=data / row.pattern, structures=structures, engine="gsasii", **given))
    settings: dict[str, Any] = {"background_terms": row.background[1]}
    if row.limits is not None:
        settings["two_theta_limits"] = list(row.limits)
    radius = row.radius_mm or job.instrument.goniometer_radius_mm
    instrument = dataclasses.replace(job.instrument, goniometer_radius_mm=radius)
    snapshot = session.prepare(job.pattern, instrument, job.structures, settings)
    wavelength = job.instrument.lines[0].wavelength_angstrom
    start = _start(row.start) | _samples(wavelength, [structure.name for structure in job.structures])
    edits = tuple(Edit("value", {"selector": name, "value": value}) for name, value in start.items())
    edits += (Edit("background", {"function": row.background[0], "terms": row.background[1]}),)
    released: tuple[str, ...] = ()
    for step in (*row.steps, ()):
        released = (*released, *step)
        command = EngineCommand(released=released, edits=edits, mode=row.mode, cycles=100, gains=False)
        snapshot, result = session.execute(snapshot, command)
        edits = ()
    return result


def _start(given: dict[str, float]) -> dict[str, float]:
    found = {f"profile.{key}": value * VARIANCE for key, value in given.items() if key in "UVW"}
    found |= {f"profile.{key}": value / 100.0 for key, value in given.items() if key in ("X", "Y")}
    return found | {"profile.S/L": given["SH/L"] / 2.0}


def _samples(wavelength: float, phases: list[str]) -> dict[str, float]:
    """Return the size (1 um) and microstrain (0.1 %) that GSAS-II gives every phase unasked, as widths in degrees."""
    widths = {"size": 1.8 * wavelength / (100.0 * math.pi), "strain": 1000.0 * 0.018 / (100.0 * math.pi)}
    return {f"phase.{name}.{key}": width for name in phases for key, width in widths.items()}


def cells_of(reference: dict[str, Any], phase: int) -> dict[str, tuple[float, float]]:
    """Return the reference's cell lengths with esds, from its reciprocal metric (right angles or hexagonal)."""
    found = {}
    numbers = reference["final"]["variables"]
    for key, name in (("a", "A0"), ("b", "A1"), ("c", "A2")):
        if f"{phase}::{name}" in numbers:
            value, esd = numbers[f"{phase}::{name}"]
            found[key] = (value, esd)
    hexagonal = f"{phase}::A3" in reference["final"]["depSig"]
    factor = 4.0 / 3.0 if hexagonal else 1.0
    cells = {}
    for key, (value, esd) in found.items():
        length = math.sqrt((factor if key != "c" else 1.0) / value)
        cells[key] = (length, 0.5 * esd / value * length)
    return cells


def main(arguments: list[str]) -> int:
    """Print the table."""
    data, reference = Path(arguments[0]), json.loads(Path(arguments[1]).read_text(encoding="utf-8"))
    session = get_engine("gsasii").start()
    try:
        for name in arguments[2:] or ROWS:
            _tell(name, fit(session, ROWS[name], data), reference[name])
    finally:
        session.close()
    return 0


def _tell(name: str, result: EngineResult, reference: dict[str, Any]) -> None:
    final = [stage for stage in reference["stages"] if stage.get("Rwp")][-1]
    ours = 100.0 * result.engine_r["rwp"]
    ending = "converged" if result.convergence.converged else result.convergence.status
    print(f"{name}: Rwp {ours:.3f} here, {final['Rwp']:.3f} there; {ending}; dropped {result.convergence.dropped}")
    for number, phase in enumerate(result.phases):
        shares = "" if phase.weight_fraction is None else f" {100.0 * phase.weight_fraction.value:.2f} wt%"
        told = []
        for key, (value, esd) in cells_of(reference, number).items():
            here = phase.cell[key]
            combined = math.hypot(esd, here.esd or 0.0)
            apart = here.value - value
            told.append(f"{key} {here.value:.5f} {1e6 * apart / value:+.0f} ppm {apart / combined:+.1f} esd")
        print(f"  {phase.name}{shares}: {'; '.join(told)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
