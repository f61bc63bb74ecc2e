"""How do two fits differ? Figures of merit, phases and parameters side by side, differences in units of their esds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from autoxrd.domain.state import FitState, MeasuredValue, PhaseSummary
from autoxrd.report.format import fixed, pretty
from autoxrd.report.words import unit_words

__all__ = ["Contrast", "Row", "contrast"]

NOTABLE_ESDS = 3.0
"""A difference of more combined esds than this is marked; for a normal error it is by chance in 0.3 % of the cases."""
_CELL = (("a", "Å"), ("b", "Å"), ("c", "Å"), ("alpha", "°"), ("beta", "°"), ("gamma", "°"), ("volume", "Å³"))
_GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "volume": "V"}
_RATIO = "unexplained_peak_ratio"


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity in both fits, as written.

    Args:
        change: second minus first.
        esds: the change over its combined esd; empty where one of the two has none.
        notable: whether that is more than `NOTABLE_ESDS`.
    """

    name: str | Markup
    unit: str
    first: str
    second: str
    change: str = ""
    esds: str = ""
    notable: bool = False


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two fits side by side.

    Args:
        phases: rows by the name of the phase.
        parameters: those that are free in at least one of the fits.
    """

    figures: tuple[Row, ...]
    phases: tuple[tuple[str, tuple[Row, ...]], ...]
    parameters: tuple[Row, ...]


def contrast(first: FitState, second: FitState) -> Contrast:
    """Compare two states, of one job or of two."""
    by_name = [{phase.name: phase for phase in state.phases} for state in (first, second)]
    names = dict.fromkeys([*by_name[0], *by_name[1]])
    phases = tuple((name, _phase(by_name[0].get(name), by_name[1].get(name))) for name in names)
    return Contrast(_figures(first, second), phases, tuple(_parameters(first, second)))


def _r(subscript: str) -> Markup:
    return Markup("<i>R</i><sub>{}</sub>").format(subscript)


def _figures(a: FitState, b: FitState) -> tuple[Row, ...]:
    q, r = a.quality, b.quality
    return (
        _figure(_r("wp"), q.rwp, r.rwp, "%", 3),
        _figure(_r("wp") + ", background-corrected", q.rwp_no_background, r.rwp_no_background, "%", 3),
        _figure(_r("exp"), q.rexp, r.rexp, "%", 3),
        _figure(_r("p"), q.rp, r.rp, "%", 3),
        _figure("Goodness of fit", q.gof, r.gof, "", 3),
        _figure("Unexplained peaks", _feature(a), _feature(b), "%", 3),
        _figure("Largest correlation", a.complexity.max_correlation, b.complexity.max_correlation, "", 3),
        _figure("Points", q.n_points, r.n_points, "", 0),
        _figure("Parameters", q.n_parameters, r.n_parameters, "", 0),
    )


def _figure(name: str | Markup, a: float | None, b: float | None, unit: str, decimals: int) -> Row:
    scale = 100.0 if unit == "%" else 1.0
    change = "" if a is None or b is None else _signed(fixed(b - a, decimals, scale=scale))
    return Row(name, unit, fixed(a, decimals, scale=scale), fixed(b, decimals, scale=scale), change)


def _feature(state: FitState) -> float | None:
    found = state.features.get(_RATIO)
    return found.value if found is not None and found.available else None


def _phase(a: PhaseSummary | None, b: PhaseSummary | None) -> tuple[Row, ...]:
    weights = [_scaled(p.weight_fraction, 100.0) if p else None for p in (a, b)]
    rows = [_measured("Weight", "%", *weights)]
    rows += [
        _measured(_GREEK.get(key, key), unit, a.cell.get(key) if a else None, b.cell.get(key) if b else None)
        for key, unit in _CELL
    ]
    rows.append(_figure(_r("Bragg"), a.r_bragg if a else None, b.r_bragg if b else None, "%", 2))
    return tuple(row for row in rows if (row.first, row.second) != ("–", "–"))


def _scaled(value: MeasuredValue | None, factor: float) -> MeasuredValue | None:
    if value is None:
        return None
    return MeasuredValue(value=factor * value.value, esd=None if value.esd is None else factor * value.esd)


def _parameters(a: FitState, b: FitState) -> Iterable[Row]:
    both = [{p.name: p for p in state.parameters} for state in (a, b)]
    for name in dict.fromkeys([*both[0], *both[1]]):
        pair = [found.get(name) for found in both]
        if not any(p is not None and p.released for p in pair):
            continue
        unit = next(p.unit for p in pair if p is not None)
        values = [None if p is None else MeasuredValue(value=p.value, esd=p.esd) for p in pair]
        yield _measured(name, unit_words(unit), *values)


def _measured(name: str, unit: str, a: MeasuredValue | None, b: MeasuredValue | None) -> Row:
    first, second = ("–" if m is None else pretty(m.value, m.esd) for m in (a, b))
    if a is None or b is None:
        return Row(name, unit, first, second)
    change = b.value - a.value
    esd = math.hypot(a.esd or 0.0, b.esd or 0.0)
    esds = change / esd if esd > 0 and a.esd and b.esd else None
    told = "" if esds is None else _signed(fixed(esds, 1))
    notable = esds is not None and abs(esds) > NOTABLE_ESDS
    return Row(name, unit, first, second, _signed(pretty(change, digits=3)), told, notable)


def _signed(text: str) -> str:
    text = text.replace("-", "−")
    return text if text.startswith("−") or not any(c in text for c in "123456789") else f"+{text}"
