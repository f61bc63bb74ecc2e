"""Which real patterns are measured, and what is known of each? Reads cases.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Case", "load_cases"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One pattern with its truth.

    Args:
        kind: ``single`` or ``mixture``.
        pattern, structures, options: words of the command, files relative to the folder of data sets.
        rwp: published Rwp, percent.
        gof: published GoF, where no Rwp is stated.
        cell: name -> angstrom or degree of the first phase.
        window: how far the cell may lie from that, in the same unit.
        weights: weighed fractions in percent, in the order of the structures.
        expect: a warning or reason whose code must be given.
    """

    kind: str
    name: str
    pattern: str
    structures: tuple[str, ...]
    options: tuple[str, ...] = ()
    group: str = ""
    rwp: float | None = None
    gof: float | None = None
    cell: Mapping[str, float] = field(default_factory=dict)
    window: float = 0.0
    weights: tuple[float, ...] = ()
    expect: str = ""

    def words(self, data: Path) -> list[str]:
        """Return the command's words after ``refine``."""
        named = [str(data / word) if "/" in word else word for word in self.options]
        structures = [word for name in self.structures for word in ("--structure", str(data / name))]
        return [str(data / self.pattern), *structures, *named]


def load_cases() -> list[Case]:
    """Return all cases in the order of the file."""
    tables = tomllib.loads(Path(__file__).with_name("cases.toml").read_text(encoding="utf-8"))
    return [
        Case(kind=kind, **{key: tuple(v) if isinstance(v, list) else v for key, v in table.items()})
        for kind, entries in tables.items()
        for table in entries
    ]
