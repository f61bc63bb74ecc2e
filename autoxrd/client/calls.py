"""What does each operation ask of the service, in which order? Generators of calls, made by either client.

An operation yields a `Call` and gets its answer, or yields a `Pause`. So both clients do the same, and what is sent
again after a failure is decided here: reading, and a submission with its Idempotency-Key. Anything else is sent once.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

from autoxrd.client.models import Event, File, Job, Review, Step
from autoxrd.errors import (
    AccessDenied,
    AutoxrdError,
    Conflict,
    LimitExceeded,
    NotFound,
    ServiceUnavailable,
    UserInputError,
)
from autoxrd.primitives import canonical_json, sha256_hex

__all__ = [
    "Call",
    "Operation",
    "Pause",
    "act",
    "download",
    "events",
    "files",
    "job",
    "jobs",
    "review",
    "reviews",
    "steps",
    "submit",
    "wait",
]

T = TypeVar("T")
ATTEMPTS = 6
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.25, 5.0
LOOK_SECONDS = 0.5
_ERRORS: Mapping[int, type[AutoxrdError]] = {
    400: UserInputError, 401: AccessDenied, 403: AccessDenied, 404: NotFound, 409: Conflict, 413: UserInputError,
    415: UserInputError, 422: UserInputError, 429: LimitExceeded,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """One request, below ``/api/v1``.

    Args:
        again: whether it may be sent again when no answer came.
        files: parts of a multipart body.
    """

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Mapping[str, Any] | None = None
    data: Mapping[str, str] | None = None
    files: Sequence[tuple[str, tuple[str, bytes]]] = ()
    again: bool = True

    def options(self) -> dict[str, Any]:
        """Return it as httpx takes it."""
        params = {name: value for name, value in self.params.items() if value is not None}
        given: dict[str, Any] = {"params": params, "headers": dict(self.headers)}
        given |= {name: getattr(self, name) for name in ("json", "data") if getattr(self, name) is not None}
        return given | ({"files": list(self.files)} if self.files else {})


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next call."""

    seconds: float


Operation = Generator[Call | Pause, httpx.Response | httpx.TransportError | None, T]


def sent(call: Call) -> Operation[httpx.Response]:
    """Make a call until there is an answer that counts.

    Raises:
        AutoxrdError: what the service says, with its code; ``service_unreachable`` where it says nothing.
    """
    pause = FIRST_PAUSE_SECONDS
    for attempt in range(1, ATTEMPTS + 1):
        answer = yield call
        last = attempt == ATTEMPTS or not call.again
        if isinstance(answer, httpx.Response):
            if answer.status_code < 400:
                return answer
            error = error_of(answer)
            if last or answer.status_code not in {429, 502, 503, 504} or error.code in {"jobs_open", "budget_spent"}:
                raise error
            wish = answer.headers.get("Retry-After", "")
            pause = max(pause, min(float(wish), LONGEST_PAUSE_SECONDS)) if wish.isdecimal() else pause
        elif last:
            raise ServiceUnavailable(
                "service_unreachable",
                f"No service answers ({answer}): start one with `autoxrd serve`, or set AUTOXRD_URL.",
            )
        yield Pause(pause)
        pause = min(2.0 * pause, LONGEST_PAUSE_SECONDS)
    raise AssertionError("the last attempt returns or raises")


def error_of(answer: httpx.Response) -> AutoxrdError:
    """Return the error that an answer tells of."""
    kind = _ERRORS.get(answer.status_code, ServiceUnavailable)
    try:
        problem = answer.json()
        return kind(str(problem["code"]), str(problem["detail"]), context={"errors": problem.get("errors", [])})
    except (ValueError, KeyError, TypeError):
        text = f"The answer is {answer.status_code} without a word of why: is {answer.url.host} an AutoXRD service?"
        return kind("answer_unreadable", text)


def _json(call: Call) -> Operation[Any]:
    answer = yield from sent(call)
    try:
        return answer.json()
    except ValueError as error:
        raise ServiceUnavailable("answer_unreadable", "The answer is no JSON: is this an AutoXRD service?") from error


