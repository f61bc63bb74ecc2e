"""What does AutoXRD cost beside its engine? Run by hand: ``python benchmarks/overhead.py [repeats]``.

Refines the laboratory pattern that rietx ships (5 751 points) and prints, with medians over the steps: the time per
step outside the engine's process (measures, gate, record, encoding), and the share of the whole job's wall time.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from autoxrd.agent.events import JobEvent, StepDone
from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.run import start_job
from autoxrd.engines.registry import get_engine


def run(directory: Path) -> tuple[list[float], float, float]:
    """Return (seconds outside the engine by step, wall seconds, engine seconds)."""
    found = find_spec("rietx")
    assert found is not None
    assert found.origin is not None
    examples = Path(found.origin).parent / "data" / "examples"
    began = time.perf_counter()
    session = get_engine("rietx").start()
    job, sources = load_job(
        Request(
            pattern=examples / "FAP.XRA", structures=(examples / "fluorapatite.cif",), wavelength="1.5405,1.5443:0.5"
        )
    )
    outside: list[float] = []
    waited = [0.0]

    def listen(event: JobEvent) -> None:
        now = session.engine_seconds
        if isinstance(event, StepDone):
            outside.append(event.seconds - (now - waited[0]))
        waited[0] = now

    try:
        start_job(job, directory / "out", sources=sources, session=session, listener=listen)
    finally:
        session.close()
    return outside, time.perf_counter() - began, session.engine_seconds


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as scratch:
            outside, wall, engine = run(Path(scratch))
        beside = wall - engine
        print(f"steps                               {len(outside)}")
        print(
            f"outside the engine, per step        median {1000 * statistics.median(outside):.0f} ms, "
            f"max {1000 * max(outside):.0f} ms (limit 100 ms)"
        )
        print(f"whole job                           {wall:.1f} s, in the engine {engine:.1f} s")
        print(f"outside the engine, of the engine's {100 * beside / engine:.1f} % (limit 15 %)")


if __name__ == "__main__":
    main()
