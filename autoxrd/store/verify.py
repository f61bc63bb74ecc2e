"""Can this record be trusted? Recompute every hash, chain, reference, file and decision of a job directory.

What a verification proves and what it cannot (a graph without secret can be rewritten as a whole, with all hashes
made anew) is said in docs/graph.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DatabaseError

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.domain.state import FitState
from autoxrd.errors import NotFound, StorageError
from autoxrd.primitives import canonical_json
from autoxrd.store.artifacts import ArtifactStore, is_artifact_id
from autoxrd.store.check_files import (
    check_artifacts,
    check_bundle,
    check_graph_json,
    check_manifest,
    check_report_json,
)
from autoxrd.store.check_rows import RawRows, check_columns, check_events, check_rows, claims_of, read_rows
from autoxrd.store.check_schema import check_schema
from autoxrd.store.claims import Claim, GraphClaims, check_claims
from autoxrd.store.export import export_rows, finish_of
from autoxrd.store.findings import Finding, VerifyReport, error
from autoxrd.store.models import EdgeRow, EventRow, JobRow, StateRow
from autoxrd.store.records import Finish
from autoxrd.store.rows import event_artifacts, recorded_form
from autoxrd.store.session import ARTIFACTS_NAME, DATABASE_NAME, recover, sqlite_engine

__all__ = ["Finding", "Judge", "VerifyReport", "verify"]

Judge = Callable[[Action, FitState, FitState, dict[str, Any]], Decision]
"""The gate: action, parent's state, candidate's state, the job's policy as recorded -> decision."""

UNREADABLE = frozenset({"row_type", "content_form", "job_rows"})
"""Findings after which the graph as a whole cannot be read from the rows."""


def verify(directory: Path, *, judge: Judge | None) -> VerifyReport:
    """Check a job directory; nothing in it is changed.

    Args:
        directory: as `autoxrd.store.graph.Graph` writes it, with or without the files of a report.
        judge: recomputes decisions; None leaves them unchecked (and the report says so).

    Raises:
        NotFound: ``job_not_found``, there is no graph to check.
    """
    database = directory / DATABASE_NAME
    if not database.is_file():
        raise NotFound("job_not_found", f"{directory} holds no {DATABASE_NAME}: give the directory of a job.")
    findings: list[Finding] = []
    rows = _read(database, findings)
    if rows is None:
        return VerifyReport(tuple(findings), 0, 0, 0, 0, None, finished=False, judged=None)
    findings += check_rows(rows)
    graph = None if UNREADABLE & {f.code for f in findings} else claims_of(rows)
    judged = None
    if graph is not None:
        findings += [*check_claims(graph), *check_columns(rows, graph), *check_events(rows, graph)]
        if judge is not None:
            tried = [claim for claim in graph.edges if _judgeable(claim)]
            judged = len(tried)
            for claim in tried:
                findings += _check_decision(claim, graph, judge)
    named, finish = _named(graph, rows), None
    findings += check_artifacts(ArtifactStore(directory / ARTIFACTS_NAME), named)
    if graph is not None:
        finish = _finish(rows)
        findings += _check_documents(directory, rows, graph, finish)
    findings += _check_lists(directory)
    return VerifyReport(
        tuple(findings),
        n_states=len(rows["states"]),
        n_edges=len(rows["edges"]),
        n_events=len(rows["events"]),
        n_artifacts=len(named),
        graph_root=None if graph is None else graph.graph_root,
        finished=finish is not None,
        judged=judged,
    )


def _read(database: Path, findings: list[Finding]) -> RawRows | None:
    recover(database)
    # Undecodable bytes are kept as surrogate escapes: a damaged text is a finding, not a crash.
    engine = sqlite_engine(database, read_only=True, text_factory=lambda raw: raw.decode("utf-8", "surrogateescape"))
    try:
        with engine.connect() as connection, connection.begin():
            findings += check_schema(connection)
            return read_rows(connection)
    except DatabaseError as failure:
        findings.append(error("database_damaged", "database", f"It cannot be read: {failure.orig}."))
        return None
    finally:
        engine.dispose()


def _judgeable(edge: Claim) -> bool:
    return edge.candidate is not None and isinstance(edge.content, dict) and edge.content.get("error") is None


def _check_decision(edge: Claim, graph: GraphClaims, judge: Judge) -> Iterator[Finding]:
    """Compare every field of a recorded decision with what the gate says of the recorded figures today."""
    try:
        before = FitState.model_validate(graph.by_id[str(edge.parent)].content)
        after = FitState.model_validate(graph.by_id[str(edge.candidate)].content)
        action = Action.model_validate(edge.content["action"])
        recorded = edge.content["decision"]
        policy = graph.job.content["policy"]
    except (KeyError, ValueError, TypeError):
        return  # said already by check_claims: there is nothing to judge
    try:
        expected = recorded_form(judge(action, before, after, policy)).model_dump(mode="json")
    except Exception as failure:  # figures that were tampered with may break any rule; the finding says which
        yield error("decision_not_recomputed", edge.row, f"The gate failed on the figures: {failure!r:.200}.")
        return
    differing = sorted(k for k in {*expected, *recorded} if not _same(expected.get(k), recorded.get(k)))
    if differing:
        yield error(
            "decision_differs",
            edge.row,
            f"Recorded as {edge.status}, but from the recorded figures the gate gives other {', '.join(differing)}.",
        )


def _same(one: object, other: object) -> bool:
    return canonical_json(one) == canonical_json(other)


def _named(graph: GraphClaims | None, rows: RawRows) -> set[str]:
    if graph is None:
        return set()
    claims = (graph.job, *graph.states, *graph.edges)
    named = [artifact for claim in claims for artifact in claim.artifacts]
    for row in rows["events"]:
        content = json.loads(row["content"])
        named += event_artifacts(content) if isinstance(content, dict) else []
    return {artifact for artifact in named if is_artifact_id(artifact)}


def _finish(rows: RawRows) -> Finish | None:
    try:
        return finish_of([EventRow(**row) for row in rows["events"]])
    except (KeyError, TypeError):
        return None  # said already by check_events


def _check_documents(directory: Path, rows: RawRows, graph: GraphClaims, finish: Finish | None) -> Iterator[Finding]:
    store = ArtifactStore(directory / ARTIFACTS_NAME)
    exported, report = directory / "graph.json", directory / "report.json"
    if exported.exists():
        expected: dict[str, Any] | None
        try:
            expected = export_rows(
                JobRow(**rows["jobs"][0]),
                [StateRow(**row) for row in rows["states"]],
                [EdgeRow(**row) for row in rows["edges"]],
                [EventRow(**row) for row in rows["events"]],
                size=store.size,
            )
        except (StorageError, KeyError, TypeError):
            expected = None  # said already: a missing artifact, an invalid event
        yield from check_graph_json(exported, expected)
    if report.exists():
        final = None if finish is None else finish.final_state
        yield from check_report_json(report, graph.graph_root, final, finished=finish is not None)


def _check_lists(directory: Path) -> Iterator[Finding]:
    manifest, bundle = directory / "manifest.json", directory / "bundle.zip"
    if manifest.exists():
        yield from check_manifest(manifest)
    if bundle.exists():
        yield from check_bundle(bundle)