def submit(
    pattern: Path | str,
    structures: Iterable[Path | str],
    *,
    candidates: Iterable[Path | str] = (),
    instrument: Path | str | None,
    request: Mapping[str, Any] | None,
    key: str | None,
) -> Operation[Job]:
    """Queue a refinement. Sent again until it is answered, always with one key: it makes one job."""
    parts = [("pattern", Path(pattern)), *(("structures", Path(path)) for path in structures)]
    parts += [("candidates", Path(path)) for path in candidates]
    if instrument is not None:
        parts.append(("instrument", Path(instrument)))
    call = Call(
        "POST",
        "/jobs",
        headers={"Idempotency-Key": key or secrets.token_hex(16)},
        data={"request": canonical_json(dict(request or {}))},
        files=[(name, (path.name, _bytes(path))) for name, path in parts],
    )
    return Job.of((yield from _json(call)))


def job(job_id: str) -> Operation[Job]:
    """Look at a job."""
    return Job.of((yield from _json(Call("GET", _path(job_id)))))


def jobs(filters: Mapping[str, Any], limit: int) -> Operation[list[Job]]:
    """List jobs, newest first, over as many pages as it takes."""
    found: list[Job] = []
    cursor = None
    while len(found) < limit:
        size = min(limit - len(found), 200)
        page = yield from _json(Call("GET", "/jobs", params={**filters, "cursor": cursor, "limit": size}))
        found += [Job.of(entry) for entry in page["jobs"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    return found


def events(job_id: str, after: int) -> Operation[list[Event]]:
    """Return what happened after a number, as far as one answer goes."""
    page = yield from _json(Call("GET", _path(job_id, "events"), params={"after": after}))
    return [Event.of(entry) for entry in page["events"]]


def steps(job_id: str) -> Operation[list[Step]]:
    """List the steps of a job."""
    found: list[Step] = []
    after: int | None = -1
    while after is not None:
        page = yield from _json(Call("GET", _path(job_id, "graph"), params={"after": after, "limit": 1000}))
        found += [Step.of(entry) for entry in page["steps"]]
        after = page["next_cursor"]
    return found


def wait(
    job_id: str, *, progress: Callable[[Event], object] | None, after: int, patience: Callable[[], None]
) -> Operation[Job]:
    """Follow a job to its end.

    Args:
        job_id: which.
        progress: called with each event, in order, once.
        after: number of the last event already seen.
        patience: called between two looks; it raises when there is none left.
    """
    while True:
        now = yield from job(job_id)  # before the events: what it has seen by then, they include
        while after < now.last_event:
            for event in (yield from events(job_id, after)):
                after = event.number
                if progress is not None:
                    progress(event)
        if now.over:
            return now
        patience()
        yield Pause(LOOK_SECONDS)


def act(job_id: str, what: str) -> Operation[Job]:
    """Ask for a cancellation, a pause, ...: to ask twice does no harm."""
    return Job.of((yield from _json(Call("POST", _path(job_id, what)))))


def reviews(job_id: str) -> Operation[list[Review]]:
    """List what was asked about the steps of a job, and what was said."""
    return [Review.of(entry) for entry in (yield from _json(Call("GET", _path(job_id, "reviews"))))]


def review(job_id: str, decision: str, action: Mapping[str, Any] | None, note: str) -> Operation[Review]:
    """Answer a question, or add an action; sent once."""
    body = {"decision": decision, "note": note} | ({} if action is None else {"action": dict(action)})
    return Review.of((yield from _json(Call("POST", _path(job_id, "review"), json=body, again=False))))


def files(job_id: str) -> Operation[list[File]]:
    """List the files of a job."""
    return [File.of(entry) for entry in (yield from _json(Call("GET", _path(job_id, "files"))))]


def download(job_id: str, what: str, params: Mapping[str, Any] | None = None) -> Operation[bytes]:
    """Get a file, checked against its digest.

    Raises:
        ServiceUnavailable: ``download_damaged``.
    """
    answer = yield from sent(Call("GET", _path(job_id, what), params=params or {}))
    if answer.headers.get("ETag", "").strip('"') != sha256_hex(answer.content):
        raise ServiceUnavailable("download_damaged", f"{what} came damaged: get it again.")
    return answer.content


def _path(job_id: str, *rest: str) -> str:
    if not job_id or not all(char.isalnum() or char == "-" for char in job_id):
        raise UserInputError("job_id", f"{job_id!r:.60} is no id of a job: `autoxrd jobs list` shows them.")
    return "/".join(("/jobs", job_id, *rest))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserInputError("file_unreadable", f"{path} cannot be read: {error.strerror}.") from error
