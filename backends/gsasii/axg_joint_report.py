"""What a state of several histograms looks like: the sample's numbers once, those of each histogram under its name."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from axg_fit import ending, figures
from axg_joint import STRAIN, JointState, bare, full, shared
from axg_joint_solve import member_outcome
from axg_model import Model
from axg_names import Catalog, Column
from axg_pattern import Computed
from axg_report import floor_notices, parameter_rows, phase_rows, tell_greatest
from axg_solve import Limits, Outcome
from axg_uncertainty import Linearised, asked_of, widen
from axr_marginal import Held, wavelength_spread
from axr_rows import rows_beside

__all__ = ["EFFECTIVE", "Whole", "joint_parameters", "joint_phases", "joint_uncertainties", "member_meta"]

EFFECTIVE = "effective_cell"
"""The cell as a histogram with a strain sees it, a derived quantity."""
_SAMPLE_TAILS = ("density", "cell.volume")

_Row = dict[str, Any]


@dataclass(frozen=True)
class Whole:
    """A state of several histograms with all that was computed of it.

    Args:
        state: the state.
        models, catalogs, seen, reflections: of each member, in order.
        catalog: of the whole.
        columns: what was free.
        limits: by column of the whole, as the command gave them.
        outcome: how the fit ended.
    """

    state: JointState
    models: list[Model]
    catalogs: list[Catalog]
    catalog: Catalog
    seen: list[Computed]
    reflections: list[dict[str, np.ndarray]]
    columns: list[Column]
    limits: Limits
    outcome: Outcome
    outcomes: list[tuple[Outcome, dict[str, Column]]] = field(default_factory=list)
    """As each member sees how the fit ended, with the columns of its names."""
    rows: list[tuple[list[_Row], list[_Row]]] = field(default_factory=list)
    """Of each member: its parameters with what derives from them, and its phases."""

    def __post_init__(self) -> None:
        for number in range(len(self.models)):
            self.outcomes.append(member_outcome(self.outcome, self.catalog, number, self.state))
            self.rows.append(_member_rows(self, number))

    def pattern(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return observed, sigma, calculated and background of all histograms in a row."""
        observed = np.concatenate([model.y for model in self.models])
        sigma = np.concatenate([model.sigma for model in self.models])
        calculated = np.concatenate([seen.y for seen in self.seen])
        return observed, sigma, calculated, np.concatenate([seen.background for seen in self.seen])

    def notices(self) -> list[tuple[str, str]]:
        """Return what each histogram has to tell."""
        found = []
        for name, member, seen in zip(self.state.names, self.state.members, self.seen, strict=True):
            found += [(code, f"Histogram {name}: {text}") for code, text in floor_notices(member, seen)]
        return found


def _member_rows(whole: Whole, number: int) -> tuple[list[_Row], list[_Row]]:
    """Return a member's parameters, derived ones after them, and its phases, all under bare names."""
    state, mine = whole.state.members[number], whole.state.names[number]
    outcome, columns = whole.outcomes[number]
    catalog = replace(whole.catalogs[number], columns={**whole.catalogs[number].columns, **columns})
    limits = {bare(name)[1]: ends for name, ends in whole.limits.items() if bare(name)[0] in ("", mine)}
    released = {bare(c.name)[1] for c in whole.columns if bare(c.name)[0] in ("", mine)}
    rows = parameter_rows(state, catalog, limits, released, outcome)
    tell_greatest(rows, whole.models[number], whole.reflections[number])
    phases, derived = phase_rows(state, whole.models[number], catalog, outcome)
    return [*rows, *derived], phases


def joint_parameters(whole: Whole) -> list[_Row]:
    """Return every number of the whole: the sample's once, then those of each histogram."""
    sample = [row for row in whole.rows[0][0] if _of_sample(row["name"])]
    found = list(sample)
    for number, histogram in enumerate(whole.state.names):
        own = (row for row in whole.rows[number][0] if not _of_sample(row["name"]))
        found += [{**row, "name": full(histogram, row["name"])} for row in own]
        found += _strain_rows(whole, number)
    return found


def _of_sample(name: str) -> bool:
    return shared(name) or (name.startswith("phase.") and name.endswith(_SAMPLE_TAILS))


