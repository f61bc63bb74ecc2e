"""What does a planner measure between two steps? Its requests, answered by deterministic code from the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import gemmi

from autoxrd.agent.codec import arrays_of, load_arrays
from autoxrd.agent.job import FIRST, Job
from autoxrd.agent.views import misfits, peak_moments, picture, zoom
from autoxrd.domain.state import FitState
from autoxrd.domain.structure import CrystalStructure
from autoxrd.gates.metrics import is_timed
from autoxrd.planners.llm.legal import legal_from
from autoxrd.planners.llm.observation import state_facts
from autoxrd.planners.llm.ports import Measurement
from autoxrd.store.reading import GraphReader

__all__ = ["GraphBench"]

_GAIN_ROWS = 60
_CHANGES = 12
_D_TOLERANCE = 0.003
"""Relative difference of d below which a peak counts as a line of a candidate: 0.1 degrees at 60 degrees 2theta."""

Arguments = Mapping[str, Any]


class GraphBench:
    """Measures on the states of one job; nothing is changed, and equal requests give equal answers."""

    def __init__(self, graph: GraphReader, job: Job) -> None:
        self._graph = graph
        self._job = job

    def measure(self, state_id: str, what: str, arguments: Arguments) -> Measurement:
        """Return a measurement; a request that cannot be served says why."""
        served: dict[str, Callable[[FitState, Arguments], Mapping[str, Any]]] = {
            "observe": lambda state, _: state_facts(state),
            "gains": self._gains,
            "zoom": self._zoom,
            "peaks": lambda state, _: misfits(self._arrays(state), _phases(state)),
            "compare": self._compare,
            "fit_peak": lambda state, a: peak_moments(self._arrays(state), *_region(state, a)),
            "candidates": self._candidates,
        }
        if not state_id:
            return Measurement({"error": "there is no such state; name one of 'states'"})
        state = self._graph.state(state_id)
        if what == "plot":
            return self._plot(state, arguments)
        if what not in served:
            return Measurement({"error": f"there is no such measurement; there are {', '.join(served)}"})
        return Measurement(served[what](state, arguments))

    def _arrays(self, state: FitState) -> dict[str, Any]:
        # of several histograms the first is shown
        return arrays_of(load_arrays(self._graph.artifacts.get(state.arrays)), FIRST)

    def _gains(self, state: FitState, arguments: Arguments) -> Mapping[str, Any]:
        prefix = str(arguments.get("prefix", ""))
        found = [g for g in legal_from(state, self._job.policy).gains if g.selector.startswith(prefix)]
        rows = [
            [g.selector, float(f"{g.drop:.4g}"), float(f"{g.significance:.4g}"), g.n_parameters]
            for g in found[:_GAIN_ROWS]
        ]
        columns = ["selector", "drop_of_chi2", "significance", "n_parameters"]
        return {"columns": columns, "rows": rows, "not_shown": max(0, len(found) - _GAIN_ROWS)}

    def _zoom(self, state: FitState, arguments: Arguments) -> Mapping[str, Any]:
        return zoom(self._arrays(state), *_region(state, arguments), _phases(state))

    def _plot(self, state: FitState, arguments: Arguments) -> Measurement:
        lower, upper = _region(state, arguments)
        png = picture(self._arrays(state), lower, upper)
        if png is None:
            return Measurement({"error": "fewer than three points lie there"})
        told = "observed black, calculated red, background blue; below, on its own scale, the difference grey"
        return Measurement({"range_deg": [lower, upper], "curves": told}, png)

    def _compare(self, state: FitState, arguments: Arguments) -> Mapping[str, Any]:
        other_id = arguments.get("other_state")
        if not other_id:
            return {"error": "name the other state in 'other_state'"}
        other = self._graph.state(str(other_id))
        return {
            "rwp": [_short(state.quality.rwp), _short(other.quality.rwp)],
            "gof": [_short(state.quality.gof), _short(other.quality.gof)],
            "n_free": [state.complexity.n_free, other.complexity.n_free],
            "only_first_released": [s for s in state.released if s not in other.released][:_CHANGES],
            "only_other_released": [s for s in other.released if s not in state.released][:_CHANGES],
            "parameters_first_other_difference_over_esd": _moved(state, other),
        }

    def _candidates(self, state: FitState, _: Arguments) -> Mapping[str, Any]:
        """Say how many of the unexplained peaks lie at a line of each candidate structure."""
        wanted = [peak.d_angstrom for peak in state.unexplained_peaks]
        if not wanted:
            return {"unexplained_peaks": 0, "candidates": []}
        shortest = min(wanted) * (1.0 - _D_TOLERANCE)
        rows = []
        for structure in self._job.structures:
            lines = _d_spacings(structure, shortest)
            matched = sum(any(abs(d - line) <= _D_TOLERANCE * d for line in lines) for d in wanted)
            by_chance = len(wanted) * _coverage(lines, min(wanted), max(wanted))
            rows.append([structure.name, matched, float(f"{by_chance:.2g}"), structure.name in _phases(state)])
        columns = ["structure", "peaks_at_its_lines", "expected_by_chance", "in_the_model"]
        return {"unexplained_peaks": len(wanted), "columns": columns, "candidates": rows}


def _phases(state: FitState) -> tuple[str, ...]:
    return tuple(phase.name for phase in state.phases)


def _region(state: FitState, arguments: Arguments) -> tuple[float, float]:
    """Return the asked region inside the pattern, the whole range where none was asked for."""
    axis = "tof" if is_timed(state) else "two_theta"
    ends = [state.features.get(f"range.{axis}_{end}") for end in ("min", "max")]
    least, most = (float(f.value) if f is not None and f.value is not None else math.nan for f in ends)
    lower = float(arguments.get("lower_deg", least))
    upper = float(arguments.get("upper_deg", most))
    return max(lower, least), min(upper, most)


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _moved(one: FitState, other: FitState) -> list[list[Any]]:
    """Return the parameters that differ most in units of their esd."""
    values = {p.name: p for p in other.parameters}
    rows: list[tuple[float, list[Any]]] = []
    for parameter in one.parameters:
        twin = values.get(parameter.name)
        esd = max(parameter.esd or 0.0, (twin.esd if twin else None) or 0.0)
        if twin is None or not esd or parameter.name.startswith("background."):
            continue
        shift = (twin.value - parameter.value) / esd
        rows.append((abs(shift), [parameter.name, *map(_short, (parameter.value, twin.value, shift))]))
    rows.sort(key=lambda row: (-row[0], str(row[1][0])))
    return [row for _, row in rows[:_CHANGES]]


def _d_spacings(structure: CrystalStructure, shortest_angstrom: float) -> list[float]:
    """Return the d spacings of the lines that the space group allows, angstrom."""
    cell = gemmi.UnitCell(*structure.cell.as_tuple())
    group = gemmi.find_spacegroup_by_name(structure.space_group)
    if group is None:
        return []
    hkls = gemmi.make_miller_array(cell, group, shortest_angstrom)
    return sorted({round(float(d), 6) for d in cell.calculate_d_array(hkls)})


def _coverage(lines: list[float], shortest: float, longest: float) -> float:
    """Return which share of ln(d) between two values lies within the tolerance of a line."""
    if not longest > shortest:
        longest = shortest * (1 + 2 * _D_TOLERANCE)
    inside = [line for line in lines if shortest <= line <= longest]
    return min(1.0, len(inside) * 2 * _D_TOLERANCE / math.log(longest / shortest))
