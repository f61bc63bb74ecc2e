"""Is a given graph.json consistent in itself? Read as a strict schema, then checked like rows, without a database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from autoxrd.store.claims import Claim, GraphClaims, check_claims
from autoxrd.store.findings import Finding, error, mismatch

__all__ = ["GraphDocument", "verify_export"]

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
StateKey = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ExportJob(_Strict):
    """The specification with its hashes."""

    content: dict[str, Any]
    content_hash: Digest
    chain_hash: Digest
    artifacts: list[Digest]


class ExportNode(ExportJob):
    """A state with its hashes."""

    id: StateKey
    ordinal: int
    parent: StateKey | None
    status: Literal["root", "accepted", "rejected"]


class ExportEdge(ExportJob):
    """An attempt with its hashes."""

    id: StateKey
    ordinal: int
    parent: StateKey
    candidate: StateKey | None
    status: Literal["accepted", "rejected"]


class ExportArtifact(_Strict):
    """A file that some content names."""

    sha256: Digest
    bytes: Annotated[int, Field(ge=0)]


class ExportFinish(_Strict):
    """How the job ended."""

    final_state: StateKey | None
    verdict: dict[str, Any]


class GraphDocument(_Strict):
    """graph.json, version 1."""

    schema_: Annotated[Literal["autoxrd.graph/1"], Field(alias="schema")]
    graph_root: Digest
    job: ExportJob
    nodes: list[ExportNode]
    edges: list[ExportEdge]
    artifacts: list[ExportArtifact]
    finish: ExportFinish | None


def verify_export(document: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Check a graph.json against itself: form, hashes, chains, references, statuses, list of artifacts, root.

    It cannot know that a whole document was made anew with hashes that fit: compare its ``graph_root`` with one
    from another place for that.

    Returns:
        Everything found; empty where it holds together.
    """
    try:
        parsed = GraphDocument.model_validate(document)
    except ValidationError as failure:
        return tuple(
            error("document_form", "graph.json", f"{'.'.join(map(str, e['loc']))}: {e['msg']}.")
            for e in failure.errors()[:20]
        )
    graph = GraphClaims(
        job=_claim("job", parsed.job),
        states=[_claim("state", n) for n in parsed.nodes],
        edges=[_claim("edge", e) for e in parsed.edges],
    )
    findings = list(check_claims(graph))
    findings += mismatch("graph_root", "graph.json", "graph_root", parsed.graph_root, graph.graph_root)
    accepted = graph.accepted()
    for state in graph.states:
        status = "root" if state.parent is None else "accepted" if state.id in accepted else "rejected"
        findings += mismatch("status_differs", state.row, "the status", state.status, status)
    named = sorted({a for claim in (graph.job, *graph.states, *graph.edges) for a in claim.artifacts})
    findings += mismatch(
        "artifacts_differ", "graph.json", "the list of artifacts", [a.sha256 for a in parsed.artifacts], named
    )
    final = None if parsed.finish is None else parsed.finish.final_state
    if final is not None and final not in accepted | {s.id for s in graph.states[:1]}:
        findings.append(error("final_state", "graph.json", f"The final state {final} is no accepted state."))
    return tuple(findings)


def _claim(kind: str, entry: ExportJob) -> Claim:
    return Claim(
        kind=kind,
        content=entry.content,
        content_hash=entry.content_hash,
        chain_hash=entry.chain_hash,
        artifacts=entry.artifacts,
        id=getattr(entry, "id", ""),
        ordinal=getattr(entry, "ordinal", 0),
        parent=getattr(entry, "parent", None),
        candidate=getattr(entry, "candidate", None),
        status=getattr(entry, "status", None),
    )
