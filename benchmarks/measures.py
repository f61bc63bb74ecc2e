"""How long do the measures take, and how much memory? Median milliseconds for a laboratory and a synchrotron size.

    python -m benchmarks.measures [--repeats 15]

Limits: 6 000 points in 20 ms, 60 000 points with 1 000 reflections in 150 ms, on one core; at most 20 times the
pattern's size allocated. CPU time is shown beside wall time, and divided by what a fixed piece of work takes beside it
more than on a quiet machine (``tests.support.pace``): a busy neighbour costs processor time too.
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
from dataclasses import dataclass, replace

import numpy as np

from autoxrd.science.inputs import FitArrays, MeasureContext
from autoxrd.science.observe import measure
from tests.science.simulate import CORUNDUM, CU, ORTHO, ZINCITE, Model, base, context, reflections, simulate
from tests.support.pace import ARRAYS, Pace

__all__ = ["CASES", "Case", "Timing", "allocated", "timed"]

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


@dataclass(frozen=True)
class Case:
    """A pattern and a model, with the time that the measures may take.

    Args:
        limit_ms: of the median CPU time.
        limit_sizes: of the memory allocated, in sizes of the pattern.
    """

    label: str
    truth: Model
    fit: Model
    limit_ms: float
    limit_sizes: float = 20.0

    def inputs(self) -> tuple[FitArrays, MeasureContext]:
        return simulate(self.truth, self.fit), context(self.fit)


CASES = tuple(
    Case(f"{name}, {label}", replace(model, zero=zero), model, limit)
    for name, model, limit, shifted in (
        ("laboratory", LABORATORY, 20.0, 0.03),
        ("synchrotron", SYNCHROTRON, 150.0, 0.008),
    )
    for label, zero in (("right model", 0.0), ("zero off by 0.3 FWHM", shifted))
)


@dataclass(frozen=True)
class Timing:
    """CPU milliseconds of many measurements, and how many times longer work took beside each than on a quiet one."""

    milliseconds: tuple[float, ...]
    paces: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def quiet(self) -> float:
        """Return the median as it would be on a quiet machine."""
        return statistics.median(
            taken / max(pace, 1.0) for taken, pace in zip(self.milliseconds, self.paces, strict=True)
        )


def timed(result: FitArrays, scene: MeasureContext, repeats: int) -> Timing:
    """Time many measurements, after one that fills the caches."""
    measure(result, scene)
    times, paces, pace = [], [], Pace(ARRAYS)
    for _ in range(repeats):
        paces.append(pace.sample())
        begin = time.process_time()
        measure(result, scene)
        times.append(1e3 * (time.process_time() - begin))
    return Timing(tuple(times), tuple(paces))


def allocated(result: FitArrays, scene: MeasureContext) -> float:
    """Return the most memory that a measurement holds at a time, in sizes of the pattern (five arrays)."""
    measure(result, scene)
    tracemalloc.start()
    try:
        measure(result, scene)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return peak / sum(a.nbytes for a in (result.x, result.y_obs, result.sigma, result.y_calc, result.background))


def _report(case: Case, repeats: int) -> None:
    result, scene = case.inputs()
    begin = time.perf_counter()
    cpu = timed(result, scene, repeats)
    wall = 1e3 * (time.perf_counter() - begin) / (repeats + 1)
    table = reflections(case.fit)
    count = len(np.unique(np.column_stack((table.phase, table.hkl)), axis=0))
    pace = statistics.median(cpu.paces)
    print(
        f"{case.label:34s} {result.x.size:6d} points {count:5d} reflections {table.position.size:5d} lines  "
        f"median {cpu.median:6.1f} ms cpu (least {min(cpu.milliseconds):.1f}), at pace {pace:.2f}: {cpu.quiet:.1f} "
        f"(limit {case.limit_ms:.0f})  mean {wall:6.1f} ms wall  "
        f"memory {allocated(result, scene):4.1f} x pattern (limit {case.limit_sizes:.0f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    for case in CASES:
        _report(case, repeats)


if __name__ == "__main__":
    main()
