"""The report of a job, and everything that can be downloaded of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fastapi import APIRouter, Response

from autoxrd.api.context import Context
from autoxrd.errors import NotFound
from autoxrd.store.service.files import StoredFile, job_files
from autoxrd.web.guard import OwnJob, Visitor
from autoxrd.web.rendering import PageRoute, page

__all__ = ["grouped", "router"]

router = APIRouter(prefix="/jobs/{job_id}", route_class=PageRoute, include_in_schema=False)

_KNOWN = {
    "report.html": ("Report", "the page below, complete in one file"),
    "report.json": ("Report", "the same figures for programs"),
    "bundle.zip": ("Report", "everything, with SHA-256 sums"),
    "profile.csv": ("Tables", "x, observed, σ, calculated, background, difference, each phase"),
    "reflections.csv": ("Tables", "hkl, d, position, intensity, width of every reflection"),
    "parameters.csv": ("Tables", "every parameter: value, esd, bound, the step that freed it"),
    "graph.json": ("Record", "the decision graph for other programs"),
    "manifest.json": ("Record", "names and SHA-256 sums of all files"),
}
_ORDER = ("Report", "Structures", "Tables", "Engine’s own files", "Record", "More")


@router.get("/report")
def show_report(job: OwnJob, context: Context, visit: Visitor) -> Response:
    """Show the report, in a frame that can reach nothing of the service."""
    files = job_files(context.database, job.id, "report")
    if not files:
        raise NotFound("report_not_found", f"The job is {job.state}: there is no report (yet).")
    has_page = any(file.name == "report.html" for file in files)
    return page("report.html.j2", visit, job=job, groups=grouped(files), has_page=has_page)


def grouped(files: Iterable[StoredFile]) -> Mapping[str, list[tuple[StoredFile, str]]]:
    """Sort files under headings, each with what it is."""
    groups: dict[str, list[tuple[StoredFile, str]]] = {name: [] for name in _ORDER}
    for file in files:
        group, text = _KNOWN.get(file.name, ("More", ""))
        if file.name.startswith("engine/"):
            group, text = "Engine’s own files", "to go on by hand"
        elif file.name.endswith(".cif") and "/" not in file.name:
            group, text = "Structures", "refined, with standard uncertainties"
        groups[group].append((file, text))
    return {name: found for name, found in groups.items() if found}
