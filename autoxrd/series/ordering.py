"""In which order are the patterns of a series refined, and what is the quantity along it?"""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from autoxrd.errors import UserInputError

__all__ = ["ORDERS", "Course", "Order", "Place", "chunks_of", "ordered", "read_values", "value_in"]

Order = Literal["file", "temperature", "time", "name"]
ORDERS: tuple[Order, ...] = ("file", "temperature", "time", "name")

_KELVIN = re.compile(r"(?<![A-Za-z0-9.])T?[_=-]?([0-9]+(?:[.p][0-9]+)?)_?K(?![a-zA-Z0-9])")
_CELSIUS = re.compile(r"(?<![A-Za-z0-9.])T?[_=]?(-?[0-9]+(?:[.p][0-9]+)?)_?(?:deg|°)?C(?![a-zA-Z0-9])")
_TIME = re.compile(r"(?<![A-Za-z0-9.])t?[_=-]?([0-9]+(?:[.p][0-9]+)?)_?(s|sec|min|h)(?![a-zA-Z0-9])")
_SECONDS = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0}
_ZERO_CELSIUS = 273.15
_UNITS: dict[str, str] = {"temperature": "K", "time": "s"}


@dataclass(frozen=True, slots=True)
class Place:
    """A pattern at its place.

    Args:
        number: from 1.
        path: its file.
        value: of the quantity along the series, None where it is not known.
    """

    number: int
    path: Path
    value: float | None


@dataclass(frozen=True, slots=True)
class Course:
    """The patterns in order.

    Args:
        quantity: ``temperature``, ``time`` or empty.
        unit: K, s or empty.
    """

    places: tuple[Place, ...]
    order: Order
    quantity: str
    unit: str


def ordered(
    paths: Sequence[Path], order: Order, *, known: Mapping[str, float], headers: Mapping[Path, float | None]
) -> Course:
    """Put patterns in order.

    Args:
        paths: the files, as given.
        order: ``file`` as given, ``name`` by file name (numbers as numbers), ``temperature`` or ``time`` by value.
        known: file name -> value, from a table of the user's; goes before everything else.
        headers: file -> temperature in kelvin that its header states.

    Raises:
        UserInputError: ``series_value_missing``, an order by value and a pattern without one.
    """
    quantity: str = order if order in _UNITS else "temperature"
    values = {p: _value(p, quantity, known, headers.get(p)) for p in paths}
    if order in _UNITS:
        missing = next((p for p in paths if values[p] is None), None)
        if missing is not None:
            raise UserInputError(
                "series_value_missing",
                f"The {order} of {missing.name} stands neither in its header nor in its name (as in run_300K or "
                "run_20min): give a table with --values, one line 'file,value' for each pattern.",
            )
        paths = sorted(paths, key=lambda p: (values[p] or 0.0, _natural(p.name)))
    elif order == "name":
        paths = sorted(paths, key=lambda p: _natural(p.name))
    if any(value is None for value in values.values()):
        quantity, values = "", dict.fromkeys(paths)
    places = tuple(Place(i, path, values[path]) for i, path in enumerate(paths, 1))
    return Course(places, order, quantity, _UNITS.get(quantity, ""))


def value_in(name: str, quantity: str) -> float | None:
    """Return the temperature (K) or the time (s) that a file's name states: ``run_300K.xy``, ``run_20min.xy``.

    Args:
        name: of the file.
        quantity: ``temperature`` or ``time``; no name states another one.
    """
    stem = Path(name).stem
    if quantity == "time":
        found = _TIME.search(stem)
        return float(found[1].replace("p", ".")) * _SECONDS[found[2]] if found else None
    if quantity != "temperature":
        return None
    kelvin, celsius = _KELVIN.search(stem), _CELSIUS.search(stem)
    if kelvin:
        return float(kelvin[1].replace("p", "."))
    return float(celsius[1].replace("p", ".")) + _ZERO_CELSIUS if celsius else None


def _value(path: Path, quantity: str, known: Mapping[str, float], header: float | None) -> float | None:
    if path.name in known:
        return known[path.name]
    if quantity == "temperature" and header is not None:
        return header
    return value_in(path.name, quantity)


def _natural(name: str) -> tuple[tuple[int, float, str], ...]:
    """Compare numbers in names as numbers: scan_9 before scan_10."""
    parts = re.split(r"([0-9]+)", name)
    return tuple((0, float(p), "") if p.isdigit() else (1, 0.0, p.lower()) for p in parts if p)


def read_values(path: Path) -> dict[str, float]:
    """Read a table ``file,value`` (comma, semicolon, tab or blank between); a line without a number is a heading.

    Raises:
        UserInputError: ``series_values_invalid``.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserInputError("series_values_invalid", f"The table {path.name} cannot be read: {error}.") from error
    found: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = _cells(line)
        value = _number(cells[1]) if len(cells) > 1 else None
        if value is None:
            if number == 1:
                continue
            raise UserInputError(
                "series_values_invalid", f"Line {number} of {path.name} is not 'file,value': {line.strip()[:60]!r}."
            )
        found[Path(cells[0]).name] = value
    return found


def _cells(line: str) -> list[str]:
    for sign in (",", ";", "\t"):
        if sign in line:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=sign))]
    return line.split()


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def chunks_of(places: Sequence[Place], count: int) -> list[tuple[Place, ...]]:
    """Part a series into runs of neighbours of nearly equal length, at most ``count`` of them."""
    count = max(1, min(count, len(places)))
    edges = [round(i * len(places) / count) for i in range(count + 1)]
    return [tuple(places[a:b]) for a, b in itertools.pairwise(edges) if b > a]
