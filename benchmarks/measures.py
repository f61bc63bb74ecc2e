"""How long do the measures take? Median milliseconds for a laboratory and a synchrotron size.

    python benchmarks/measures.py [--repeats 15]

Limits of the second issue's successor: 6 000 points and 300 reflections in 20 ms, 60 000 and 1 000 in 150 ms, at most
20 times the pattern's size allocated. CPU time is shown beside wall time: on a busy machine only the former counts.
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
from dataclasses import replace

import numpy as np

from autoxrd.science.observe import measure
from tests.science.simulate import CORUNDUM, CU, ORTHO, ZINCITE, Model, base, context, reflections, simulate

LABORATORY = base(CORUNDUM, ZINCITE, ORTHO, lower=15.0, upper=135.0, step=0.02, lines=CU[:2])
SYNCHROTRON = base(
    replace(ORTHO, cell=(8.478, 15.2, 6.958, 90, 90, 90)),
    CORUNDUM,
    lower=15.0,
    upper=135.0,
    step=0.002,
    u=0.0004,
    v=-0.0002,
    w=0.0004,
    x=0.003,
    y=0.003,
)


def _report(label: str, truth: Model, fit: Model, repeats: int) -> None:
    result, scene = simulate(truth, fit), context(fit)
    wall, cpu = [], []
    measure(result, scene)
    for _ in range(repeats):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        measure(result, scene)
        wall.append(1e3 * (time.perf_counter() - begin))
        cpu.append(1e3 * (time.process_time() - begin_cpu))
    tracemalloc.start()
    measure(result, scene)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    table = reflections(fit)
    count = len(np.unique(np.column_stack((table.phase, table.hkl)), axis=0))
    size = sum(a.nbytes for a in (result.x, result.y_obs, result.sigma, result.y_calc, result.background))
    print(
        f"{label:34s} {result.x.size:6d} points {count:5d} reflections {table.position.size:5d} lines  "
        f"median {statistics.median(wall):6.1f} ms wall {statistics.median(cpu):6.1f} ms cpu  "
        f"peak {peak / 1e6:5.1f} MB = {peak / size:4.1f} x pattern"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    for name, model in (("laboratory", LABORATORY), ("synchrotron", SYNCHROTRON)):
        _report(f"{name}, right model", model, model, repeats)
        _report(
            f"{name}, zero off by 0.3 FWHM",
            replace(model, zero=0.03 if name == "laboratory" else 0.008),
            model,
            repeats,
        )


if __name__ == "__main__":
    main()
