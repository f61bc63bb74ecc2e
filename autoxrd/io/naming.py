"""Give each phase a name that is safe in a selector and unique in the job."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace

from autoxrd.domain.structure import CrystalStructure

__all__ = ["name_structures", "structure_name", "unique_names"]

_GENERIC = re.compile(r"^(?:cod|icsd|amcsd|ccdc|mp|pdf|cif|phase|structure|data|block|global|file)?[\W_]*\d*$", re.I)
_MAX_LENGTH = 40


def _safe(text: str) -> str:
    """Letters, digits, ``_``, ``-`` and ``+`` only."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_+-]+", "_", ascii_text).strip("_")[:_MAX_LENGTH].strip("_")


def structure_name(stem: str, mineral: str, formula: str, block: str, *, alone: bool) -> str:
    """Choose a name: the file's stem unless it is only a number, else mineral, formula, block.

    Args:
        stem: file name without suffix.
        mineral: name of the mineral or compound as the file gives it, may be empty.
        formula: sum formula, may be empty.
        block: name of the data block.
        alone: whether the file holds only this phase.
    """
    compact = re.sub(r"\s+", "", formula)
    candidates = [stem, mineral, compact, block] if alone else [mineral, block, compact, stem]
    for candidate in candidates:
        name = _safe(candidate)
        if name and not _GENERIC.match(name):
            return name
    return _safe(stem) or "phase"


def unique_names(names: Iterable[str]) -> list[str]:
    """Make names safe, and unique by a counting suffix; the order is kept."""
    used: set[str] = set()
    out: list[str] = []
    for given in names:
        base = _safe(given) or "phase"
        name, count = base, 1
        while name.lower() in used:
            count += 1
            name = f"{base}_{count}"
        used.add(name.lower())
        out.append(name)
    return out


def name_structures(structures: Iterable[CrystalStructure]) -> tuple[CrystalStructure, ...]:
    """Make the names of all phases of a job unique; the order is kept."""
    given = tuple(structures)
    names = unique_names(structure.name for structure in given)
    return tuple(s if name == s.name else replace(s, name=name) for s, name in zip(given, names, strict=True))