def _strain_rows(whole: Whole, number: int) -> list[_Row]:
    """Return the strains of a member that its symmetry allows, and the cell that it has where one is not zero."""
    histogram, values = whole.state.names[number], whole.state.values
    esds = whole.outcome.esds(whole.catalog.columns)
    free = {column.name for column in whole.columns}
    heads = {key for c in whole.catalog.columns.values() for key, _ in c.moves if f".{STRAIN}." in key}
    cells = {row["name"]: row for row in whole.rows[number][0] if ".cell." in row["name"]}
    rows, strained = [], set()
    for name in whole.state.strains:
        if bare(name)[0] != histogram or name not in heads:
            continue
        column = whole.catalog.columns.get(name)
        lower, upper = (None, None) if column is None else whole.limits.get(name, (column.lower, column.upper))
        esd, released = esds.get(name), name in free
        unit = "" if name[-2:] in (".a", ".b", ".c") else "deg"
        row = {"name": name, "value": values[name], "unit": unit, "released": released, "esd": esd or None}
        rows.append({**row, "lower": lower, "upper": upper, "derived": column is None})
        if values[name] != 0.0 or esd:
            strained.add(bare(name)[1].split(f".{STRAIN}.")[0])
    for phase in sorted(strained):
        for name, row in cells.items():
            if name.startswith(f"{phase}.cell."):
                own = full(histogram, name.replace(".cell.", f".{EFFECTIVE}."))
                rows.append(
                    {**row, "name": f"histogram.{histogram}.{own}" if not own.startswith("histogram.") else own}
                )
                rows[-1] |= {"released": False, "derived": True, "lower": None, "upper": None}
    return rows


def joint_uncertainties(
    whole: Whole, problem: Linearised, axials: list[tuple[str, Held]], stated: list[_Row]
) -> list[_Row]:
    """Return the uncertainty of each parameter as a derived one beside it, what the fit held let go.

    Where the first histogram is over the time of flight nobody states how well its DIFC is known: there are none
    without a certified cell.

    Args:
        whole: the state with how its fit ended.
        problem: linearised, with the columns of all candidates.
        axials: what axial divergence would do in a histogram where it is neither free nor known.
        stated: the rows of the parameters.
    """
    first = whole.state.members[0]
    if first.flight is not None and not first.certified:
        return []
    spread = 0.0 if first.certified else wavelength_spread(first.values["instrument.wavelength"])
    wider, held = widen(whole.state.values, whole.catalog, problem, whole.outcome, spread, axials, first.certified)
    seen = replace(whole, outcome=wider, outcomes=[], rows=[])
    found = {row["name"]: row["esd"] for row in joint_parameters(seen) if row["esd"]} | held
    told = [row for row in stated if not bare(row["name"])[1].startswith("background")]
    asked = asked_of(whole.state.values, problem, whole.outcome, axials, first.certified)
    return rows_beside(told, found) + asked


def joint_phases(whole: Whole) -> list[_Row]:
    """Return each phase: cell and structure of the sample, its share as all histograms together give it."""
    phases = []
    for index, first in enumerate(whole.rows[0][1]):
        given = [rows[1][index]["weight_fraction"] for rows in whole.rows]
        phases.append({**first, "weight_fraction": _agreed([item for item in given if item is not None])})
    return phases


def _agreed(given: list[_Row]) -> _Row | None:
    """Return the weighted mean of what histograms say, its esd widened by how far they disagree (Birge 1932)."""
    if not given:
        return None
    values = np.array([item["value"] for item in given])
    esds = np.array([item["esd"] or 0.0 for item in given])
    if not np.all(esds > 0.0):
        return {"value": float(np.mean(values)), "esd": None}
    weights = esds**-2.0
    mean = float(weights @ values / weights.sum())
    scatter = float(weights @ (values - mean) ** 2) / max(len(values) - 1, 1)
    return {"value": mean, "esd": math.sqrt(max(scatter, 1.0) / float(weights.sum()))}


def member_meta(whole: Whole, number: int) -> _Row:
    """Return the description of one histogram's part as if it were a fit of its own, under bare names."""
    model, seen = whole.models[number], whole.seen[number]
    outcome, _ = whole.outcomes[number]
    parameters, phases = whole.rows[number]
    strains = [
        {**row, "name": bare(row["name"])[1]} for row in _strain_rows(whole, number) if f".{STRAIN}." in row["name"]
    ]
    return {
        "parameters": [*parameters, *strains],
        "phases": phases,
        "covariance_names": outcome.names,
        "convergence": ending(outcome),
        "engine_r": figures(model.y, model.sigma, seen.y, seen.background, len(outcome.names)),
        "notices": [],
        "gains": {},
        "gain_counts": {},
        "selectors": {},
        "engine_version": "",
        "mode": whole.state.mode,
        "esd_kind": "gof_scaled",
    }
