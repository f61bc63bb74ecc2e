"""How good are the refinements?

python -m benchmarks.quality --data ../shared/data [--only NAME ...] [--kind single|mixture] [--engine NAME] [--out DIR]
"""

from __future__ import annotations

import argparse
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.quality.cases import Case, load_cases
from benchmarks.quality.run import Outcome, run_case
from benchmarks.quality.tables import mixture_table, single_table

__all__: list[str] = []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", nargs="*", default=[], help="parts of names or groups")
    parser.add_argument("--kind", choices=("single", "mixture"))
    parser.add_argument("--out", type=Path, help="keep the jobs here")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--engine", default="rietx", help="which engine refines: rietx or gsasii")
    asked = parser.parse_args()
    cases = [c for c in load_cases() if asked.kind in (None, c.kind) and _wanted(c, asked.only)]
    out = asked.out or Path(tempfile.mkdtemp(prefix="quality-"))
    out.mkdir(parents=True, exist_ok=True)

    def one(numbered: tuple[int, Case]) -> Outcome:
        index, case = numbered
        outcome = run_case(case, data=asked.data.resolve(), out=out / f"{index:02d}", engine=asked.engine)
        print((single_table if case.kind == "single" else mixture_table)([outcome]).splitlines()[2], flush=True)
        return outcome

    with ThreadPoolExecutor(asked.workers) as pool:
        outcomes = list(pool.map(one, enumerate(cases)))
    for kind, table in (("single", single_table), ("mixture", mixture_table)):
        of_kind = [o for o in outcomes if o.case.kind == kind]
        if of_kind:
            print(f"\n{table(of_kind)}")


def _wanted(case: Case, words: list[str]) -> bool:
    return not words or any(word.lower() in f"{case.name} {case.group}".lower() for word in words)


if __name__ == "__main__":
    main()
