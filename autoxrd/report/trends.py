"""What is plotted along a series? Panels of curves with error bars, each point with what became of its pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from autoxrd.domain.state import MeasuredValue
from autoxrd.report.figures import PHASE_COLOURS
from autoxrd.report.series_model import PatternRow, PhaseRow, SeriesReport

__all__ = ["point_status", "trend_figure"]

_CELL = (("a", "Å"), ("b", "Å"), ("c", "Å"), ("alpha", "°"), ("beta", "°"), ("gamma", "°"), ("volume", "Å³"))
_SIGNS = {"alpha": "α", "beta": "β", "gamma": "γ", "volume": "V"}
_WIDTHS = (("size", "size broadening", "°"), ("strain", "strain broadening", "°"))
_GREY = "#465364"


def point_status(row: PatternRow) -> str:
    """Return how a row's points are drawn: ``accepted``, ``warnings``, ``abstained`` or ``failed``."""
    return "warnings" if row.verdict == "accepted_with_warnings" else row.verdict


def trend_figure(report: SeriesReport) -> dict[str, Any]:
    """Return what the page draws: the axis, the marks of every pattern, and the panels that have a curve.

    Patterns that failed have no point, those that abstained an open one.
    """
    rows = report.patterns
    names = list(dict.fromkeys(phase.name for row in rows for phase in row.phases))
    panels = [_agreement(rows), _amounts(rows, names)]
    for index, name in enumerate(names):
        panels += _cells(rows, name, PHASE_COLOURS[index % len(PHASE_COLOURS)])
    panels += [_widths(rows, names, *which) for which in _WIDTHS]
    panels.append(_panel("Specimen displacement", "mm", [_curve("", _GREY, rows, lambda row: row.displacement_mm)]))
    axis = report.quantity or "pattern"
    return {
        "axis": f"{axis}{f' / {report.unit}' if report.unit else ''}",
        "x": [row.number if row.value is None else row.value for row in rows],
        "names": [row.name for row in rows],
        "status": [point_status(row) for row in rows],
        "restarted": [bool(row.restarted_because) for row in rows],
        "panels": [panel for panel in panels if panel["curves"]],
    }


def _panel(title: str, unit: str, curves: Iterable[dict[str, Any] | None]) -> dict[str, Any]:
    return {"title": title, "unit": unit, "curves": [curve for curve in curves if curve is not None]}


def _curve(
    name: str,
    colour: str,
    rows: list[PatternRow],
    read: Callable[[PatternRow], MeasuredValue | None],
    scale: float = 1.0,
) -> dict[str, Any] | None:
    """Return a curve, None where no pattern has the quantity with an esd: what was never refined shows no trend."""
    found = [read(row) for row in rows]
    if not any(m is not None and (m.esd or name == "Rwp") for m in found):
        return None
    return {
        "name": name,
        "colour": colour,
        "y": [None if m is None else scale * m.value for m in found],
        "esd": [None if m is None or m.esd is None else scale * m.esd for m in found],
    }


def _agreement(rows: list[PatternRow]) -> dict[str, Any]:
    def rwp(row: PatternRow) -> MeasuredValue | None:
        return None if row.rwp_percent is None else MeasuredValue(value=row.rwp_percent)

    return _panel("Rwp", "%", [_curve("Rwp", _GREY, rows, rwp)])


def _phase(row: PatternRow, name: str) -> PhaseRow | None:
    return next((phase for phase in row.phases if phase.name == name), None)


def _of_phase(
    name: str, read: Callable[[PhaseRow], MeasuredValue | None]
) -> Callable[[PatternRow], MeasuredValue | None]:
    def value(row: PatternRow) -> MeasuredValue | None:
        phase = _phase(row, name)
        return None if phase is None or not phase.seen else read(phase)

    return value


def _amounts(rows: list[PatternRow], names: list[str]) -> dict[str, Any]:
    """Return the weight percentages; of the whole specimen, with its amorphous part, where a standard gives them."""
    whole = any(row.amorphous is not None for row in rows)
    read = (lambda p: p.absolute_weight_fraction) if whole else (lambda p: p.weight_fraction)
    curves = [
        _curve(name, PHASE_COLOURS[i % len(PHASE_COLOURS)], rows, _of_phase(name, read), 100.0)
        for i, name in enumerate(names)
    ]
    curves.append(_curve("amorphous", _GREY, rows, lambda row: row.amorphous, 100.0))
    return _panel("Weight fractions" + (" of the specimen" if whole else ""), "%", curves)


def _cells(rows: list[PatternRow], name: str, colour: str) -> list[dict[str, Any]]:
    """Return a panel for each cell parameter that moves on its own: not b where it is a by symmetry."""
    panels: list[dict[str, Any]] = []
    drawn: list[list[float | None]] = []
    for key, unit in _CELL:
        curve = _curve(name, colour, rows, _of_phase(name, lambda p, key=key: p.cell.get(key)))  # type: ignore[misc]
        if curve is None or curve["y"] in drawn:
            continue
        drawn.append(curve["y"])
        panels.append(_panel(f"{name}: {_SIGNS.get(key, key)}", unit, [curve]))
    return panels


def _widths(rows: list[PatternRow], names: list[str], key: str, title: str, unit: str) -> dict[str, Any]:
    curves = [
        _curve(name, PHASE_COLOURS[i % len(PHASE_COLOURS)], rows, _of_phase(name, lambda p: p.widths.get(key)))
        for i, name in enumerate(names)
    ]
    return _panel(title[:1].upper() + title[1:], unit, curves)
