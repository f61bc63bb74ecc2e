"""Do the stated uncertainties hold where everything is known?

python -m benchmarks.coverage [--patterns 60] [--first 0] [--certified | --pairs] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autoxrd.engines.registry import get_engine
from benchmarks.coverage.draw import Drawn, draw

__all__: list[str] = []

_KINDS = {
    "cell": ("cell.a", "cell.b", "cell.c"),
    "weight fraction": ("weight_fraction",),
    "displacement parameter": ("uiso",),
    "coordinate": ("x", "y", "z"),
    "axial divergence": ("S/L",),
    "broadening": ("size", "strain"),
}


@dataclass(frozen=True)
class Miss:
    """One refined value: kind, how many stated uncertainties it lies off the truth, and what share of it these are."""

    pattern: int
    name: str
    kind: str
    off: float
    share: float = 0.0


def _kind(name: str) -> str | None:
    return next((kind for kind, ends in _KINDS.items() if any(name.endswith(f".{end}") for end in ends)), None)


def _certified(drawn: Drawn) -> str:
    """Return the option that states the true cell of the first phase: what its symmetry leaves free."""
    head = f"phase.{drawn.names[0]}.cell."
    lengths = dict.fromkeys(drawn.true[head + key] for key in "abc")
    angles = [value for key in ("alpha", "beta", "gamma") if (value := drawn.true[head + key]) not in (90.0, 120.0)]
    return f"--known-cell={drawn.names[0]}={','.join(repr(value) for value in (*lengths, *angles))}"


def _refined(drawn: Drawn, folder: Path, *, certified: bool) -> tuple[dict[str, tuple[float, float]], str]:
    """Run the job; return value and stated uncertainty of what it refined, and how it ended."""
    pattern, structures = drawn.write(folder)
    words = ["refine", str(pattern), *(word for path in structures for word in ("--structure", str(path)))]
    words += [_certified(drawn)] if certified else []
    words += ["--anode", "Cu", "--out", str(folder / "job"), "--json"]
    code = "from autoxrd.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    try:
        verdict = str(json.loads(done.stdout)["verdict"])
    except (json.JSONDecodeError, KeyError):
        return {}, done.stderr.strip()[-200:]
    with (folder / "job" / "parameters.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    found = {}
    for name, row in rows.items():
        stated = row["uncertainty"] or row["esd"]
        if stated and float(stated) > 0.0 and (row["released_in_step"] or name.endswith("weight_fraction")):
            found[name] = (float(row["value"]), float(stated))
    return found, verdict


def _misses(drawn: Drawn, refined: dict[str, tuple[float, float]]) -> Iterable[Miss]:
    for name, (value, stated) in refined.items():
        kind = None if _follows(name, refined) else _kind(name)
        if kind is not None and name in drawn.true:
            yield Miss(drawn.number, name, kind, (value - drawn.true[name]) / stated, stated / max(abs(value), 1e-12))


def _follows(name: str, refined: dict[str, tuple[float, float]]) -> bool:
    """Return whether symmetry makes a cell length equal to a: one measurement counts once."""
    base, _, key = name.rpartition(".")
    return base.endswith(".cell") and key in ("b", "c") and refined.get(f"{base}.a", (0.0, 0.0))[0] == refined[name][0]


def _cell_ppm(misses: list[Miss]) -> float:
    return 1e6 * float(np.median([m.share for m in misses if m.kind == "cell"] or [np.nan]))


def _table(misses: list[Miss]) -> str:
    lines = ["| quantity | values | within 1 | within 3 | rms |", "|---|---|---|---|---|"]
    for kind in (*_KINDS, "all"):
        off = np.array([abs(m.off) for m in misses if kind in (m.kind, "all")])
        if off.size:
            shares = " | ".join(f"{100 * np.mean(off <= limit):.0f} %" for limit in (1.0, 3.0))
            lines.append(f"| {kind} | {off.size} | {shares} | {np.sqrt(np.mean(off**2)):.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patterns", type=int, default=60)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--certified", action="store_true", help="only pairs, the true cell of the first phase stated")
    chosen.add_argument("--pairs", action="store_true", help="only patterns of two phases")
    parser.add_argument("--out", type=Path, help="keep the jobs here")
    asked = parser.parse_args()
    out = asked.out or Path(tempfile.mkdtemp(prefix="coverage-"))
    misses: list[Miss] = []
    session = get_engine("rietx").start()
    try:
        for number in range(asked.first, asked.first + asked.patterns):
            drawn = draw(session, number)
            if (asked.certified or asked.pairs) and len(drawn.names) == 1:
                continue
            refined, verdict = _refined(drawn, out / f"{number:03d}", certified=asked.certified)
            found = list(_misses(drawn, refined))
            misses += found
            worst = max(found, key=lambda m: abs(m.off), default=None)
            told = "" if worst is None else f"worst {worst.name} {worst.off:+.1f}"
            print(f"{number:3d} {'+'.join(drawn.names):28s} {drawn.level:8.0f} {verdict:24s} {told}", flush=True)
    finally:
        session.close()
    print(f"\n{_table(misses)}\n\nmedian uncertainty of a cell length: {_cell_ppm(misses):.0f} ppm")


if __name__ == "__main__":
    main()
