"""How are the outcomes told? One table for single phases, one for mixtures, and the figures that must hold."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from benchmarks.quality.run import Outcome

__all__ = ["mixture_table", "single_table"]


def single_table(outcomes: Sequence[Outcome]) -> str:
    """Return the Markdown table of single phases, and below it median ratio and the share of cells that hold."""
    lines = [
        "| pattern | Rwp % | GoF | of published | cell error (ppm) | cell holds | verdict | steps | s | codes |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for o in outcomes:
        if not o.summary:
            lines.append(f"| {o.case.name} | failed: {o.trouble.splitlines()[-1] if o.trouble else ''} |||||||||")
            continue
        errors = " ".join(f"{n} {1e6 * e / o.case.cell[n]:+.0f}" for n, e, _ in o.cell_errors())
        held = {None: "", True: "yes", False: "**no**"}[o.cell_held]
        ratio = "" if o.ratio is None else f"{o.ratio:.2f}"
        lines.append(
            f"| {o.case.name} | {o.rwp:.2f} | {o.summary['quality']['gof']:.2f} | {ratio} | {errors} | {held} "
            f"| {o.summary['verdict']} | {_steps(o)} | {o.seconds:.0f} | {' '.join(o.codes)} |"
        )
    ratios = [o.ratio for o in outcomes if o.ratio is not None]
    held_all = [o.cell_held for o in outcomes if o.cell_held is not None]
    if ratios:
        lines.append(f"\nRwp over published: median {statistics.median(ratios):.3f}, worst {max(ratios):.2f}.")
    if held_all:
        lines.append(f"Cells within the window or 3 esd: {sum(held_all)} of {len(held_all)}.")
    return "\n".join(lines)


def mixture_table(outcomes: Sequence[Outcome]) -> str:
    """Return the Markdown table of mixtures, and below it the errors by group."""
    lines = [
        "| mixture | Rwp % | GoF | error (wt%) | verdict | steps | s | codes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[str, list[float]] = {}
    for o in outcomes:
        errors = o.weight_errors()
        groups.setdefault(o.case.group, []).extend(errors or [math.nan])
        if not o.summary:
            lines.append(f"| {o.case.name} | failed: {o.trouble.splitlines()[-1] if o.trouble else ''} |||||||")
            continue
        told = " ".join(f"{e:+.2f}" for e in errors)
        lines.append(
            f"| {o.case.name} | {o.rwp:.2f} | {o.summary['quality']['gof']:.2f} | {told} "
            f"| {o.summary['verdict']} | {_steps(o)} | {o.seconds:.0f} | {' '.join(o.codes)} |"
        )
    for name, errors in groups.items():
        rms = math.sqrt(sum(e * e for e in errors) / len(errors))
        worst = max(abs(e) for e in errors)
        lines.append(f"\n{name}: root-mean-square error {rms:.2f} wt%, largest {worst:.2f}, {len(errors)} fractions.")
    return "\n".join(lines)


def _steps(outcome: Outcome) -> str:
    """Return how many steps were accepted, of how many that were tried."""
    steps = outcome.summary["steps"]
    return f"{steps['accepted']}/{steps['accepted'] + steps['rejected']}"
