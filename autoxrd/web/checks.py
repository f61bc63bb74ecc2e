"""What does a person see of a file before submitting it? The reader's findings, as a piece of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse

from autoxrd.api.context import Context
from autoxrd.errors import UserInputError
from autoxrd.jobs.checking import Checker, Finding
from autoxrd.report.words import space_group_html
from autoxrd.store.service.keys import Scope
from autoxrd.web.guard import Visitor, believed_form
from autoxrd.web.rendering import PageRoute, fragment

__all__ = ["checker_of", "finding_html", "lines_of", "router"]

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_AXES = {
    "two_theta_deg": ("2θ", "°"),
    "d_angstrom": ("d", "Å"),
    "q_inverse_angstrom": ("Q", "Å⁻¹"),
    "tof_us": ("TOF", "µs"),
}


def checker_of(request: Request) -> Checker:
    """Return what looks at files."""
    checker: Checker = request.app.state.checker
    return checker


def finding_html(finding: Finding) -> str:
    """Render what was found in a file."""
    axis = _AXES.get(str((finding.found or {}).get("axis")), ("x", ""))
    return fragment("finding.html.j2", f=finding, axis=axis, space_group=space_group_html)


def lines_of(findings: Sequence[Finding]) -> list[dict[str, float]]:
    """Return the wavelengths that the files state; the instrument's before the pattern's."""
    for kind in ("instrument", "pattern"):
        for finding in findings:
            if finding.kind == kind and finding.found and finding.found["lines"]:
                return list(finding.found["lines"])
    return []


@router.post("/jobs/new/check")
async def check_file(request: Request, context: Context, visit: Visitor) -> Response:
    """Look at one file of a form that is being filled in; nothing is kept."""
    visit.require(Scope.WRITE)
    form = await believed_form(request, visit, max_files=1)
    part, limit = form.get("file"), context.settings.max_file_bytes
    if not isinstance(part, UploadFile):
        raise UserInputError("part_missing", "Send the file as the part 'file'.")
    data = await part.read(limit + 1)
    if len(data) > limit:
        raise UserInputError("file_too_large", f"The file has more than {limit} bytes, the largest that is read.")
    checker, kind = checker_of(request), str(form.get("kind", ""))
    finding = await run_in_threadpool(checker.check, kind, part.filename or "", data)
    return JSONResponse(_shown(finding))


def _shown(finding: Finding) -> dict[str, Any]:
    found = finding.found or {}
    axis = _AXES.get(str(found.get("axis")), ("x", ""))
    return {
        "ok": finding.found is not None,
        "html": finding_html(finding),
        "lines": found.get("lines", []),
        "curve": found.get("curve"),
        "axis": {"title": axis[0], "unit": axis[1]},
    }
