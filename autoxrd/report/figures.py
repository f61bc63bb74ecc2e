"""The data behind the report's plots, packed so that one page can hold a pattern of any length."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoxrd.curves import extremes, packed
from autoxrd.domain.pattern import AxisKind, FloatArray
from autoxrd.domain.state import FitState
from autoxrd.report.model import FitArrays, ReflectionColumns, ReportInput
from autoxrd.report.parameters import accepted_path

__all__ = [
    "PHASE_COLOURS",
    "FitShown",
    "PlotSettings",
    "StepPoint",
    "fit_figure",
    "step_curve",
    "step_figure",
    "thinned",
]

PHASE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#7b61c9", "#8c6d1f", "#2a9fd6", "#5f6b7a")
"""Distinct for colour-blind readers (after Okabe & Ito, 2008), darkened to 3:1 contrast on white."""

_AXIS_TITLES = {
    AxisKind.TWO_THETA: ("2θ", "°"),
    AxisKind.TOF: ("time of flight", "µs"),
    AxisKind.D_SPACING: ("d", "Å"),
    AxisKind.Q: ("Q", "Å⁻¹"),
}


@dataclass(frozen=True, slots=True)
class PlotSettings:
    """How much data a page carries.

    Args:
        embedded_points: a pattern longer than this is thinned before it is embedded, keeping each bin's extremes.
            60 000 points are about 0.3 MB per curve.
        drawn_points: the browser draws at most this many per curve of what is in view, and thins anew on every zoom;
            more would only lie on top of each other and make the page slow.
        embedded_ticks: a job with more reflections than this shows the ticks of its first emission line only.
    """

    embedded_points: int = 60_000
    drawn_points: int = 4_000
    embedded_ticks: int = 20_000


@dataclass(frozen=True, slots=True)
class FitShown:
    """A fit to be drawn; a report's input is one of these and more.

    Args:
        excluded: (lower, upper) on the axis.
    """

    arrays: FitArrays
    reflections: ReflectionColumns
    state: FitState
    axis: AxisKind = AxisKind.TWO_THETA
    excluded: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class StepPoint:
    """An attempt as a point of the curve; ``rwp`` is a fraction, None where no candidate came out."""

    ordinal: int
    kind: str
    rwp: float | None
    accepted: bool


def thinned(arrays: FitArrays, limit: int) -> NDArray[np.int64]:
    """Choose points for display: all, or the extremes of observed, calculated and difference in equal bins.

    Args:
        arrays: the fit.
        limit: largest number of points.

    Returns:
        Increasing indices, at most ``limit`` of them where the pattern is longer than that.
    """
    return extremes([arrays.y_obs, arrays.y_calc, arrays.difference], limit)


def _u16(values: FloatArray) -> dict[str, Any]:
    """Pack a non-negative curve as 65 535 levels of its maximum."""
    top = float(np.max(values, initial=0.0))
    levels = np.round(np.clip(values, 0, None) * (65535 / top)) if top > 0 else np.zeros(values.shape)
    return {"top": top, "levels": base64.b64encode(levels.astype("<u2").tobytes()).decode()}


def _phase(inp: FitShown, index: int, keep: NDArray[np.int64], *, first_line_only: bool) -> dict[str, Any]:
    r = inp.reflections
    mine = np.flatnonzero((r.phase == index) & ((r.line == 0) | (not first_line_only)))
    top = float(np.max(r.intensity[mine], initial=0.0))
    share = r.intensity[mine] / top if top > 0 else np.zeros(mine.size)
    return {
        "name": inp.state.phases[index].name,
        "colour": PHASE_COLOURS[index % len(PHASE_COLOURS)],
        "pattern": _u16(inp.arrays.phase_patterns[index][keep]),
        "ticks": {
            "x": [round(float(v), 4) for v in r.position[mine]],
            "hkl": [" ".join(str(int(i)) for i in hkl) for hkl in r.hkl[mine]],
            "d": [round(float(v), 4) for v in r.d_angstrom[mine]],
            "line": [int(v) for v in r.line[mine]],
            "share": [round(float(v), 4) for v in share],
        },
    }


def fit_figure(inp: ReportInput | FitShown, settings: PlotSettings) -> dict[str, Any]:
    """Return what the fit plot draws: curves, ticks, unexplained peaks, excluded regions, axis."""
    if isinstance(inp, ReportInput):
        inp = FitShown(inp.arrays, inp.reflections, inp.state, inp.job.axis, inp.job.excluded_regions)
    a = inp.arrays
    keep = thinned(a, settings.embedded_points)
    title, unit = _AXIS_TITLES[inp.axis]
    first_line_only = inp.reflections.phase.size > settings.embedded_ticks
    return {
        "axis": {"title": title, "unit": unit},
        "total": int(a.x.size),
        "embedded": int(keep.size),
        "drawn": settings.drawn_points,
        "x": packed(a.x[keep]),
        "obs": packed(a.y_obs[keep]),
        "sigma": packed(a.sigma[keep]),
        "calc": packed(a.y_calc[keep]),
        "background": packed(a.background[keep]),
        "first_line_only": first_line_only,
        "phases": [_phase(inp, i, keep, first_line_only=first_line_only) for i in range(len(inp.state.phases))],
        "unexplained": [
            {"x": round(p.two_theta_deg, 4), "d": round(p.d_angstrom, 4), "share": round(p.area_share, 5)}
            for p in inp.state.unexplained_peaks
        ],
        "excluded": [list(region) for region in inp.excluded],
    }


def step_figure(inp: ReportInput) -> dict[str, Any]:
    """Return Rwp after each step, in percent, with Rexp of the final state."""
    first = next((s.rwp_before for s in inp.steps if s.rwp_before is not None), None)
    points = [StepPoint(s.ordinal, s.action.kind.value, s.rwp_after, s.accepted) for s in inp.steps]
    path = frozenset(s.ordinal for s in accepted_path(inp.steps, inp.state_id))
    return step_curve(points, path=path, start=first, rexp=inp.state.quality.rexp)


def step_curve(
    points: Sequence[StepPoint], *, path: frozenset[int], start: float | None, rexp: float | None
) -> dict[str, Any]:
    """Return what the plot of Rwp per step draws, in percent.

    Args:
        points: attempts in order.
        path: ordinals of those that lead to the final or the current state.
        start: Rwp of the root, as a fraction.
        rexp: Rexp of the final or the current state, as a fraction.
    """
    return {
        "start": None if start is None else round(100 * start, 3),
        "rexp": None if rexp is None else round(100 * rexp, 3),
        "steps": [
            {
                "n": p.ordinal,
                "kind": p.kind.replace("_", " "),
                "rwp": None if p.rwp is None else round(100 * p.rwp, 3),
                "state": "path" if p.ordinal in path else "branch" if p.accepted else "rejected",
            }
            for p in points
        ],
    }
