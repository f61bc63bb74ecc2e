"""Which earlier job is the external standard of a request? Checked when it is submitted, read when the job begins."""

from __future__ import annotations

from pathlib import Path

from autoxrd.agent.external import ExternalRequest
from autoxrd.domain.lifecycle import JobState
from autoxrd.errors import NotFound, UserInputError
from autoxrd.io.attenuation import read_composition
from autoxrd.jobs.request import JobRequest
from autoxrd.store.service.copying import lay_out
from autoxrd.store.service.database import Database
from autoxrd.store.service.listing import JobView, find_job, owner_of

__all__ = ["check_standard", "standard_of"]

_NOT_YET = frozenset({JobState.QUEUED, JobState.RUNNING, JobState.WAITING})


def check_standard(request: JobRequest, database: Database, owner_id: str) -> None:
    """Refuse an external standard that cannot be one; whether both were measured alike shows when the files are read.

    Args:
        request: of the specimen.
        database: the service's database.
        owner_id: who asks; a job of anybody else is missing.

    Raises:
        UserInputError: ``standard_twice``, ``profile_match_alone``, ``mass_absorption_twice``, ``composition_invalid``,
            ``external_standard_missing``, ``_unfinished``, ``_abstained``, ``_differs``, ``_unusable``.
    """
    asked = request.external_standard
    if asked is None:
        return
    if request.standard is not None:
        text = "Both an internal and an external standard are given: name the one that the fractions shall follow."
        raise UserInputError("standard_twice", text)
    if request.fit.profile_match:
        text = "A profile match knows no amounts: it goes without an external standard."
        raise UserInputError("profile_match_alone", text)
    _wanted(request, Path(asked.job))
    if asked.composition is not None:
        read_composition(asked.composition)
    try:
        job = find_job(database, asked.job, owner_id)
    except NotFound as error:
        text = f"The external standard: you have no job {asked.job!r:.60} (any more). Give the id of one of your jobs."
        raise UserInputError("external_standard_missing", text) from error
    _check_job(job, request)


def standard_of(request: JobRequest, database: Database, job_id: str, folder: Path) -> ExternalRequest | None:
    """Return what a request says of an external standard, the graph of which is written into a folder.

    Args:
        request: of the job that begins.
        database: the service's database.
        job_id: the job that begins; its owner must have the standard's.
        folder: where a directory is made.

    Raises:
        UserInputError: see `check_standard`: much may have happened since the job was queued.
    """
    asked = request.external_standard
    if asked is None:
        return None
    check_standard(request, database, owner_of(database, job_id))
    directory = folder / asked.job
    lay_out(database, asked.job, directory)
    return _wanted(request, directory)


def _wanted(request: JobRequest, directory: Path) -> ExternalRequest | None:
    asked = request.external_standard
    if asked is None:
        return None
    return ExternalRequest(
        job=directory,
        crystallinity=asked.crystallinity_percent / 100.0,
        mass_absorption_cm2_g=asked.mass_absorption_cm2_g,
        composition=asked.composition,
        intensity_ratio=asked.intensity_ratio,
    )


def _check_job(job: JobView, request: JobRequest) -> None:
    state = JobState(job.state)
    if state is not JobState.COMPLETED:
        todo = "wait for its end, then submit this one" if state in _NOT_YET else "refine its pattern anew"
        raise _refusal("unfinished", job, f"is {state.value}, and has no result: {todo}")
    if job.verdict == "abstained":
        text = "abstained: nobody vouches for its scale factor; its report says why, refine it anew"
        raise _refusal("abstained", job, text)
    if job.request["fit"].get("profile_match"):
        raise _refusal("unusable", job, "is a profile match, which knows no scale factor: refine its structure")
    if job.engine != request.engine:
        text = f"was refined by {job.engine}, the specimen shall be by {request.engine}: take one engine for both"
        raise _refusal("differs", job, text)


def _refusal(kind: str, job: JobView, text: str) -> UserInputError:
    return UserInputError(f"external_standard_{kind}", f"The external standard {job.id} {text}.")
