"""How does a record become a row with its hashes? One function for each table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from autoxrd.domain.action import Action
from autoxrd.domain.decision import Decision
from autoxrd.domain.state import FitState
from autoxrd.errors import StorageError
from autoxrd.primitives import canonical_json
from autoxrd.store.hashing import artifact_list, chain_hash, row_hash, text_hash
from autoxrd.store.models import EdgeRow, EventRow, JobRow, Row, StateRow, column_values
from autoxrd.store.records import JobRecord

__all__ = [
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
    return _parsed(type(model), canonical_json(model.model_dump(mode="json")))


def job_row(job: JobRecord, telemetry: str, job_id: str | None = None) -> JobRow:
    """Build the row of a job; its id is the start of its chain hash unless a service gives one."""
    content = canonical_json({"schema": JOB_SCHEMA, **job.model_dump(mode="json")})
    row = JobRow(content=content, telemetry=telemetry)
    row.job_id = job_id or ""
    sealed = _seal(row, "job", (), job.files.values())
    if job_id is None:
        sealed.job_id = sealed.chain_hash[: 2 * ID_LENGTH]
    return _sign(sealed)


def state_row(job: JobRow, parent: StateRow | None, state: FitState, *, ordinal: int, telemetry: str) -> StateRow:
    """Build the row of a state; it hangs on its parent state, the root on the job.

    Raises:
        StorageError: ``not_recordable``.
    """
    content = canonical_json(state.model_dump(mode="json"))
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


def edge_row(
    job: JobRow,
    parent: StateRow,
    candidate: StateRow | None,
    previous: EdgeRow | None,
    content: Mapping[str, Any],
    *,
    telemetry: str,
) -> EdgeRow:
    """Build the row of an attempt from `edge_content`; it hangs on its parent, the edge before it and its candidate.

    Raises:
        StorageError: ``not_recordable``.
    """
    text = json_text(content)
    action = _parsed(Action, canonical_json(content["action"]))
    decision = _parsed(Decision, canonical_json(content["decision"]))
    row = EdgeRow(
        job_id=job.job_id,
        ordinal=int(content["ordinal"]),
        parent_id=parent.id,
        candidate_id=None if candidate is None else candidate.id,
        status="accepted" if decision.accepted else "rejected",
        kind=str(action.kind),
        planner=str(content["planner"].get("name", "")),
        content=text,
        telemetry=telemetry,
    )
    parents = [parent.chain_hash, job.chain_hash if previous is None else previous.chain_hash]
    if candidate is not None:
        parents.append(candidate.chain_hash)
    sealed = _seal(row, "edge", parents, content["files"].values())
    sealed.id = sealed.chain_hash[:ID_LENGTH]
    return _sign(sealed)


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


def event_row(
    job: JobRow, previous: EventRow | None, kind: str, content: Mapping[str, Any], *, telemetry: str
) -> EventRow:
    """Build the row of an event; it hangs on the event before it, and names the artifacts in its data's ``files``."""
    row = EventRow(
        job_id=job.job_id,
        ordinal=1 if previous is None else previous.ordinal + 1,
        kind=kind,
        content=json_text(content),
        telemetry=telemetry,
    )
    parent = job.chain_hash if previous is None else previous.chain_hash
    return _sign(_seal(row, "event", (parent,), event_artifacts(content)))


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
