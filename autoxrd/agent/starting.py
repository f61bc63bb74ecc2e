"""With which values does a job start? From its structures, or from the final model of another job, as recorded.

A start that is taken over is input like a CIF: an artifact named by its hash in the job's record, so that a replay
begins with the same numbers. It says what is free too. Nothing of it is trusted: the job's first step is the joint
cycle of all that is free, judged by the gates, and cells are held against the structures as given, not the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from autoxrd.domain.action import Bound
from autoxrd.domain.state import FitState, ParameterValue
from autoxrd.domain.structure import CrystalStructure
from autoxrd.engines.protocol import Edit, EngineCommand
from autoxrd.primitives import canonical_json

__all__ = ["Start", "decode_start", "encode_start", "root_command", "start_from"]

_OWN = ("background.", "phase.")
"""Not taken over as single values: a pattern has its own background, and phases come with their structures."""
_OF_PHASE = frozenset(
    {"size", "strain", "size_gauss", "strain_gauss", "preferred_orientation", "extinction"},
)
"""What of a phase is no part of its structure. Scale factors are found anew: counting times differ."""


@dataclass(frozen=True, slots=True)
class Start:
    """A model to begin with.

    Args:
        structures: refined, by the names that they have in the job.
        edits: what turns a model of these structures into the start: textures, ties, background terms, values.
        released: selectors that are free from the first step on.
        bounds: limits that hold.
        source: where it comes from: ``graph_root`` and ``state`` of the other job, ``pattern_sha256`` of its data.
    """

    structures: tuple[CrystalStructure, ...]
    edits: tuple[Edit, ...] = ()
    released: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()
    source: Mapping[str, str] = field(default_factory=dict)


_START: TypeAdapter[Start] = TypeAdapter(Start)


def encode_start(start: Start) -> bytes:
    """Return the bytes of a start, equal for equal starts."""
    return canonical_json(_START.dump_python(start, mode="json")).encode()


def decode_start(data: bytes) -> Start:
    """Read a start back."""
    return _START.validate_json(data)


def start_from(
    state: FitState,
    structures: tuple[CrystalStructure, ...],
    shapes: tuple[Edit, ...],
    *,
    kept: tuple[str, ...],
    held: frozenset[str] = frozenset(),
    source: Mapping[str, str],
) -> Start:
    """Make a start of the final state of a job.

    Args:
        state: the state.
        structures: refined, of its phases.
        shapes: the changes of the model's form on the way to it, in order: textures, ties, background terms.
        kept: the phases of the state that the new job begins with.
        held: parameters that were set or taken out of the model and are not free now: their values matter too.
        source: see `Start`.
    """
    edits = [edit for shape in shapes if (edit := _of_kept(shape, kept)) is not None]
    edits += [Edit("value", {"selector": p.name, "value": p.value}) for p in _values(state, kept, held)]
    free = [s for s in state.released if not s.startswith("phase.") or s.split(".")[1] in kept]
    return Start(
        structures=tuple(s for s in structures if s.name in kept),
        edits=tuple(edits),
        released=tuple(dict.fromkeys(free)),
        bounds=tuple(
            b for b in state.bounds if not b.selector.startswith("phase.") or b.selector.split(".")[1] in kept
        ),
        source=dict(source),
    )


def _of_kept(edit: Edit, kept: tuple[str, ...]) -> Edit | None:
    """Return an edit less the phases that are not taken over, None where nothing is left of it."""
    if edit.values.get("phase", kept[0]) not in kept:
        return None
    phases = edit.values.get("phases")
    if not isinstance(phases, list | tuple):
        return edit
    left = [str(name) for name in phases if name in kept]
    return Edit(edit.kind, {**edit.values, "phases": left}) if left else None


def _values(state: FitState, kept: tuple[str, ...], held: frozenset[str]) -> list[ParameterValue]:
    """Return the single values that are taken over: what the fit determined of instrument, specimen and widths."""
    found = []
    for parameter in state.parameters:
        if parameter.derived or not (parameter.released or parameter.name in held):
            continue
        parts = parameter.name.split(".")
        of_phase = parts[0] == "phase" and len(parts) == 3 and parts[1] in kept and parts[2] in _OF_PHASE
        if of_phase or not parameter.name.startswith(_OWN):
            found.append(parameter)
    return found


def root_command(start: Start | None, mode: str = "rietveld") -> EngineCommand:
    """Return the command that makes a job's root state of the prepared model; it evaluates and refines nothing."""
    if start is None:
        return EngineCommand(cycles=0, mode=mode)
    return EngineCommand(cycles=0, released=start.released, bounds=start.bounds, edits=start.edits, mode=mode)
