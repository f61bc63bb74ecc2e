"""How does a record become a row with its hashes? One function for each table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.domain.state import FitState
from autoxrd.errors import StorageError
from autoxrd.primitives import StateId, canonical_json, canonical_model
from autoxrd.store.hashing import artifact_list, chain_hash, row_hash, text_hash
from autoxrd.store.models import EdgeRow, EventRow, JobRow, Row, StateRow, column_values
from autoxrd.store.place import Link
from autoxrd.store.records import Attempt, JobRecord

__all__ = [
    "EdgeEnds",
    "attempt_of",
    "edge_content",
    "edge_row",
    "event_artifacts",
    "event_row",
    "job_row",
    "json_text",
    "recorded_form",
    "state_artifacts",
    "state_row",
]

ID_LENGTH = 16
JOB_SCHEMA = "autoxrd.job/1"

ModelT = TypeVar("ModelT", bound=BaseModel)
RowT = TypeVar("RowT", bound=Row)


def recorded_form(model: ModelT) -> ModelT:
    """Return a model as it will be read back: non-finite numbers become None, all else is equal.

    Gates should judge this form, so that a later `verify` sees the same figures.

    Raises:
        StorageError: ``not_recordable``, a field that must be a number is NaN or infinite, or a text is not UTF-8.
    """
    return _parsed(type(model), canonical_model(model))


def job_row(job: JobRecord, telemetry: str, job_id: str | None = None) -> JobRow:
    """Build the row of a job; its id is the start of its chain hash unless a service gives one."""
    content = canonical_json({"schema": JOB_SCHEMA, **job.model_dump(mode="json")})
    row = JobRow(content=content, telemetry=telemetry)
    row.job_id = job_id or ""
    sealed = _seal(row, "job", (), job.files.values())
    if job_id is None:
        sealed.job_id = sealed.chain_hash[: 2 * ID_LENGTH]
    return _sign(sealed)


def state_row(job: JobRow, parent: Link | None, state: FitState, *, ordinal: int, telemetry: str) -> StateRow:
    """Build the row of a state; it hangs on its parent state, the root on the job.

    Raises:
        StorageError: ``not_recordable``.
    """
    content = canonical_model(state)
    _parsed(FitState, content)
    row = StateRow(
        job_id=job.job_id,
        ordinal=ordinal,
        parent_id=None if parent is None else parent.id,
        stage=str(state.stage),
        content=content,
        telemetry=telemetry,
    )
    sealed = _seal(row, "state", (job.chain_hash if parent is None else parent.chain_hash,), state_artifacts(state))
    sealed.id = sealed.chain_hash[:ID_LENGTH]
    return _sign(sealed)


@dataclass(frozen=True, slots=True)
class EdgeEnds:
    """What an edge hangs on.

    Args:
        parent: the state tried from.
        candidate: the state that came out; None where nothing did.
        previous: chain hash of the edge before it, of the job for the first.
    """

    parent: Link
    candidate: Link | None
    previous: str


def edge_row(job: JobRow, ends: EdgeEnds, content: Mapping[str, Any], *, telemetry: str) -> tuple[EdgeRow, Attempt]:
    """Build the row of an attempt from `edge_content`, and the attempt as it will be read back.

    Raises:
        StorageError: ``not_recordable``.
    """
    text = json_text(content)
    action = _parsed(Action, canonical_json(content["action"]))
    decision = _parsed(Decision, canonical_json(content["decision"]))
    candidate = ends.candidate
    row = EdgeRow(
        job_id=job.job_id,
        ordinal=int(content["ordinal"]),
        parent_id=ends.parent.id,
        candidate_id=None if candidate is None else candidate.id,
        status="accepted" if decision.accepted else "rejected",
        kind=str(action.kind),
        planner=str(content["planner"].get("name", "")),
        content=text,
        telemetry=telemetry,
    )
    parents = [ends.parent.chain_hash, ends.previous]
    if candidate is not None:
        parents.append(candidate.chain_hash)
    sealed = _seal(row, "edge", parents, content["files"].values())
    sealed.id = sealed.chain_hash[:ID_LENGTH]
    return _sign(sealed), attempt_of(sealed, action, decision)


def attempt_of(row: EdgeRow, action: Action | None = None, decision: Decision | None = None) -> Attempt:
    """Read an edge's row; action and decision where they were read from it already."""
    content = json.loads(row.content)
    return Attempt(
        id=row.id,
        ordinal=row.ordinal,
        parent=StateId(row.parent_id),
        action=action or Action.model_validate(content["action"]),
        planner=content["planner"],
        preflight=content["preflight"],
        decision=decision or Decision.model_validate(content["decision"]),
        candidate=None if row.candidate_id is None else StateId(row.candidate_id),
        error=content["error"],
        files=content["files"],
        content_hash=row.content_hash,
        chain_hash=row.chain_hash,
        telemetry=json.loads(row.telemetry),
    )


