"""Are the rows of the database what was written? Raw values first, then hashes, then what the columns repeat."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Integer, select

from autoxrd.primitives import canonical_json
from autoxrd.store.claims import Claim, GraphClaims
from autoxrd.store.findings import Finding, error, mismatch, note
from autoxrd.store.hashing import chain_hash, row_hash, text_hash
from autoxrd.store.models import EdgeRow, EventRow, JobRow, Row, StateRow
from autoxrd.store.records import EventKind
from autoxrd.store.rows import event_artifacts

__all__ = ["RawRows", "check_events", "check_rows", "claims_of", "read_rows"]

TABLES: tuple[type[Row], ...] = (JobRow, StateRow, EdgeRow, EventRow)
JSON_COLUMNS = ("content", "artifacts", "telemetry")
EVENT_KEYS = frozenset({"kind", "data", "n_states", "n_edges", "graph_root"})

RawRow = Mapping[str, Any]
RawRows = dict[str, list[RawRow]]
"""Rows by table, as the database gives them."""


@dataclass(frozen=True, slots=True)
class SoundRows:
    """The rows whose own hash and form hold, with their JSON parsed."""

    rows: RawRows
    parsed: dict[str, list[dict[str, Any]]]


def read_rows(connection: Connection) -> RawRows:
    """Read all rows of all tables, ordered."""
    return {
        t.__tablename__: [
            dict(row) for row in connection.execute(select(t.__table__).order_by(*_order(t))).mappings().all()
        ]
        for t in TABLES
    }


def check_rows(rows: RawRows) -> Iterator[Finding]:
    """Check each row by itself: types, row hash, content hash, canonical form, columns that repeat the content."""
    yield from _check_job_ids(rows)
    for table in TABLES:
        name = table.__tablename__
        for position, row in enumerate(rows[name]):
            label = f"{name} {row.get('ordinal', position)}"
            yield from _check_types(table, row, label)
            values = {key: value for key, value in row.items() if key != "row_hash"}
            yield from mismatch("row_hash", label, "row_hash", row["row_hash"], row_hash(name, values))
            for column in JSON_COLUMNS:
                yield from _check_json(row[column], column, label)
            if isinstance(row["content"], str):
                yield from mismatch(
                    "content_hash", label, "content_hash", row["content_hash"], text_hash(row["content"])
                )


def claims_of(rows: RawRows) -> GraphClaims | None:
    """Bring sound rows to claims; None where their JSON cannot be read (`check_rows` has said so)."""
    try:
        job, states, edges = (
            [_claim(kind, row) for row in rows[name]]
            for kind, name in (("job", "jobs"), ("state", "states"), ("edge", "edges"))
        )
    except (ValueError, TypeError, RecursionError):
        return None
    return GraphClaims(job=job[0], states=states, edges=edges) if len(job) == 1 else None


def check_columns(rows: RawRows, graph: GraphClaims) -> Iterator[Finding]:
    """Check the columns that repeat a part of the content for queries."""
    for row, claim in zip(rows["states"], graph.states, strict=True):
        yield from mismatch("column_differs", claim.row, "stage", row["stage"], _get(claim.content, "stage"))
    for row, claim in zip(rows["edges"], graph.edges, strict=True):
        yield from mismatch("column_differs", claim.row, "kind", row["kind"], _get(claim.content, "action", "kind"))
        planner = _get(claim.content, "planner", "name") or ""
        yield from mismatch("column_differs", claim.row, "planner", row["planner"], planner)


def check_events(rows: RawRows, graph: GraphClaims) -> Iterator[Finding]:
    """Check the log: its chain, and that the graph still has all that it had at each entry."""
    previous = graph.job.chain_hash
    finish: Mapping[str, Any] | None = None
    for position, row in enumerate(rows["events"], start=1):
        label = f"events {position}"
        content = json.loads(row["content"])
        yield from mismatch("ordinal_gap", label, "the ordinal", row["ordinal"], position)
        named = event_artifacts(content) if isinstance(content, dict) else []
        yield from mismatch("artifacts_differ", label, "the list of artifacts", json.loads(row["artifacts"]), named)
        expected = chain_hash("event", row["content_hash"], (previous,), named)
        yield from mismatch("chain_hash", label, "chain_hash", row["chain_hash"], expected)
        previous = row["chain_hash"]
        if not isinstance(content, dict) or frozenset(content) != EVENT_KEYS or row["kind"] not in set(EventKind):
            yield error("event_invalid", label, "This is no entry that AutoXRD writes.")
            continue
        yield from mismatch("column_differs", label, "kind", row["kind"], content["kind"])
        yield from _check_position(content, graph, label)
        if row["kind"] == EventKind.FINISHED:
            finish = content
        elif row["kind"] == EventKind.RESUMED:
            finish = None
    yield from _check_end(finish, graph)


def _check_position(content: Mapping[str, Any], graph: GraphClaims, label: str) -> Iterator[Finding]:
    n_states, n_edges = content["n_states"], content["n_edges"]
    if not (isinstance(n_states, int) and isinstance(n_edges, int)):
        yield error("event_invalid", label, "The counts are no integers.")
    elif n_states > len(graph.states) or n_edges > len(graph.edges):
        yield error(
            "rows_missing",
            label,
            f"There were {n_states} states and {n_edges} edges, now there are {len(graph.states)} and "
            f"{len(graph.edges)}.",
        )
    else:
        yield from mismatch("graph_root", label, "graph_root", content["graph_root"], graph.root_at(n_states, n_edges))


def _check_end(finish: Mapping[str, Any] | None, graph: GraphClaims) -> Iterator[Finding]:
    if finish is None:
        yield note(
            "job_open",
            "events",
            "The job is not finished: steps removed since the last entry of the log would leave no trace.",
        )
        return
    counts = [finish["n_states"], finish["n_edges"]]
    yield from mismatch("rows_added", "events", "the size", [len(graph.states), len(graph.edges)], counts)
    data = finish["data"] if isinstance(finish["data"], dict) else {}
    if frozenset(data) != {"final_state", "verdict"}:
        yield error("event_invalid", "events", "The end of the job has no final state or verdict.")
        return
    final = data["final_state"]
    if final is not None and final not in graph.accepted() | {s.id for s in graph.states[:1]}:
        yield error("final_state", "events", f"The final state {final!s:.40} is no accepted state.")


def _check_job_ids(rows: RawRows) -> Iterator[Finding]:
    jobs = rows["jobs"]
    if len(jobs) != 1:
        yield error("job_rows", "jobs", f"A job directory has one job, this one has {len(jobs)}.")
        return
    for name, entries in rows.items():
        for position, row in enumerate(entries):
            yield from mismatch("job_id", f"{name} {position}", "job_id", row["job_id"], jobs[0]["job_id"])


def _check_types(table: type[Row], row: RawRow, label: str) -> Iterator[Finding]:
    for column in table.__table__.columns:
        value = row[column.key]
        kind = int if isinstance(column.type, Integer) else str
        if not (type(value) is kind or (value is None and column.nullable)):
            yield error("row_type", label, f"{column.key} holds a {type(value).__name__}.")


def _check_json(text: object, column: str, label: str) -> Iterator[Finding]:
    try:
        canonical = canonical_json(json.loads(str(text)))
    except (ValueError, RecursionError):
        yield error("content_form", label, f"{column} is no JSON.")
        return
    if canonical != text:
        yield error("content_form", label, f"{column} is not in canonical form.")


def _claim(kind: str, row: RawRow) -> Claim:
    artifacts: Sequence[str] = json.loads(row["artifacts"])
    if not isinstance(artifacts, list):
        raise TypeError("artifacts")
    return Claim(
        kind=kind,
        content=json.loads(row["content"]),
        content_hash=row["content_hash"],
        chain_hash=row["chain_hash"],
        artifacts=artifacts,
        id=row.get("id", ""),
        ordinal=row.get("ordinal", 0),
        parent=row.get("parent_id"),
        candidate=row.get("candidate_id"),
        status=row.get("status"),
    )


def _get(content: object, *keys: str) -> object:
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _order(table: type[Row]) -> list[Any]:
    columns = table.__table__.columns
    return [columns["ordinal"] if "ordinal" in columns else columns["job_id"]]
