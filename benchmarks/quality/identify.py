"""Are the phases that are in a pattern ranked first among the candidates, or said to be inseparable from the first?

python -m benchmarks.quality.identify --data ../shared/data [--only WORD ...]
"""

from __future__ import annotations

import argparse
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.quality.command import Answer, ask, words_of

__all__ = ["Outcome", "judge", "load_patterns", "run_pattern", "table"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came first.

    Args:
        first: phases of the first set.
        rank: rank of the right set, 0 where it is not listed.
        held: the right set is first, or inseparable from the first.
        answer: ``found``, ``partly``, ``none``, ``refused`` or ``failed``.
    """

    name: str
    first: tuple[str, ...]
    rank: int
    held: bool
    answer: str
    behind: float | None
    seconds: float


def load_patterns() -> list[dict[str, Any]]:
    """Return the patterns in the order of the file."""
    text = Path(__file__).with_name("identify.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["pattern"])


def run_pattern(pattern: dict[str, Any], *, data: Path) -> Outcome:
    """Identify a pattern's phases and judge the answer."""
    return judge(pattern, ask(["identify", *words_of(pattern, data)]))


def judge(pattern: dict[str, Any], answer: Answer) -> Outcome:
    """Return the outcome of an answer."""
    content = answer.content
    sets = [tuple(one["phases"]) for one in content.get("sets", ())]
    alike: dict[str, set[str]] = {}
    for rival in content.get("rivals", ()):
        if rival["inseparable"]:
            alike.setdefault(rival["phase"], set()).add(rival["rival"])
    right = [set(names) for names in pattern["phases"]]
    ranks = [i for i, one in enumerate(sets, 1) if _is_right(one, right)]
    first = sets[0] if sets else ()
    held = _is_right(first, [names | {p for p, rivals in alike.items() if rivals & names} for names in right])
    return Outcome(
        name=pattern["name"],
        first=first,
        rank=ranks[0] if ranks else 0,
        held=held and bool(content),
        answer=content.get("answer") or ("refused" if answer.code == 2 else "failed"),
        behind=content["sets"][1]["behind"] if len(sets) > 1 else None,
        seconds=answer.seconds,
    )


def _is_right(found: tuple[str, ...], right: list[set[str]]) -> bool:
    """Whether each right phase is there once, under one of its names, and nothing else."""
    return len(found) == len(right) and all(len(names & set(found)) == 1 for names in right)


def table(outcomes: list[Outcome]) -> str:
    """Return the Markdown table and the figure that must hold."""
    lines = [
        "| pattern | right set first | rank | answer | first | next set behind | s |",
        "|---|---|---|---|---|---|---|",
    ]
    for o in outcomes:
        behind = "" if o.behind is None else f"{o.behind:+.0f}"
        mark = "yes" if o.held else "**no**"
        lines.append(
            f"| {o.name} | {mark} | {o.rank or ''} | {o.answer} | {' + '.join(o.first)} | {behind} | {o.seconds:.0f} |"
        )
    held = sum(o.held for o in outcomes)
    lines.append(f"\nRight set first, or inseparable from it: {held} of {len(outcomes)}.")
    return "\n".join(lines)


def main() -> None:
    """Identify the phases of all patterns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", nargs="*", default=[], help="parts of names")
    asked = parser.parse_args()
    outcomes = []
    for pattern in load_patterns():
        if asked.only and not any(word.lower() in pattern["name"].lower() for word in asked.only):
            continue
        outcomes.append(run_pattern(pattern, data=asked.data.resolve()))
        print(table(outcomes[-1:]).splitlines()[2], flush=True)
    print(f"\n{table(outcomes)}")


if __name__ == "__main__":
    main()
