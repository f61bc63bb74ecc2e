"""What does the expert do, in words? ``python -m autoxrd.planners.rules.document > docs/planner.md`` renews it."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import fields, is_dataclass
from typing import Any

from autoxrd.domain.instrument import Geometry, Radiation
from autoxrd.planners.rules.bounding import QUANTITY_BOUNDS
from autoxrd.planners.rules.catalogue import CURRICULUM, Rule, order_of
from autoxrd.planners.rules.phases import BEFORE_PHASES, PhaseRules
from autoxrd.planners.rules.thresholds import Thresholds

__all__ = ["planner_page"]

_HEAD = """# The rules planner

Made from the planner's own tables by `python -m autoxrd.planners.rules.document > docs/planner.md`; a test holds the
two equal. The planner proposes, the gate decides: every step below is an action with evidence and predictions from the
recorded numbers, and a refused one is kept in the graph.

How a step is chosen, from the state that was accepted last:

1. The groups of rules are worked through in order. A rule whose release gain is not significant, or not worth its
   parameters by the gate's own price, is passed over. Inside a group the largest expected fall of chi^2 goes first.
2. While calculated and observed lines do not overlap, causes of the offsets are ranked by what each explains alone.
   Where no release reaches lines that are further off than `far_rms` and a cell explains it best, a profile match
   brings them in, once on a path: intensities free, cells starting where the measures find the lines. Then the
   structure is fitted from there.
3. Once they overlap, a rule of a later group goes first if it promises `dominance` times more.
4. Before structures are refined, the set of phases is asked: absent ones out, missing ones in, rivals in their place.
   Absent ones go one after another, and at once where their scale fell to nothing in a step that was refused for it. A
   removal that was refused is asked again once more is free; what was refused beside other phases may be proposed anew.
   Of a phase that the data do not show, or whose scale is held, nothing but scale and cell is freed.
5. What was refused is not proposed again from the same state; parameters that made a candidate faulty are left out.
   Of two of them that correlate too highly the less promising is. A step that would have helped much and was refused
   for widths freed before it is asked from the state before these were freed, and the job goes on with the better end.
6. Of several histograms of one sample each is asked as if it were alone, cells and atoms once; the first sets the scale
   of lengths, a further one may get a wavelength, DIFC or strain of its own. Where isotropic displacement parameters of
   a ruling phase are free and tensors pay, these are the last release.
7. A phase of certified cell (`--known-cell`) sets the scale of lengths: its cell is never freed, the others are, and
   so is the wavelength or DIFC of each histogram where its lines ask for it.
8. When nothing significant is left, the rival position model is asked once in the place of the present one, then all
   released parameters are refined together, and the job ends with the final audit.
"""


def _orders() -> list[str]:
    named = (
        ("X-rays, Bragg-Brentano", Radiation.XRAY, Geometry.BRAGG_BRENTANO),
        ("X-rays, Debye-Scherrer", Radiation.XRAY, Geometry.DEBYE_SCHERRER),
        ("Neutrons", Radiation.NEUTRON, Geometry.DEBYE_SCHERRER),
    )
    lines = ["## Order of the groups", "", "| measurement | groups; those named together compete |", "|---|---|"]
    for label, radiation, geometry in named:
        groups = [" + ".join(group) for group in order_of(radiation, geometry)]
        lines.append(f"| {label} | {' → '.join(groups)} |")
    before = ", ".join(sorted(BEFORE_PHASES))
    return [*lines, "", f"The set of phases is asked once these have nothing left to gain: {before}.", ""]


def _rules() -> list[str]:
    lines = ["## Rules", "", "| rule | group | frees | because | only | source |", "|---|---|---|---|---|---|"]
    for rule in CURRICULUM:
        frees = ", ".join(f"`{name}`" for name in rule.gains)
        cells = (f"`{rule.name}`", rule.group, frees, rule.why, "; ".join(_limits(rule)), rule.source)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, ""]


def _limits(rule: Rule) -> list[str]:
    said = (
        (rule.always, "always, whatever the gain"),
        (rule.structural, "phases that scatter enough"),
        (rule.heavy_only, "not hydrogen with X-rays"),
        (rule.ruling, "among several phases only the one that gives nearly all intensity"),
        (rule.shared_sites, "species that share a site"),
        (rule.uncalibrated_only, "widths not given by an instrument file"),
        (rule.shared_uiso is True, "one parameter for the phase"),
        (rule.shared_uiso is False, "where the data tell the atoms apart"),
        (rule.parts_uiso, "where they pay as on their own"),
        (rule.flight, "time of flight"),
        (rule.several and not rule.known, "a further one of several histograms"),
        (rule.known, "a further one of several histograms; where the cell of a phase is certified, but no tube's"),
        (not rule.together, "one at a time"),
        (rule.halo, "where it clearly gains more per parameter than further terms; not while peaks are unexplained"),
        (rule.patient, "never ahead of its turn"),
        (bool(rule.waits_for), f"after a refusal only once one of {', '.join(rule.waits_for)} was freed"),
    )
    return [text for true, text in said if true]


def _numbers(title: str, values: Any) -> list[str]:
    """Return the table of a dataclass of numbers, explained by the Args of its docstring."""
    assert is_dataclass(values)
    told = _explained(inspect.getdoc(type(values)) or "")
    lines = [f"## {title}", "", "| name | value | meaning |", "|---|---|---|"]
    lines += [f"| `{f.name}` | {getattr(values, f.name):g} | {told.get(f.name, '')} |" for f in fields(values)]
    return [*lines, ""]


def _explained(text: str) -> dict[str, str]:
    """Return the explanations under Args; names that share one stand before it, separated by commas or 'and'."""
    found: dict[str, str] = {}
    entries = re.split(r"\n {4}(?=\w[\w, ]*:)", text.partition("Args:")[2])
    for entry in (e for e in entries if ":" in e):
        names, _, words = entry.partition(":")
        for name in re.split(r", | and ", names.strip()):
            found[name] = " ".join(words.split()).replace("|", "\\|")
    return found


def planner_page() -> str:
    """Return the page about the planner, Markdown."""
    limits = [f"| `{name}` | {low:g} | {high:g} |" for name, (low, high) in QUANTITY_BOUNDS.items()]
    parts = [
        _HEAD,
        *_orders(),
        *_rules(),
        *_numbers("Numbers of judgement", Thresholds()),
        *_numbers("Numbers of the phase search", PhaseRules()),
        "## Limits that an action sets",
        "",
        "| quantity | from | to |",
        "|---|---|---|",
        *limits,
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.stdout.write(planner_page())
