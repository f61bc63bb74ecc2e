"""What is in graph.json, and is a given graph.json consistent in itself?

The document holds every content and chain hash of states and edges but no clock and no event of the log other than
how the job ended, so that two runs of one job, interrupted or not, give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any

from autoxrd.primitives import StateId
from autoxrd.store.hashing import graph_root
from autoxrd.store.models import EdgeRow, EventRow, JobRow, StateRow
from autoxrd.store.records import EventKind, Finish

__all__ = ["GRAPH_SCHEMA", "export_rows", "finish_of"]

GRAPH_SCHEMA = "autoxrd.graph/1"


def finish_of(events: Sequence[EventRow]) -> Finish | None:
    """Return how the log says that the job ended; None while it is open, or reopened by ``resumed``."""
    for row in reversed(events):
        if row.kind == EventKind.RESUMED:
            return None
        if row.kind == EventKind.FINISHED:
            content = json.loads(row.content)
            final = content["data"]["final_state"]
            return Finish(None if final is None else StateId(final), content["data"]["verdict"], content["graph_root"])
    return None


def export_rows(
    job: JobRow,
    states: Sequence[StateRow],
    edges: Sequence[EdgeRow],
    events: Sequence[EventRow],
    *,
    size: Callable[[str], int],
) -> dict[str, Any]:
    """Build the document from rows in ordinal order.

    Args:
        job: the job's row.
        states: all of its states.
        edges: all of its edges.
        events: all of its log.
        size: gives the length of an artifact in bytes.
    """
    finish = finish_of(events)
    named = sorted({a for row in (job, *states, *edges) for a in json.loads(row.artifacts)})
    accepted = {edge.candidate_id for edge in edges if edge.status == "accepted"}
    return {
        "schema": GRAPH_SCHEMA,
        "graph_root": graph_root(job.chain_hash, [s.chain_hash for s in states], [e.chain_hash for e in edges]),
        "job": _hashes(job),
        "nodes": [_node(row, accepted) for row in states],
        "edges": [_edge(row) for row in edges],
        "artifacts": [{"sha256": artifact, "bytes": size(artifact)} for artifact in named],
        "finish": None if finish is None else {"final_state": finish.final_state, "verdict": dict(finish.verdict)},
    }


def _node(row: StateRow, accepted: Collection[str | None]) -> dict[str, Any]:
    status = "root" if row.parent_id is None else "accepted" if row.id in accepted else "rejected"
    return {"id": row.id, "ordinal": row.ordinal, "parent": row.parent_id, "status": status, **_hashes(row)}


def _edge(row: EdgeRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "ordinal": row.ordinal,
        "parent": row.parent_id,
        "candidate": row.candidate_id,
        "status": row.status,
        **_hashes(row),
    }


def _hashes(row: JobRow | StateRow | EdgeRow) -> dict[str, Any]:
    return {
        "content": json.loads(row.content),
        "content_hash": row.content_hash,
        "chain_hash": row.chain_hash,
        "artifacts": json.loads(row.artifacts),
    }
