"""Run the defect bench and print its confusion tables.

python -m benchmarks.defects [--every 3] [--records FILE] [--out docs/defects.md]

``--every 3`` runs a third of the cases (each defect at each size and level, with other structures), noise-only in full;
``--records`` keeps what was measured and takes up from there, so that a changed diagnosis is judged again in seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from autoxrd.engines.registry import get_engine
from benchmarks.defects.q import background_shares, q_lines
from benchmarks.defects.report import Facts, page
from benchmarks.defects.run import SEED, Plan, load, run
from benchmarks.defects.score import judge, settle
from benchmarks.defects.simulation import Laboratory
from benchmarks.defects.structures import SAMPLES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--samples", default="")
    parser.add_argument("--defects", default="")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--records", type=Path)
    parser.add_argument("--minutes", type=float, help="measured time of the records, where they are read")
    parser.add_argument("--earlier", type=Path, help="records of the cases on which the diagnosis was made")
    parser.add_argument("--out", type=Path)
    told = parser.parse_args()
    started = time.monotonic()
    engine = get_engine("rietx")
    session = engine.start()
    try:
        if told.records is not None and told.records.exists():
            records = load(told.records)
        else:
            named = [tuple(filter(None, value.split(","))) for value in (told.samples, told.defects)]
            records = run(session, Plan(told.every, named[0], named[1], seed=told.seed), told.records)
        settle(session, records, {})
        earlier = load(told.earlier) if told.earlier else []
        settle(session, earlier, {})
        clear = {s.name: Laboratory(session, s).impurity_is_clear() for s in SAMPLES}
        backgrounds = background_shares(session)
    finally:
        session.close()
    if told.records is not None:
        told.records.write_text("".join(json.dumps(asdict(r)) + "\n" for r in records), encoding="utf-8")
    command = "python -m benchmarks.defects" + (f" --every {told.every}" if told.every > 1 else "")
    command += f" --seed {told.seed}" if told.seed != SEED else ""
    minutes = told.minutes or (time.monotonic() - started) / 60.0
    facts = Facts(
        command,
        minutes,
        f"rietx {engine.available()[1]}",
        q_lines([*earlier, *records], clear),
        backgrounds,
        [judge(r) for r in earlier],
    )
    text = page([judge(record) for record in records], facts)
    sys.stdout.write(text)
    if told.out is not None:
        told.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
