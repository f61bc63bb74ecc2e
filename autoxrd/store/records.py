"""What goes into a graph and what comes out of it, as frozen values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.domain.state import FitState
from autoxrd.primitives import StateId, canonical_json

__all__ = [
    "Attempt",
    "Event",
    "EventKind",
    "Finish",
    "HistogramRecord",
    "JobRecord",
    "JsonObject",
    "Node",
    "NodeStatus",
]


def _as_json(value: dict[str, Any]) -> dict[str, Any]:
    """Bring a mapping to what its JSON text will say: tuples as lists, enums as strings, non-finite as null."""
    try:
        loaded: dict[str, Any] = json.loads(canonical_json(value))
    except TypeError as error:
        raise ValueError(f"not a JSON value: {error}") from error
    return loaded


JsonObject = Annotated[dict[str, Any], AfterValidator(_as_json)]
"""A mapping of JSON values; `dataclasses.asdict` of the domain's dataclasses (without arrays) fits."""


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HistogramRecord(_Frozen):
    """One pattern with the instrument that measured it."""

    name: str
    pattern: JsonObject
    """Format, title, source name and hash, number of points, axis, ...: everything but the arrays."""
    instrument: JsonObject


class JobRecord(_Frozen):
    """The specification of a job: enough to run it again. No clock, host or path of this machine in it."""

    histograms: Annotated[tuple[HistogramRecord, ...], Field(min_length=1)]
    structures: tuple[JsonObject, ...]
    settings: JsonObject
    """Engine and controller settings (ranges, cycles, budgets, ...)."""
    engine: JsonObject
    """At least ``name`` and ``version``."""
    planner: JsonObject
    """At least ``name``."""
    policy: JsonObject
    """Full text of the gate's policy."""
    files: dict[str, str] = Field(default_factory=dict)
    """Artifact ids by role, e.g. ``pattern``, ``structure.corundum``, ``instrument``: every artifact named above."""


class NodeStatus(StrEnum):
    """What became of a state."""

    ROOT = "root"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


class EventKind(StrEnum):
    """What can happen to a job as a whole."""

    STARTED = "started"
    INTERRUPTED = "interrupted"
    RESUMED = "resumed"
    FINISHED = "finished"
    NOTE = "note"
    EXCHANGE = "exchange"
    """A question to a language model and what became of it; the content lies in an artifact."""
    FORFEIT = "forfeit"
    """A step that brought no action."""


@dataclass(frozen=True, slots=True)
class Node:
    """A state in its graph.

    Args:
        status: root, or accepted where at least one accepted attempt led to it, else rejected.
        parent: the state it was computed from; None for the root.
        telemetry: times and durations; part of no content or chain hash.
    """

    id: StateId
    ordinal: int
    parent: StateId | None
    status: NodeStatus
    state: FitState
    content_hash: str
    chain_hash: str
    telemetry: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Attempt:
    """An edge: what was tried from a state and what came of it.

    Args:
        ordinal: 1, 2, ... in the order of recording.
        candidate: the state that came out; None where the preflight refused or the engine failed.
        preflight: what the preflight said, as recorded.
        error: code, detail and context of the engine's failure, else None.
        files: further artifacts by name (logs, a planner's transcript).
    """

    id: str
    ordinal: int
    parent: StateId
    action: Action
    planner: Mapping[str, Any]
    preflight: Mapping[str, Any] | None
    decision: Decision
    candidate: StateId | None
    error: Mapping[str, Any] | None
    files: Mapping[str, str]
    content_hash: str
    chain_hash: str
    telemetry: Mapping[str, Any]

    @property
    def accepted(self) -> bool:
        """Whether the gate accepted it."""
        return self.decision.accepted


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of the job's log, with the size and root of the graph at that moment."""

    ordinal: int
    kind: EventKind
    data: Mapping[str, Any]
    n_states: int
    n_edges: int
    graph_root: str
    telemetry: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finish:
    """How a job ended."""

    final_state: StateId | None
    verdict: Mapping[str, Any]
    graph_root: str