def edge_content(
    ordinal: int,
    parent: str,
    candidate: str | None,
    *,
    action: Action,
    decision: Decision,
    planner: Mapping[str, Any],
    preflight: Mapping[str, Any] | None,
    error: Mapping[str, Any] | None,
    files: Mapping[str, str],
) -> dict[str, Any]:
    """Return the content of an edge as JSON types."""
    return {
        "ordinal": ordinal,
        "parent": parent,
        "candidate": candidate,
        "action": action.model_dump(mode="json"),
        "decision": decision.model_dump(mode="json"),
        "planner": dict(planner),
        "preflight": None if preflight is None else dict(preflight),
        "error": None if error is None else dict(error),
        "files": dict(files),
    }


def event_row(job: JobRow, ordinal: int, previous: str, content: Mapping[str, Any], *, telemetry: str) -> EventRow:
    """Build the row of an event; it names the artifacts in its data's ``files``.

    Args:
        job: whose event.
        ordinal: its place.
        previous: chain hash of the event before it, of the job for the first.
        content: with its ``kind``.
        telemetry: times, as JSON.
    """
    row = EventRow(
        job_id=job.job_id, ordinal=ordinal, kind=content["kind"], content=json_text(content), telemetry=telemetry
    )
    return _sign(_seal(row, "event", (previous,), event_artifacts(content)))


def json_text(obj: object) -> str:
    """Return canonical JSON.

    Raises:
        StorageError: ``not_recordable``, something in it is no JSON value.
    """
    try:
        return canonical_json(obj)
    except TypeError as error:
        raise StorageError("not_recordable", f"This cannot be recorded as JSON: {error}.") from error


def state_artifacts(state: FitState) -> list[str]:
    """Return the artifacts that a state names."""
    return artifact_list([state.snapshot, state.arrays, *state.files.values()])


def event_artifacts(content: Mapping[str, Any]) -> list[str]:
    """Return the artifacts that an event names; none where its data is of another form."""
    data = content.get("data")
    files = data.get("files") if isinstance(data, dict) else None
    named = files.values() if isinstance(files, dict) else ()
    return artifact_list([artifact for artifact in named if isinstance(artifact, str)])


def _seal(row: RowT, kind: str, parents: Sequence[str], artifacts: Iterable[str]) -> RowT:
    named = artifact_list(artifacts)
    try:
        row.content_hash = text_hash(row.content)
    except UnicodeEncodeError as error:
        raise StorageError(
            "not_recordable", f"A text to be recorded is not valid Unicode ({error.reason}): clean it first."
        ) from error
    row.artifacts = json.dumps(named, separators=(",", ":"))
    row.chain_hash = chain_hash(kind, row.content_hash, parents, named)
    return row


def _sign(row: RowT) -> RowT:
    row.row_hash = row_hash(row.__tablename__, column_values(row))
    return row


def _parsed(model: type[ModelT], text: str) -> ModelT:
    try:
        return model.model_validate_json(text)
    except (ValidationError, UnicodeEncodeError) as error:
        places = (
            [".".join(map(str, e["loc"])) for e in error.errors()] if isinstance(error, ValidationError) else ["text"]
        )
        raise StorageError(
            "not_recordable",
            f"A {model.__name__} cannot be recorded: {', '.join(places[:5])} is not finite or not valid text.",
            context={"fields": places},
        ) from error
