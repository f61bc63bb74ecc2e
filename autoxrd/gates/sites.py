"""Which atoms share a position, and so are freed together whichever of them is asked for?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from autoxrd.domain.state import FitState
from autoxrd.gates.selectors import Selector, parse_parameter

__all__ = ["Sites", "same_position"]

_SAME_POSITION = 1e-4
"""Fractional coordinates closer than this are one site (a CIF gives four to five decimals)."""

_CELLS = 64
"""Slices of the x axis in which neighbours are looked for."""

Position = tuple[float, float, float]


class Sites:
    """The site of each atom of a state.

    Args:
        owner: (phase, label) -> label of the first atom at the same position.
    """

    def __init__(self, owner: dict[tuple[str, str], str]) -> None:
        self._owner = owner

    @classmethod
    def of(cls, state: FitState) -> Self:
        """Read the positions of a state's atoms; an atom without all three coordinates is alone."""
        coordinates: dict[tuple[str, str], dict[str, float]] = {}
        for parameter in state.parameters:
            meaning = parse_parameter(parameter.name)
            if meaning is not None and meaning.kind == "atom" and meaning.component:
                coordinates.setdefault((meaning.phase, meaning.label), {})[meaning.component] = parameter.value
        owner: dict[tuple[str, str], str] = {}
        seen: dict[tuple[str, int], list[tuple[str, Position]]] = {}
        for (phase, label), found in coordinates.items():
            owner[(phase, label)] = label
            if len(found) < 3:
                continue
            position = (found["x"], found["y"], found["z"])
            cell = int((position[0] % 1.0) * _CELLS)
            near = [entry for step in (-1, 0, 1) for entry in seen.get((phase, (cell + step) % _CELLS), ())]
            first = next((other for other, there in near if same_position(position, there)), label)
            owner[(phase, label)] = first
            seen.setdefault((phase, cell), []).append((first, position))
        return cls(owner)

    def key(self, meaning: Selector) -> str:
        """Return the name of an atom's site, empty for what is no atom."""
        if meaning.kind != "atom":
            return ""
        return f"{meaning.phase}/{self._owner.get((meaning.phase, meaning.label), meaning.label)}"

    def closure(self, names: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
        """Return the names with all that is shared through a site, in the order of ``known``.

        Species at one position move and vibrate together: an engine ties them, and frees the one that stands for all.
        """
        wanted = set(names)
        shared = {
            (self.key(meaning), meaning.family)
            for name in wanted
            if (meaning := parse_parameter(name)) is not None and meaning.kind == "atom"
        }
        return tuple(name for name in known if name in wanted or (shared and self._in(name, shared)))

    def _in(self, name: str, shared: set[tuple[str, str]]) -> bool:
        meaning = parse_parameter(name)
        return meaning is not None and meaning.kind == "atom" and (self.key(meaning), meaning.family) in shared


def same_position(first: Position, second: Position, tolerance: float = _SAME_POSITION) -> bool:
    """Return whether fractional coordinates agree modulo the lattice: 0.99999 and 0.00000 are one position."""
    return all(abs((a - b + 0.5) % 1.0 - 0.5) < tolerance for a, b in zip(first, second, strict=True))
