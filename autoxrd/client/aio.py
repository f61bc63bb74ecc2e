"""How does an asynchronous program talk to the service? The same operations as the synchronous client, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from autoxrd.client import calls
from autoxrd.client.connection import connection
from autoxrd.client.models import Event, File, Job, Review, Step
from autoxrd.client.patience import Patience
from autoxrd.client.saving import report_path, save

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncClient:
    """A client of one service; use it as an asynchronous context manager.

    Args:
        url: address of the service; AUTOXRD_URL, else this machine's.
        key: API key; AUTOXRD_API_KEY where None.
        timeout_seconds: how long one answer may take.
        transport: of httpx, for tests and special networks.

    Raises:
        UserInputError: ``service_url``.
        AccessDenied: ``key_missing``.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout_seconds: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(**connection(url, key, timeout_seconds), transport=transport)

    async def submit(
        self,
        pattern: Path | str,
        structures: Iterable[Path | str] = (),
        *,
        candidates: Iterable[Path | str] = (),
        instrument: Path | str | None = None,
        request: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Queue a refinement.

        Args:
            pattern: file of the measured pattern.
            structures: one CIF for each phase that is believed to be there; with candidates there may be none.
            candidates: one CIF for each phase that may be there.
            instrument: instrument parameter file.
            request: the fields of a job request (`GET /api/v1/schemas/request`).
            idempotency_key: the same key makes the same job; a new one where None.

        Raises:
            AutoxrdError: the service refuses it, with its code, or cannot be reached.
        """
        wanted = calls.submit(
            pattern,
            structures,
            candidates=candidates,
            instrument=instrument,
            request=request,
            key=idempotency_key,
        )
        return await self._done(wanted)

    async def job(self, job_id: str) -> Job:
        """Look at a job."""
        return await self._done(calls.job(job_id))

    async def jobs(self, *, limit: int = 50, **filters: Any) -> list[Job]:
        """List jobs, newest first; filters as in `GET /api/v1/jobs` (state, engine, verdict, q, ...)."""
        return await self._done(calls.jobs(filters, limit))

    async def events(self, job_id: str, *, after: int = 0) -> list[Event]:
        """Return what happened to a job after an event's number."""
        return await self._done(calls.events(job_id, after))

    async def steps(self, job_id: str) -> list[Step]:
        """List the steps of a job."""
        return await self._done(calls.steps(job_id))

    async def wait(
        self,
        job_id: str,
        *,
        progress: Callable[[Event], object] | None = None,
        after: int = 0,
        timeout_seconds: float | None = None,
    ) -> Job:
        """Follow a job to its end; outages of the service are sat out.

        Args:
            job_id: which.
            progress: called with each event, in order, once.
            after: number of the last event already seen.
            timeout_seconds: how long to wait at most; None without end.

        Raises:
            ServiceUnavailable: ``wait_timeout``, the job goes on; or the service stays away.
        """
        patience = Patience(job_id, timeout_seconds)
        return await self._done(calls.wait(job_id, progress=progress, after=after, patience=patience.check))

    async def cancel(self, job_id: str) -> Job:
        """Cancel a job."""
        return await self._done(calls.act(job_id, "cancel"))

    async def pause(self, job_id: str) -> Job:
        """Let a job wait; a step in flight is recorded first."""
        return await self._done(calls.act(job_id, "pause"))

    async def resume(self, job_id: str) -> Job:
        """Let a paused or cancelled job go on."""
        return await self._done(calls.act(job_id, "resume"))

    async def retry(self, job_id: str) -> Job:
        """Let a failed or crashed job go on."""
        return await self._done(calls.act(job_id, "retry"))

    async def review(
        self, job_id: str, decision: str, *, action: Mapping[str, Any] | None = None, note: str = ""
    ) -> Review:
        """Accept or reject the step that the planner asked about, or add an action.

        Args:
            job_id: which.
            decision: accept, reject or add.
            action: what to add, as `GET /api/v1/schemas/action` says.
            note: why; it stands in the graph beside a rejection.
        """
        return await self._done(calls.review(job_id, decision, action, note))

    async def reviews(self, job_id: str) -> list[Review]:
        """List what was asked about the steps of a job, and what was said."""
        return await self._done(calls.reviews(job_id))

    async def files(self, job_id: str) -> list[File]:
        """List the files of a job."""
        return await self._done(calls.files(job_id))

    async def report(self, job_id: str, form: str = "html", *, to: Path | str | None = None, **choice: str) -> bytes:
        """Get a report, checked against its digest.

        Args:
            job_id: which.
            form: html, json, zip, cif or csv.
            to: file to write, whole or not at all.
            choice: ``phase`` of a cif, ``table`` of a csv.
        """
        return save(await self._done(calls.download(job_id, report_path(form), choice)), to)

    async def download(self, job_id: str, name: str, *, to: Path | str | None = None) -> bytes:
        """Get a file of the report by its name, checked against its digest."""
        return save(await self._done(calls.download(job_id, f"files/{name}")), to)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _done(self, operation: calls.Operation[T]) -> T:
        answer: httpx.Response | httpx.TransportError | None = None
        try:
            while True:
                step = operation.send(answer)
                answer = None
                if isinstance(step, calls.Pause):
                    await asyncio.sleep(step.seconds)
                    continue
                try:
                    answer = await self._http.request(step.method, step.path, **step.options())
                except httpx.TransportError as error:
                    answer = error
        except StopIteration as end:
            found: T = end.value
            return found
