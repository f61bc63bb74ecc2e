"""Does a graph hold together? Checks on contents, hashes, order and references, for rows and for graph.json alike.

Both are first brought to the same claims: what a node or edge says of itself. Every check then compares a claim with
what follows from its content and from the claims it hangs on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.domain.state import FitState
from autoxrd.primitives import canonical_json
from autoxrd.store.artifacts import is_artifact_id
from autoxrd.store.findings import Finding, error, mismatch
from autoxrd.store.hashing import artifact_list, chain_hash, graph_root, text_hash
from autoxrd.store.records import JobRecord
from autoxrd.store.rows import ID_LENGTH, JOB_SCHEMA, state_artifacts

__all__ = ["Claim", "GraphClaims", "check_claims"]

ModelT = TypeVar("ModelT", bound=BaseModel)

EDGE_KEYS = frozenset(
    {"ordinal", "parent", "candidate", "action", "decision", "planner", "preflight", "error", "files"}
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What one row or entry says of itself.

    Args:
        kind: ``job``, ``state`` or ``edge``.
        content: parsed JSON.
        candidate, status: of edges; ``status`` also of states in graph.json.
    """

    kind: str
    content: Any
    content_hash: str
    chain_hash: str
    artifacts: Sequence[str]
    id: str = ""
    ordinal: int = 0
    parent: str | None = None
    candidate: str | None = None
    status: str | None = None

    @property
    def row(self) -> str:
        """Name for findings."""
        return self.kind if self.kind == "job" else f"{self.kind}s {self.ordinal}"


@dataclass(frozen=True, slots=True)
class GraphClaims:
    """A whole graph as it describes itself; states and edges sorted by ordinal."""

    job: Claim
    states: Sequence[Claim]
    edges: Sequence[Claim]
    by_id: dict[str, Claim] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {s.id: s for s in self.states})

    @property
    def graph_root(self) -> str:
        """Root recomputed from the recorded chain hashes."""
        return self.root_at(len(self.states), len(self.edges))

    def root_at(self, n_states: int, n_edges: int) -> str:
        """Root when only the first states and edges were there."""
        return graph_root(
            self.job.chain_hash,
            [s.chain_hash for s in self.states[:n_states]],
            [e.chain_hash for e in self.edges[:n_edges]],
        )

    def accepted(self) -> frozenset[str]:
        """Ids of the states that an accepted edge leads to."""
        return frozenset(e.candidate for e in self.edges if e.status == "accepted" and e.candidate is not None)


def check_claims(graph: GraphClaims) -> Iterator[Finding]:
    """Check everything that follows from the graph alone."""
    for claim in (graph.job, *graph.states, *graph.edges):
        yield from mismatch("content_hash", claim.row, "content_hash", claim.content_hash, _content_hash(claim))
        for artifact in claim.artifacts:
            if not is_artifact_id(artifact):
                yield error("artifact_id_invalid", claim.row, f"{artifact!r:.80} is no artifact id.")
    yield from _check_job(graph.job)
    yield from _check_states(graph)
    yield from _check_edges(graph)


def _check_chain(claim: Claim, parents: Sequence[str], artifacts: Iterable[str]) -> Iterator[Finding]:
    yield from mismatch(
        "artifacts_differ", claim.row, "the list of artifacts", list(claim.artifacts), artifact_list(artifacts)
    )
    if not all(is_artifact_id(artifact) for artifact in claim.artifacts):
        return
    expected = chain_hash(claim.kind, claim.content_hash, parents, claim.artifacts)
    yield from mismatch("chain_hash", claim.row, "chain_hash", claim.chain_hash, expected)
    if claim.kind != "job":
        yield from mismatch("id_differs", claim.row, "id", claim.id, expected[:ID_LENGTH])


def _content_hash(claim: Claim) -> str:
    try:
        return text_hash(canonical_json(claim.content))
    except UnicodeEncodeError:
        return "none: the content is not valid Unicode"


def _check_job(job: Claim) -> Iterator[Finding]:
    content = dict(job.content) if isinstance(job.content, dict) else {}
    yield from mismatch("content_invalid", job.row, "the schema", content.pop("schema", None), JOB_SCHEMA)
    record, findings = _parse(JobRecord, content, job.row)
    yield from findings
    if record is not None:
        yield from _check_chain(job, (), record.files.values())


