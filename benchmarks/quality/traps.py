"""Is a model that does not belong to its pattern recognised, and for the right reason?

python -m benchmarks.quality.traps --data ../shared/data [--only WORD ...] [--engine NAME] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.quality.command import Answer, ask, words_of

__all__ = ["Outcome", "judge", "load_traps", "run_trap", "table"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a trap.

    Args:
        verdict: of the job, ``refused`` where the input was, ``failed`` otherwise.
        codes: reasons, then warnings.
        silent: accepted without a word.
        right: the verdict is a right one, and for the right reason.
    """

    name: str
    kind: str
    verdict: str
    codes: tuple[str, ...]
    silent: bool
    right: bool
    rwp_percent: float | None
    seconds: float


def load_traps() -> list[dict[str, Any]]:
    """Return the traps in the order of the file."""
    text = Path(__file__).with_name("traps.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["trap"])


def run_trap(trap: dict[str, Any], *, data: Path, out: Path, engine: str = "rietx") -> Outcome:
    """Refine a trap and judge the answer."""
    return judge(trap, ask(["refine", *words_of(trap, data), "--engine", engine, "--out", str(out)]))


def judge(trap: dict[str, Any], answer: Answer) -> Outcome:
    """Return the outcome of a trap's answer."""
    content = answer.content
    verdict = content.get("verdict") or ("refused" if answer.code == 2 else "failed")
    codes = tuple(map(str, content.get("reasons", ()))) + tuple(str(w["code"]) for w in content.get("warnings", ()))
    named = any(code in codes for code in trap["codes"]) if "codes" in trap else True
    if verdict == "refused":
        named = any(code in answer.error.lower() for code in trap.get("codes", ()))
    inside = {phase["name"] for phase in content.get("phases", ())}
    there = inside & set(trap.get("absent", ()))
    return Outcome(
        name=trap["name"],
        kind=trap["kind"],
        verdict=verdict,
        codes=codes,
        silent=verdict == "accepted" and "accepted" not in trap["verdicts"],
        right=verdict in trap["verdicts"] and named and not there,
        rwp_percent=content.get("quality", {}).get("rwp_percent"),
        seconds=answer.seconds,
    )


def table(outcomes: list[Outcome]) -> str:
    """Return the Markdown table and the figures that must hold."""
    lines = ["| trap | kind | right | verdict | Rwp % | codes | s |", "|---|---|---|---|---|---|---|"]
    for o in outcomes:
        rwp = "" if o.rwp_percent is None else f"{o.rwp_percent:.1f}"
        mark = "yes" if o.right else "**no**"
        lines.append(f"| {o.name} | {o.kind} | {mark} | {o.verdict} | {rwp} | {' '.join(o.codes)} | {o.seconds:.0f} |")
    right, silent = sum(o.right for o in outcomes), sum(o.silent for o in outcomes)
    share = 100 * right / max(len(outcomes), 1)
    lines.append(f"\nAccepted silently: {silent}. Right reason: {right} of {len(outcomes)} ({share:.0f} %).")
    return "\n".join(lines)


def main() -> None:
    """Run the traps and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", nargs="*", default=[], help="parts of names or kinds")
    parser.add_argument("--engine", default="rietx", help="which engine refines: rietx or gsasii")
    parser.add_argument("--out", type=Path, help="keep the jobs here")
    asked = parser.parse_args()
    out = asked.out or Path(tempfile.mkdtemp(prefix="traps-"))
    out.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for number, trap in enumerate(load_traps()):
        if asked.only and not any(word.lower() in f"{trap['name']} {trap['kind']}".lower() for word in asked.only):
            continue
        outcomes.append(run_trap(trap, data=asked.data.resolve(), out=out / f"{number:02d}", engine=asked.engine))
        print(table(outcomes[-1:]).splitlines()[2], flush=True)
    print(f"\n{table(outcomes)}")


if __name__ == "__main__":
    main()
