"""A second gate, written from the rules on paper: plain tables over plain numbers, nothing imported from the first.

It knows only the figures of a step (`Step`), and gives for each rule whether it holds. Numbers are spelled out
here again on purpose: a limit changed by mistake in the policy files makes the two disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

STRICT = {
    "rwp": 1.02,
    "q": 0.02,
    "c": 0.98,
    "same pair may rise": 0.0,
    "worse by": 0.0,
    "soft counts": True,
    "weights": {"gof": 1.0, "abs": 2.0, "q": 3.0, "k": 0.002, "c": 10.0, "hard": 10.0, "soft": 10.0},
    "gain": 0.0,
}
DEFAULT = {
    **STRICT,
    "same pair may rise": 0.001,
    "worse by": 0.25,
    "soft counts": False,
    "weights": {"gof": 1.0, "abs": 2.0, "q": 3.0, "k": 0.002, "c": 0.1, "hard": 10.0, "soft": 0.1},
    "gain": 1e-6,
}


@dataclass(frozen=True)
class Side:
    """One state in figures. ``hard`` and ``soft``: excess over the limit by subject."""

    rwp: float
    gof: float
    residual: float
    q: float
    k: int
    c: float
    pair: str
    hard: dict[str, float] = field(default_factory=dict)
    soft: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """A step in figures: the predicted metric is the zero error, predicted to come closer to zero by ``minimum``."""

    before: Side
    after: Side
    converged: bool
    preflight: bool
    freeze: bool
    zero_before: float
    zero_after: float
    minimum: float


def _violations(step: Step, rules: dict) -> bool:
    for subject, excess in step.after.hard.items():
        if subject not in step.before.hard or excess > step.before.hard[subject] * (1 + rules["worse by"]) * (1 + 1e-9):
            return False
    if rules["soft counts"]:
        for subject, excess in step.after.soft.items():
            known = {**step.before.soft, **step.before.hard}
            if subject not in known or excess > known[subject] * (1 + rules["worse by"]) * (1 + 1e-9):
                return False
    return True


def _correlation(step: Step, rules: dict) -> bool:
    before, after = step.before, step.after
    inherited = before.c > rules["c"]
    return (
        after.c <= rules["c"]
        or step.freeze
        or (inherited and after.c < before.c)
        or (
            inherited
            and rules["same pair may rise"] > 0
            and after.pair == before.pair
            and after.c <= before.c + rules["same pair may rise"]
        )
    )


def _met(step: Step) -> bool:
    return abs(step.zero_before) - abs(step.zero_after) >= step.minimum * (1 - 1e-9)


def worth(side: Side, rules: dict) -> float:
    w = rules["weights"]
    return -(
        w["gof"] * side.gof
        + w["abs"] * side.residual
        + w["q"] * side.q
        + w["k"] * side.k
        + w["c"] * max(0.0, side.c - 0.90)
        + w["hard"] * len(side.hard)
        + w["soft"] * len(side.soft)
    )


TABLE: dict[str, Callable[[Step, dict], bool]] = {
    "preflight": lambda s, r: s.preflight,
    "engine": lambda s, r: s.converged,
    "violations": _violations,
    "rwp": lambda s, r: s.after.rwp <= r["rwp"] * s.before.rwp * (1 + 1e-12),
    "unexplained": lambda s, r: s.after.q <= (s.before.q + r["q"]) * (1 + 1e-12),
    "correlation": _correlation,
    "predictions": lambda s, r: _met(s),
    "utility": lambda s, r: worth(s.after, r) - worth(s.before, r) > r["gain"],
}


def failed(step: Step, rules: dict) -> set[str]:
    """Names of the rules that do not hold."""
    return {name for name, holds in TABLE.items() if not holds(step, rules)}


def answers(step: Step, rules: dict) -> tuple[bool, bool, bool]:
    """Numerically better, mechanism supported, admissible."""
    bad = failed(step, rules)
    return (
        step.after.rwp < step.before.rwp,
        _met(step),
        not bad & {"engine", "violations", "unexplained", "correlation"},
    )


# --- coupled sets: a table of pairs of plain names ----------------------------------------------------------------

ATOMS = ("Ca1", "O1'")


def coupled(free: set[str], added: set[str], tangled: set[frozenset[str]], *, narrow: bool) -> set[str]:
    """Ids of the coupled sets among ``free`` that ``added`` has a part in; names as in the factory."""
    cell, zero, wave, off = "phase.fap.cell.", "instrument.zero", "instrument.wavelength", "sample.displacement"
    cells = {name for name in free if name.startswith(cell)}
    back = {name for name in free if name.startswith("background.")}
    sets: list[tuple[str, list[set[str]]]] = [
        ("zero_displacement", [{zero}, {off}]),
        ("zero_cell_wavelength", [{zero}, cells, {wave}]),
        ("wavelength_cells", [{wave}, cells]),
    ]
    if frozenset({"zero", "cell"}) in tangled:
        sets.append(("zero_cell", [{zero}, cells | {wave}]))
    if frozenset({"displacement", "cell"}) in tangled:
        sets.append(("displacement_cell", [{off}, cells | {wave}]))
    for atom in ATOMS:
        path = f"phase.fap.atom.{atom}"
        sets.append(("occupancy_uiso", [{f"{path}.occupancy"}, {f"{path}.uiso"}]))
    occupancies = {f"phase.fap.atom.{atom}.occupancy" for atom in ATOMS}
    vibrations = {f"phase.fap.atom.{atom}.uiso" for atom in ATOMS}
    if occupancies <= free:
        sets.append(("scale_occupancies", [{"phase.fap.scale"}, occupancies]))
    if narrow and vibrations <= free:
        sets.append(("background_overall_uiso", [back, vibrations]))
    found = set()
    for name, sides in sets:
        present = [side & free for side in sides]
        if all(present) and any(side & added for side in present):
            found.add(name)
    return found


def table_of_kinds() -> list[tuple[str, ...]]:
    """Every mixture of the position quantities, for exhaustive tests."""
    names = ("instrument.zero", "sample.displacement", "phase.fap.cell.a", "instrument.wavelength")
    return [tuple(name for name, there in zip(names, bits, strict=True) if there) for bits in product((0, 1), repeat=4)]
