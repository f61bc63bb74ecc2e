"""How much slower is a path through the protocol than a hand-written GSASIIscriptable script of the same steps?

Usage: ``AUTOXRD_GSASII_PYTHON=... python -m benchmarks.gsasii_overhead PATTERN CIF``
Both start their own process; wall and processor time of each are printed, and the ratio of the walls.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from autoxrd.agent.inputs import Request, load_job
from autoxrd.engines.gsasii import find_interpreter
from autoxrd.engines.protocol import EngineCommand
from autoxrd.engines.registry import get_engine

STEPS = (
    ("phase.*.scale", "background.*"),
    ("sample.displacement",),
    ("phase.*.cell",),
    ("phase.*.size", "phase.*.strain"),
    ("phase.*.atom.*.position", "phase.*.uiso"),
)
SCRIPT = r"""
import contextlib, io, sys
import numpy as np
pattern, cif, name = sys.argv[1:4]
with contextlib.redirect_stdout(io.StringIO()):
    from GSASII import GSASIIscriptable as G2sc
    inst = {'Type': 'PXC', 'Bank': 1.0, 'Lam1': 1.5405, 'Lam2': 1.5443, 'I(L2)/I(L1)': .5, 'Zero': 0., 'Polariz.': .5,
            'Azimuth': 0., 'U': 2., 'V': -2., 'W': 5., 'X': 0., 'Y': 0., 'Z': 0., 'SH/L': .002}
    g = G2sc.G2Project(newgpx='hand.gpx')
    h = g.add_powder_histogram(pattern, [{k: [v, v, False] for k, v in inst.items()}, {}], fmthint='xye')
    h.SampleParameters.update({'Type': 'Bragg-Brentano', 'Gonio. radius': 217.5, 'Shift': [0., False],
                               'Transparency': [0., False], 'SurfRoughA': [0., False], 'SurfRoughB': [0., False]})
    p = g.add_phase(cif, phasename='p', histograms=[h], fmthint='CIF')
    g['Controls']['data']['min dM/M'] = 1e-4
    g.set_Controls('cycles', 15)
    for step in (
        {'set': {'Background': {'type': 'chebyschev-1', 'no. coeffs': 8, 'refine': True}}},
        {'set': {'Sample Parameters': ['Shift']}},
        {'set': {'Cell': True}},
        {'set': {'Size': {'type': 'isotropic', 'refine': True}, 'Mustrain': {'type': 'isotropic', 'refine': True}}},
        {'set': {'Atoms': {'all': 'XU'}}},
    ):
        g.do_refinements([step])
print(h.get_wR())
"""


def ours(pattern: Path, cif: Path) -> float:
    """Take the steps through the engine's session; return Rwp."""
    job, _ = load_job(Request(pattern=pattern, structures=(cif,), wavelength="1.5405,1.5443:0.5", engine="gsasii"))
    session = get_engine("gsasii").start()
    released: tuple[str, ...] = ()
    rwp = 0.0
    try:
        snapshot = session.prepare(job.pattern, job.instrument, job.structures, job.engine_settings)
        for step in STEPS:
            released += step
            snapshot, result = session.execute(snapshot, EngineCommand(released=released, gains=False))
            rwp = result.engine_r["rwp"]
    finally:
        session.close()
    return rwp


def by_hand(pattern: Path, cif: Path, folder: Path) -> float:
    """Take the same steps by GSAS-II's scripting interface; return Rwp."""
    job, _ = load_job(Request(pattern=pattern, structures=(cif,), wavelength="1.5405,1.5443:0.5", engine="gsasii"))
    data = folder / "data.xye"
    rows = zip(job.pattern.x, job.pattern.y, job.pattern.sigma, strict=True)
    data.write_text("".join(f"{x:.6f} {y:.6f} {s:.6f}\n" for x, y, s in rows))
    (folder / "hand.py").write_text(SCRIPT)
    command = [str(find_interpreter()), "-s", "-P", "hand.py", str(data), str(cif.resolve()), "p"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return float(done.stdout.splitlines()[-1]) / 100.0


def timed(call: object, *arguments: object) -> tuple[float, float, float]:
    """Return result, wall and processor seconds (children included)."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    value = call(*arguments)  # type: ignore[operator]
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return value, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    pattern, cif = Path(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        hand = timed(by_hand, pattern, cif, Path(name))
    mine = timed(ours, pattern, cif)
    for label, (rwp, wall, cpu) in (("by hand", hand), ("autoxrd", mine)):
        print(f"{label:8s}  Rwp {100 * rwp:7.3f} %   wall {wall:6.1f} s   processor {cpu:6.1f} s")
    print(f"ratio of wall {mine[1] / hand[1]:.2f}, of processor {mine[2] / hand[2]:.2f}")


if __name__ == "__main__":
    main()
