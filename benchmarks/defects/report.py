"""The bench's figures as a page of Markdown."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from benchmarks.defects.catalogue import DEFECTS, LEVELS
from benchmarks.defects.score import DETECTED, INSEPARABLE, Share, Verdict, confusion, shares

__all__ = ["Facts", "page"]

_NEAR = 100.0
"""chi2 up to which a defect counts as barely seen (10 sigma)."""


@dataclass(frozen=True)
class Facts:
    """What is told beside the tables."""

    command: str
    minutes: float
    engine: str
    q: Sequence[tuple[str, str, bool]]
    backgrounds: Sequence[tuple[str, float]]
    earlier: Sequence[Verdict] = ()
    """Answers to the cases on which the diagnosis was made, for comparison."""


def page(verdicts: Sequence[Verdict], facts: Facts) -> str:
    """Return the whole page."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    parts = [
        "# The defect bench",
        "",
        "Is the cause named by the strongest feature? Twelve structures, patterns simulated by the embedded engine",
        "(Cu Ka1/Ka2, 20 to 100 degrees, Poisson noise), one defect each, five sizes, three count levels. Scale",
        "factors and background are fitted, nothing else; then `autoxrd.science.diagnosis.rank_causes` reads the",
        f"features. A defect counts when it costs {DETECTED:g} in chi2 against the true model (5 sigma). Where the",
        f"strongest cause is another that, refined, comes within {INSEPARABLE:g} of the true model's chi2, the data",
        "cannot tell the two apart; that is right when the right cause is named beside it (`(alike)`). Zero and",
        "displacement over a short range are such a pair, and Gaussian and Lorentzian width of weak lines.",
        "",
        f"`{facts.command}`, {date.today().isoformat()}, {facts.engine}, {facts.minutes:.0f} min, "
        f"load of the two-core machine when the page was written {load}.",
        "",
        "## Result",
        "",
        *_summary(verdicts),
        "",
        *_strict(verdicts),
        *_earlier(facts.earlier),
        *_sizes(),
        "",
    ]
    for level in LEVELS:
        parts += [f"## {level:,} counts at the highest channel", "", *_table(_at(verdicts, level)), ""]
    parts += ["## What is not right", "", *_faults(verdicts), ""]
    parts += ["## Unexplained intensity", "", *_q(facts), ""]
    return "\n".join(parts)


def _at(verdicts: Sequence[Verdict], level: int) -> list[Verdict]:
    return [v for v in verdicts if v.record.level == level]


def _summary(verdicts: Sequence[Verdict]) -> list[str]:
    lines = [
        "| counts | defects of 5 sigma | named alone or first | alike | wrong | nothing named | right | causes named "
        "| noise only: none |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for label, some in [*((f"{level:,}", _at(verdicts, level)) for level in LEVELS), ("all", list(verdicts))]:
        told: Share = shares(some)
        noise = [v for v in some if v.record.defect == "none"]
        none = sum(v.named == ("none",) for v in noise)
        lines.append(
            f"| {label} | {told.total} | {told.exact} | {told.alike} | {told.wrong} | {told.missed} | "
            f"{told.right:.1%} | {told.size:.2f} | {none} of {len(noise)} |"
        )
    below = [v for v in verdicts if not v.detected]
    false = sum(v.grade in ("wrong", "set") for v in below)
    lines += ["", f"Below 5 sigma: {len(below)} cases, {false} of them with another cause named first, "]
    lines[-1] += f"{sum(v.grade == 'exact' for v in below)} named right, the rest nothing."
    return lines


def _strict(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the share that is right under harder rules, so that the rules of the table can be judged."""
    told = [v for v in verdicts if v.detected and v.record.defect != "none"]
    right = [v for v in told if v.grade in ("exact", "set")]
    wrong = [v for v in told if v.record.defect == "wrong_phase"]
    named = sum(v.named[0] == "wrong_phase" for v in wrong)
    sole = [v for v in wrong if v.record.size == 1.0]
    sole_named = sum(v.named[0] == "wrong_phase" for v in sole)
    near = [v for v in told if v.record.cost < _NEAR]
    limits = f"{DETECTED:g} to {_NEAR:g}"
    near_right = sum(v.grade in ("exact", "set") for v in near)
    strict = len(right) - sum(v.grade in ("exact", "set") for v in wrong) + named
    alone = sum(v.grade == "exact" for v in told) / len(told)
    single = sum(_single(v) for v in told) / len(told)
    return [
        "By harder rules:",
        "",
        f"- the strongest alone, no alike ones: {alone:.1%};",
        f"- one cause named and no rival, and it is right: {single:.1%};",
        f"- defects that cost {limits} only: {near_right} of {len(near)} ({near_right / len(near):.1%});",
        f"- a wrong phase must be called wrong, not missing: {strict / len(told):.1%}. It is in",
        f"  {named} of {len(wrong)}, and in {sole_named} of the {len(sole)} where it is the only phase.",
        "  Beside the right phase its fitted scale goes to nothing: what is left to see is the missing phase.",
        "",
    ]


def _single(verdict: Verdict) -> bool:
    return verdict.grade == "exact" and len(verdict.causes) == 1


def _earlier(verdicts: Sequence[Verdict]) -> list[str]:
    if not verdicts:
        return []
    text = "The diagnosis was made on other sizes and noise of the same structures; the tables here are held out."
    return [text, "On the former:", "", *_summary(verdicts), ""]


def _sizes() -> list[str]:
    lines = ["| defect | sizes | right answers |", "|---|---|---|"]
    for defect in DEFECTS:
        sizes = ", ".join(f"{size:g}" for size in defect.sizes)
        lines.append(f"| {defect.name} | {sizes} ({defect.unit}) | {', '.join(sorted(defect.causes))} |")
    return lines


def _table(verdicts: Sequence[Verdict]) -> list[str]:
    columns, rows = confusion(verdicts)
    lines = ["| defect | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for defect, row in rows:
        cells = [str(row[name]) if row[name] else "" for name in columns]
        cells = [
            f"**{cell}**" if cell and name in defect.causes else cell for name, cell in zip(columns, cells, strict=True)
        ]
        lines.append(f"| {defect.name} | " + " | ".join(cells) + " |")
    return lines


def _faults(verdicts: Sequence[Verdict]) -> list[str]:
    bad = [v for v in verdicts if v.detected and v.grade in ("wrong", "none") and v.record.defect != "none"]
    bad += [v for v in verdicts if v.record.defect == "none" and v.named != ("none",)]
    if not bad:
        return ["Nothing."]
    lines = ["| sample | defect | counts | cost | named |", "|---|---|---|---|---|"]
    for v in bad:
        named = "; ".join(f"{c.name} {c.significance:.1f}" for c in v.causes[:4]) or "nothing"
        r = v.record
        lines.append(f"| {r.sample} | {r.defect} {r.size:g} | {r.level:,} | {r.cost:.0f} | {named} |")
    return lines


def _q(facts: Facts) -> list[str]:
    lines = ["Over all cases, the earlier ones too.", ""] if facts.earlier else []
    lines += ["| must hold | measured | holds |", "|---|---|---|"]
    lines += [f"| {must} | {text} | {'yes' if holds else 'no'} |" for must, text, holds in facts.q]
    if facts.backgrounds:
        least = min(value for _, value in facts.backgrounds)
        text = "; ".join(f"{label}: {value:.2f}" for label, value in facts.backgrounds)
        must = "background with 35 % Rwp misfit: structured_fraction_counting > 0.5"
        lines.append(f"| {must} | least {least:.2f} ({text}) | {'yes' if least > 0.5 else 'no'} |")
    return lines
