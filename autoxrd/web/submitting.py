"""Starting a refinement: the form, what is wrong with it, and the job that it becomes.

It works without a script: what was uploaded is kept while a question is open, so that nobody chooses a file twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.responses import RedirectResponse

from autoxrd.api.context import ApiContext, Context
from autoxrd.api.intake import Intake, store_upload
from autoxrd.api.queueing import in_turn, queue_job
from autoxrd.domain.instrument import ANODE_LINES
from autoxrd.engines.registry import engine_names, get_engine
from autoxrd.errors import NotFound, UserInputError
from autoxrd.gates.policy import shipped_policies
from autoxrd.jobs.checking import Checker, Finding
from autoxrd.jobs.choices import check_choices
from autoxrd.jobs.modelling import planners_here
from autoxrd.jobs.request import MAX_STRUCTURES, JobRequest
from autoxrd.jobs.standard import check_standard
from autoxrd.settings import Settings
from autoxrd.store.service.database import new_id
from autoxrd.store.service.files import NewFile, add_upload, upload_of
from autoxrd.store.service.keys import Identity, Scope
from autoxrd.web.checks import checker_of, finding_html, lines_of
from autoxrd.web.guard import Visit, Visitor, believed_form
from autoxrd.web.phases import check_phases
from autoxrd.web.rendering import PageRoute, page
from autoxrd.web.series import address_of
from autoxrd.web.wishes import FIELDS, field_of, request_from, series_from

__all__ = ["router"]

router = APIRouter(route_class=PageRoute, include_in_schema=False)

MAX_PATTERNS = 100
"""Patterns that are submitted at once as a series."""

_KEPT = re.compile(r"([0-9a-f]{64})/([A-Za-z0-9_.+-]{1,100})")
_KINDS = {"pattern": "pattern", "structures": "structure", "candidates": "structure", "instrument": "instrument"}
_NUMBERED = {"structures": "structure", "candidates": "candidate"}
"""Parts with a CIF for each phase, with the role of their files; what is chosen anew comes to what was kept."""
_MOST = {"pattern": MAX_PATTERNS}
_QUESTION = "The files do not state the wavelength: choose the tube or type it. A guessed one gives a wrong cell."


@dataclass(frozen=True, slots=True)
class Given:
    """A file of the form, stored.

    Args:
        part: ``pattern``, ``structures``, ``candidates`` or ``instrument``.
        name: made safe.
    """

    part: str
    name: str
    file: NewFile

    @property
    def kept(self) -> str:
        """What the form carries of it while a question is open."""
        return f"{self.file.sha256}/{self.name}"


@dataclass(slots=True)
class Draft:
    """A form as it was filled in, with what is wrong with it by field."""

    values: dict[str, str] = field(default_factory=dict)
    files: list[Given] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    key: str = field(default_factory=new_id)


@router.get("/jobs/new")
def show_form(context: Context, visit: Visitor) -> Response:
    """Show an empty form."""
    visit.require(Scope.WRITE)
    return _form_page(visit, Draft(), context.settings)


@router.post("/jobs/new")
async def submit_form(request: Request, context: Context, visit: Visitor) -> Response:
    """Queue the job, or show the form again with what is missing."""
    visit.require(Scope.WRITE)
    form = await believed_form(request, visit, max_files=MAX_STRUCTURES + MAX_PATTERNS + 1)
    draft, wanted = await run_in_threadpool(_looked_at, form, context, visit.identity, checker_of(request))
    if wanted is None:
        return _form_page(visit, draft, context.settings)
    return RedirectResponse(await _queued(draft, wanted, context, visit.identity), status_code=303)


def _looked_at(
    form: FormData, context: ApiContext, identity: Identity, checker: Checker
) -> tuple[Draft, JobRequest | None]:
    """Store and read the files, which may take seconds; return what is wanted where nothing is missing."""
    texts = {name: value.strip() for name, value in form.items() if isinstance(value, str) and name in FIELDS}
    draft = Draft(values=texts, key=str(form.get("key", ""))[:100] or new_id())
    _take_files(draft, form, context, identity)
    for given in draft.files:
        data = context.database.artifacts.get(given.file.sha256)
        kind = _KINDS[given.part]
        if given.part == "structures" and texts.get("profile_match"):
            kind = "lattice"  # a CIF needs no atoms then
        draft.findings.append(checker.check(kind, given.name, data))
    for given, finding in zip(draft.files, draft.findings, strict=True):
        if finding.found is None:
            draft.problems.setdefault(given.part, finding.detail)
    _ask_for_files(draft)
    request = _request(draft, context, identity)
    if request is not None:
        read = list(zip(draft.files, draft.findings, strict=True))
        believed, possible = ([f for g, f in read if g.part == part] for part in _NUMBERED)
        draft.problems |= check_phases(request, believed, possible)
    if request is None or draft.problems:
        for given in draft.files:  # the owner's, until the question is answered
            add_upload(context.database, identity.owner_id, given.name, given.file)
        return draft, None
    return draft, request


async def _queued(draft: Draft, request: JobRequest, context: ApiContext, identity: Identity) -> str:
    """Queue a job for each pattern, each in its turn; return the page that shows them."""
    patterns = [given for given in draft.files if given.part == "pattern"]
    others = [given for given in draft.files if given.part != "pattern"]
    made = series_from(request, draft.values, [given.name for given in patterns])
    job_id = ""
    for number, (given, wanted) in enumerate(zip(patterns, made, strict=True)):
        files = {f"{role}/{g.name}": g.file for role, g in _roles([given, *others]).items()}
        key = f"page-{draft.key}" + (f"-{number}" if number else "")
        work = partial(queue_job, context, identity, Intake(wanted, files), idempotency_key=key)
        job_id = (await in_turn(context, work)).job.id
    series = made[0].series
    return f"/jobs/{job_id}" if series is None else address_of(series.name)


def _take_files(draft: Draft, form: FormData, context: ApiContext, identity: Identity) -> None:
    """Store what was chosen and find again what was kept; a new file of a kind of which there is one replaces it."""
    for part in _KINDS:
        fresh: list[Given] = []
        for upload in form.getlist(part):
            if isinstance(upload, UploadFile) and upload.filename:
                try:
                    name, stored = store_upload(context, upload)
                except UserInputError as error:
                    draft.problems[part] = error.detail
                    continue
                fresh.append(Given(part, name, stored))
        kept = [given for text in form.getlist(f"kept_{part}") if (given := _again(part, text, context, identity))]
        draft.files += [*kept, *fresh] if part in _NUMBERED else (fresh or kept)[: _MOST.get(part, 1)]


def _again(part: str, text: object, context: ApiContext, identity: Identity) -> Given | None:
    match = _KEPT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    try:
        stored = upload_of(context.database, identity.owner_id, match[1])
    except NotFound:
        return None
    return Given(part, match[2], NewFile(stored.sha256, stored.size))


def _ask_for_files(draft: Draft) -> None:
    """Say which file or which figure is missing."""
    parts = [given.part for given in draft.files]
    if "pattern" not in parts:
        draft.problems.setdefault("pattern", "Choose the measured pattern.")
    n_structures, n_candidates = (parts.count(part) for part in _NUMBERED)
    if not n_structures and not n_candidates and "candidates" not in draft.problems:
        text = "Choose at least one CIF: the phases believed to be in the specimen, or candidates."
        draft.problems.setdefault("structures", text)
    if n_structures + n_candidates > MAX_STRUCTURES:
        text = f"A job takes at most {MAX_STRUCTURES} structures and candidates together."
        draft.problems["candidates" if n_candidates else "structures"] = text
    told = draft.values.get("anode") or draft.values.get("wavelength")
    if not told and not lines_of(draft.findings) and "pattern" in parts and "pattern" not in draft.problems:
        draft.problems.setdefault("anode", _QUESTION)


def _request(draft: Draft, context: ApiContext, identity: Identity) -> JobRequest | None:
    try:
        request = request_from(draft.values)
        check_choices(request, context.settings, _roles(draft.files))
        check_standard(request, context.database, identity.owner_id)
        series_from(request, draft.values, [given.name for given in draft.files if given.part == "pattern"])
    except ValidationError as error:
        for fault in error.errors():
            field = field_of(fault["loc"])
            draft.problems.setdefault(field, f"{field.replace('_', ' ').capitalize()}: {fault['msg']}.")
        return None
    except UserInputError as error:
        draft.problems.setdefault(str(error.context.get("field", field_of((), error.code))), error.detail)
        return None
    return request


def _roles(files: list[Given]) -> Mapping[str, Given]:
    roles = {given.part: given for given in files if given.part not in _NUMBERED}
    for part, role in _NUMBERED.items():
        roles |= {f"{role}.{i}": given for i, given in enumerate((g for g in files if g.part == part), 1)}
    return dict(sorted(roles.items(), key=lambda item: item[0] != "pattern"))


def _form_page(visit: Visit, draft: Draft, settings: Settings) -> Response:
    engines = [(name, *get_engine(name).available()) for name in engine_names()]
    shown: list[dict[str, Any]] = [
        {"part": given.part, "kept": given.kept, "name": given.name, "html": finding_html(finding)}
        for given, finding in zip(draft.files, draft.findings, strict=True)
    ]
    return page(
        "submit.html.j2",
        visit,
        status=422 if draft.problems else 200,
        draft=draft,
        values={**dict.fromkeys(FIELDS, ""), **draft.values},
        kept=shown,
        anodes=[(a, f"{a} Kα, {lines[0].wavelength_angstrom:.4f} Å") for a, lines in ANODE_LINES.items()],
        engines=[(name, name if usable else f"{name} (not installed)") for name, usable, _ in engines],
        planners=[(name, name) for name in planners_here(settings)],
        policies=[(name, name) for name in shipped_policies()],
    )
