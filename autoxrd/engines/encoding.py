"""How is a structure written for an engine?"""

from __future__ import annotations

import dataclasses

from autoxrd.domain.structure import CrystalStructure

__all__ = ["structure_json"]


def structure_json(structure: CrystalStructure) -> dict[str, object]:
    """Return what a backend needs to build a phase, as JSON values."""
    return {
        "name": structure.name,
        "title": structure.title,
        "space_group": structure.space_group,
        "space_group_number": structure.space_group_number,
        "operations": list(structure.operations),
        "cell": list(structure.cell.as_tuple()),
        "atoms": [dataclasses.asdict(atom) for atom in structure.atoms],
        "formula": structure.formula,
        "source_name": structure.source_name,
        "source_sha256": structure.source_sha256,
        "notices": [dataclasses.asdict(notice) for notice in structure.notices],
    }
