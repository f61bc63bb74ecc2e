"""A live rietx refinement in a given state, with shared sites tied: what every command starts from."""

from __future__ import annotations

from typing import Any

from axr_names import Catalog, build_catalog
from axr_private import BoundedRefinement, build_table, restored
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
    if state.mode != "lebail":
        _tie_displacements(ref, state)
    if tie_axial:
        geometry = state.instrument.geometry
        ratio = geometry.axial_hl.value / geometry.axial_sl.value if geometry.axial_sl.value > 0 else 1.0
        if ratio > 0 and (geometry.axial_sl.value > 0 or geometry.axial_hl.value == 0):
            ref.tie("instrument.geometry.axial_hl", "instrument.geometry.axial_sl", scale=ratio)
    return ref


def _tie_displacements(ref: Any, state: State) -> None:
    """Let the atoms of some phases share one displacement parameter: theirs keep their proportions."""
    for index, phase in enumerate(state.structure.phases):
        if phase.name not in state.equal_uiso:
            continue
        entries = {entry.path: entry for entry in build_table(ref).entries}
        own = [f"phases.{index}.atoms.{number}.biso" for number in range(len(phase.atoms))]
        free = [path for path in own if entries[path].tie is None and entries[path].value > 0.0]
        for path in free[1:]:
            ref.tie(path, free[0], scale=entries[path].value / entries[free[0]].value)


def _tie_site(ref: Any, base: str, group: tuple[int, ...], table: Any) -> None:
    """Tie the atoms of one site: equal displacement, equal coordinates, constant sum of occupancies."""
    entries = {entry.path: entry for entry in table.entries}
    first = group[0]
    for other in group[1:]:
        ref.tie(f"{base}.{other}.biso", f"{base}.{first}.biso")
        for number in range(3):
            target, source = f"{base}.{other}.dof.{number}", f"{base}.{first}.dof.{number}"
            if target in entries and source in entries and not entries[source].held and not entries[target].held:
                ref.tie(target, source)
    last, rest = group[-1], group[:-1]
    total = sum(entries[f"{base}.{number}.occ"].value for number in group)
    ref.tie(f"{base}.{last}.occ", {f"{base}.{number}.occ": -1.0 for number in rest}, offset=total)


def catalog_of(state: State, ref: Any) -> Catalog:
    """Return what can be released in a state."""
    return build_catalog(ref.structure, ref.instrument, build_table(ref))
