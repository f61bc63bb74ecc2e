"""A live rietx refinement in a given state, with shared sites tied: what every command starts from."""

from __future__ import annotations

from typing import Any

from axr_names import Catalog, build_catalog
from axr_private import BoundedRefinement, Ties, build_table, restored
from axr_state import State

__all__ = ["catalog_of", "open_refinement"]


def open_refinement(state: State, *, tie_axial: bool = True) -> BoundedRefinement:
    """Return a fresh refinement object: same values, sites with several species tied, nothing free.

    Args:
        state: where to start.
        tie_axial: keep H/L in its present proportion to S/L, so that both are one parameter.
    """
    ref = restored(
        state.structure, state.instrument, mode=state.mode, limits=state.limits, reflections=state.reflections
    )
    # a profile match has no atoms to tie: their parameters are fixed by the mode
    shared = () if state.mode == "lebail" else state.shared
    for index, groups in enumerate(shared):
        for group in groups:
            _tie_site(ref, f"phases.{index}.atoms", group, build_table(ref))
    ref.tie_together(_tied_displacements(ref, state) | (_tied_axial(state) if tie_axial else {}))
    return ref


def _tied_axial(state: State) -> Ties:
    """Return what keeps H/L in its present proportion to S/L."""
    geometry = state.instrument.geometry
    ratio = geometry.axial_hl.value / geometry.axial_sl.value if geometry.axial_sl.value > 0 else 1.0
    if ratio > 0 and (geometry.axial_sl.value > 0 or geometry.axial_hl.value == 0):
        return {"instrument.geometry.axial_hl": ([("instrument.geometry.axial_sl", ratio)], 0.0)}
    return {}


def _tied_displacements(ref: Any, state: State) -> Ties:
    """Return what lets the atoms of some phases share one displacement parameter: theirs keep their proportions."""
    sharing = [(i, phase) for i, phase in enumerate(state.structure.phases) if phase.name in state.equal_uiso]
    if state.mode == "lebail" or not sharing:
        return {}
    ties: Ties = {}
    entries = {entry.path: entry for entry in build_table(ref).entries}
    for index, phase in sharing:
        own = [f"phases.{index}.atoms.{number}.biso" for number in range(len(phase.atoms))]
        free = [path for path in own if entries[path].tie is None and entries[path].value > 0.0]
        ties |= {path: ([(free[0], entries[path].value / entries[free[0]].value)], 0.0) for path in free[1:]}
    return ties


def _tie_site(ref: Any, base: str, group: tuple[int, ...], table: Any) -> None:
    """Tie the atoms of one site: equal displacement, equal coordinates, constant sum of occupancies."""
    entries = {entry.path: entry for entry in table.entries}
    first = group[0]
    ties: Ties = {}
    for other in group[1:]:
        ties[f"{base}.{other}.biso"] = ([(f"{base}.{first}.biso", 1.0)], 0.0)
        for number in range(3):
            target, source = f"{base}.{other}.dof.{number}", f"{base}.{first}.dof.{number}"
            if target in entries and source in entries and not entries[source].held and not entries[target].held:
                ties[target] = ([(source, 1.0)], 0.0)
    last, rest = group[-1], group[:-1]
    total = sum(entries[f"{base}.{number}.occ"].value for number in group)
    ties[f"{base}.{last}.occ"] = ([(f"{base}.{number}.occ", -1.0) for number in rest], total)
    ref.tie_together(ties)


def catalog_of(state: State, ref: Any) -> Catalog:
    """Return what can be released in a state."""
    return build_catalog(ref.structure, ref.instrument, build_table(ref))