def _check_states(graph: GraphClaims) -> Iterator[Finding]:
    reached = {edge.candidate for edge in graph.edges}
    for position, claim in enumerate(graph.states):
        yield from mismatch("ordinal_gap", claim.row, "the ordinal", claim.ordinal, position)
        if (claim.parent is None) != (position == 0):
            yield error("root_differs", claim.row, "The first state, and only it, is the root.")
        if position and claim.id not in reached:
            yield error("state_orphan", claim.row, f"No attempt led to state {claim.id}.")
        parent = graph.job if claim.parent is None else graph.by_id.get(claim.parent)
        if parent is None or (parent.kind == "state" and parent.ordinal >= claim.ordinal):
            yield error("reference_dangling", claim.row, f"Its parent {claim.parent} is not an earlier state.")
            continue
        state, findings = _parse(FitState, claim.content, claim.row)
        yield from findings
        if state is not None:
            yield from _check_chain(claim, (parent.chain_hash,), state_artifacts(state))


def _check_edges(graph: GraphClaims) -> Iterator[Finding]:
    open_states = {s.id for s in graph.states[:1]}
    previous = graph.job
    for position, claim in enumerate(graph.edges, start=1):
        yield from mismatch("ordinal_gap", claim.row, "the ordinal", claim.ordinal, position)
        yield from _check_edge(graph, claim, previous, open_states)
        if claim.status == "accepted" and claim.candidate is not None:
            open_states.add(claim.candidate)
        previous = claim


def _check_edge(graph: GraphClaims, claim: Claim, previous: Claim, open_states: set[str]) -> Iterator[Finding]:
    content = claim.content if isinstance(claim.content, dict) else {}
    parent = graph.by_id.get(claim.parent or "")
    candidate = None if claim.candidate is None else graph.by_id.get(claim.candidate)
    if parent is None or (claim.candidate is not None and candidate is None):
        yield error("reference_dangling", claim.row, f"State {claim.parent} or {claim.candidate} is not there.")
        return
    if candidate is not None and candidate.parent != parent.id:
        yield error("reference_differs", claim.row, f"Candidate {candidate.id} was not computed from {parent.id}.")
    if parent.id not in open_states:
        yield error("parent_rejected", claim.row, f"State {parent.id} had not been accepted when it was gone on from.")
    if frozenset(content) != EDGE_KEYS:
        yield error("content_invalid", claim.row, f"The content has the keys {sorted(content)}.")
        return
    yield from _check_edge_content(claim, parent, candidate)
    files = content["files"]
    if not (isinstance(files, dict) and all(isinstance(artifact, str) for artifact in files.values())):
        yield error("content_invalid", claim.row, "The list of files is no list of artifacts.")
        return
    parents = [parent.chain_hash, previous.chain_hash, *([] if candidate is None else [candidate.chain_hash])]
    yield from _check_chain(claim, parents, files.values())


def _check_edge_content(claim: Claim, parent: Claim, candidate: Claim | None) -> Iterator[Finding]:
    for name, recorded in (("ordinal", claim.ordinal), ("parent", claim.parent), ("candidate", claim.candidate)):
        yield from mismatch("column_differs", claim.row, name, recorded, claim.content[name])
    action, findings = _parse(Action, claim.content["action"], claim.row)
    yield from findings
    decision, findings = _parse(Decision, claim.content["decision"], claim.row)
    yield from findings
    if action is None or decision is None:
        return
    status = "accepted" if decision.accepted else "rejected"
    yield from mismatch("column_differs", claim.row, "status", claim.status, status)
    if decision.accepted and (candidate is None or action.parent != parent.id):
        yield error("accepted_without_candidate", claim.row, "Accepted, but without the state or from another parent.")


def _parse(model: type[ModelT], content: object, row: str) -> tuple[ModelT | None, list[Finding]]:
    try:
        return model.model_validate(content), []
    except ValidationError as failure:
        first = failure.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return None, [error("content_invalid", row, f"{model.__name__} {where}: {first['msg']}.")]
