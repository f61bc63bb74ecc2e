"""What can be said of a file before a job is made of it? Read in a process of its own, with limits; nothing is stored.

The process is started by `autoxrd.jobs.checking`, reads one file at a time and holds nothing between two. A file that
breaks a reader, or fills the memory, ends this process and no other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from autoxrd.agent.certified import free_cell
from autoxrd.answering import answer_lines, own_answers
from autoxrd.curves import extremes, packed
from autoxrd.domain.instrument import EmissionLine, Instrument
from autoxrd.domain.pattern import AxisKind, Notice, Pattern
from autoxrd.domain.structure import CrystalStructure
from autoxrd.errors import AutoxrdError, UserInputError
from autoxrd.io import assess_pattern, read_instrument, read_pattern, read_structures, resolve_instrument

__all__ = ["CURVE_POINTS", "answer_to", "main"]

CURVE_POINTS = 6_000
"""Points of the curve that is sent; each interval keeps its highest and lowest, so no peak is lost."""

_UNSTATED = frozenset({"wavelength_missing", "wavelength_ambiguous"})


def answer_to(message: Mapping[str, Any]) -> dict[str, Any]:
    """Read the file that a message names (``kind``, ``path``) and say what it is.

    Returns:
        ``id`` of the message, and ``found`` or ``problem`` (code and sentence).
    """
    try:
        found = _READERS[str(message["kind"])](Path(str(message["path"])))
        return {"id": message.get("id"), "found": found}
    except AutoxrdError as error:
        return {"id": message.get("id"), "problem": {"code": error.code, "detail": error.detail}}


def _pattern(path: Path) -> dict[str, Any]:
    pattern = read_pattern(path)
    x, steps = pattern.x, np.diff(pattern.x)
    keep = extremes([pattern.y], CURVE_POINTS)
    lines, notices = _stated(pattern)
    return {
        "format": pattern.format,
        "title": pattern.title,
        "axis": pattern.axis.value,
        "n_points": pattern.n_points,
        "range": [float(x[0]), float(x[-1])],
        "step": float(np.median(steps)),
        "highest": float(pattern.y.max()),
        "sigma_origin": pattern.sigma_origin.value,
        "lines": lines,
        "notices": _told((*pattern.notices, *assess_pattern(pattern), *notices)),
        "curve": {"x": packed(x[keep]), "y": packed(pattern.y[keep])},
    }


def _stated(pattern: Pattern) -> tuple[list[dict[str, float]], tuple[Notice, ...]]:
    """Return the wavelengths that the file itself states, none where it does not; and what is to be said of them."""
    try:
        instrument = resolve_instrument(pattern)
    except UserInputError as error:
        if error.code in _UNSTATED:
            return [], ()
        if pattern.axis is AxisKind.TWO_THETA:
            raise
        return [], (Notice(error.code, error.detail),)
    return _lines(instrument.lines), instrument.notices


def _structures(path: Path) -> dict[str, Any]:
    return {"phases": [_phase(structure) for structure in read_structures(path)]}


def _lattices(path: Path) -> dict[str, Any]:
    """Read cells and space groups only, as a profile match does."""
    return {"phases": [_phase(structure) for structure in read_structures(path, lattice=True)]}


def _phase(structure: CrystalStructure) -> dict[str, Any]:
    return {
        "name": structure.name,
        "title": structure.title,
        "formula": structure.formula,
        "space_group": structure.space_group,
        "cell": asdict(structure.cell),
        "free_cell": free_cell(structure),
        "n_atoms": len(structure.atoms),
        "notices": _told(structure.notices),
    }


def _instrument(path: Path) -> dict[str, Any]:
    instrument: Instrument = read_instrument(path)
    return {
        "radiation": instrument.radiation.value,
        "geometry": instrument.geometry.value,
        "lines": _lines(instrument.lines),
        "profile": instrument.profile is not None or instrument.flight is not None,
        "notices": _told(instrument.notices),
    }


_READERS: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    "pattern": _pattern,
    "structure": _structures,
    "lattice": _lattices,
    "instrument": _instrument,
}


def _lines(lines: Sequence[EmissionLine]) -> list[dict[str, float]]:
    return [{"wavelength_angstrom": w.wavelength_angstrom, "ratio": w.relative_intensity} for w in lines]


def _told(notices: Sequence[Notice]) -> list[list[str]]:
    return [[notice.code, notice.text] for notice in dict.fromkeys(notices)]


def main() -> None:
    """Answer each line of standard input until there are no more."""
    answer_lines(answer_to, sys.stdin, own_answers())


if __name__ == "__main__":
    main()
