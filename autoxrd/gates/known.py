"""Whose cell is known? A phase of certified cell fixes the scale of lengths: its cell is never free.

A state says so by a feature for each such phase, so that whoever judges or proposes reads it off the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from autoxrd.domain.state import Feature, FitState, PhaseSummary
from autoxrd.gates.model_class import AuditFinding
from autoxrd.gates.selectors import parse_parameter

__all__ = ["KNOWN_CELL_PREFIX", "doubted_cells", "known_cell_features", "known_cells", "names_in", "of_known_cell"]

_ASKED = ".asked"
"""End of the name of what the lines of a phase of certified cell ask for, as engines state it."""
_DOUBTFUL = 5.0
"""Standard uncertainties from which a certified cell is doubted, as features are seen from."""

KNOWN_CELL_PREFIX = "known_cell."
"""Start of the name of the feature that says that the cell of a phase is certified; its value is a, angstrom."""


def known_cell_features(names: Sequence[str], phases: Sequence[PhaseSummary]) -> dict[str, Feature]:
    """Return the features that a state has of its phases of certified cell; none of one that left the model."""
    return {
        KNOWN_CELL_PREFIX + phase.name: Feature(
            value=phase.cell["a"].value, unit="angstrom", reason="a of the certified cell, which is held"
        )
        for phase in phases
        if phase.name in names
    }


def known_cells(state: FitState) -> tuple[str, ...]:
    """Return the names of the phases of a state whose cell is certified."""
    return names_in(state.features)


def names_in(features: Mapping[str, Feature]) -> tuple[str, ...]:
    """Return the phases of certified cell among features."""
    return tuple(n.removeprefix(KNOWN_CELL_PREFIX) for n in features if n.startswith(KNOWN_CELL_PREFIX))


def of_known_cell(name: str, state: FitState) -> bool:
    """Return whether a parameter, or what a selector without a glob names, is of a certified cell.

    The strain of one of several histograms is not: a standard may have been colder there than where its cell holds.
    """
    meaning = parse_parameter(name.partition("@")[0])
    return meaning is not None and meaning.quantity == "cell" and meaning.phase in known_cells(state)


def doubted_cells(state: FitState) -> Iterator[AuditFinding]:
    """Return the certified cells that the lines of their phases contradict.

    The cell that they ask for is that of a fit in which zero offset, displacement and all else that moves lines are
    let go within what they plausibly are; its esd is how well the lines know it then.
    """
    values = {p.name: p for p in state.parameters}
    for name, asked in values.items():
        held = values.get(name.removesuffix(_ASKED))
        if not name.endswith(_ASKED) or held is None or not asked.esd:
            continue
        away = (asked.value - held.value) / asked.esd
        if abs(away) < _DOUBTFUL:
            continue
        phase, key = name.split(".")[1], name.removesuffix(_ASKED).rpartition(".")[2]
        off = f"{1e6 * (asked.value / held.value - 1.0):+.0f} ppm, {abs(away):.1f} standard uncertainties"
        text = (
            f"the lines of {phase} ask for {key} = {asked.value:.5f} +- {asked.esd:.5f} with all that an instrument"
            f" does to lines let go; the stated cell has {held.value:.5f} ({off}): it is wrong for this specimen, or"
            " the lines are another phase's"
        )
        yield AuditFinding(code="known_cell_doubtful", text=text, measured=abs(away), limit=_DOUBTFUL)
