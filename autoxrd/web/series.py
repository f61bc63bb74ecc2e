"""Several patterns of one specimen side by side: a table, and trends of what was refined."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from autoxrd.api.context import ApiContext, Context
from autoxrd.domain.lifecycle import FINAL, JobState
from autoxrd.errors import NotFound
from autoxrd.report.series_files import series_csv, shown_row
from autoxrd.report.series_model import PatternRow, SeriesReport
from autoxrd.report.trends import trend_figure
from autoxrd.series.rows import row_from
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.keys import Scope
from autoxrd.store.service.listing import Filters, JobView, list_jobs, list_series
from autoxrd.web.guard import Visitor
from autoxrd.web.rendering import PageRoute, page

__all__ = ["SERIES_JOBS", "RowCache", "address_of", "router"]

SERIES_JOBS = 200
"""Patterns that a page shows, the newest."""

_Name = Annotated[str, Query(max_length=100)]

router = APIRouter(route_class=PageRoute, include_in_schema=False)


class RowCache:
    """Rows of jobs that are over, by job and version: a page of a long series reads each record once."""

    def __init__(self, size: int = 2000) -> None:
        self._size = size
        self._rows: OrderedDict[tuple[str, int, int], PatternRow] = OrderedDict()

    def row(self, context: ApiContext, job: JobView, number: int) -> PatternRow:
        """Return the row of a completed job."""
        key = (job.id, job.version, number)
        found = self._rows.get(key)
        if found is None:
            place = job.request["series"]
            found = row_from(
                JobGraph.open(context.database, job.id),
                number=number,
                name=job.title,
                value=place["value"],
                started_from="structures",
                job=job.id,
            )
            self._rows[key] = found
            while len(self._rows) > self._size:
                self._rows.popitem(last=False)
        return found


@dataclass(frozen=True, slots=True)
class Member:
    """A job of a series; ``row`` is None until it is completed."""

    number: int
    job: JobView
    row: PatternRow | None

    @property
    def shown(self) -> dict[str, Any] | None:
        """Return the row as a table writes it."""
        return None if self.row is None else shown_row(self.row)


@router.get("/series")
def show_series(request: Request, context: Context, visit: Visitor, name: _Name = "") -> Response:
    """Show a series; without a name the list of them."""
    visit.require(Scope.READ)
    if not name:
        known = list_series(context.database, visit.identity.owner_id)
        listed = [{"series": s, "address": address_of(s.name)} for s in known]
        return page("series_list.html.j2", visit, listed=listed, may_submit=visit.may(Scope.WRITE))
    members = _members(request, context, visit.identity.owner_id, name)
    report = _report(members)
    figure = trend_figure(report)
    return page(
        "series.html.j2",
        visit,
        name=name,
        members=members,
        report=report,
        names=list(dict.fromkeys(phase.name for row in report.patterns for phase in row.phases)),
        amorphous=any(row.amorphous is not None for row in report.patterns),
        states=Counter("over" if JobState(m.job.state) in FINAL else "open" for m in members),
        figure=figure,
        download=address_of(name, "/series.csv"),
        most=SERIES_JOBS,
    )


@router.get("/series.csv")
def get_table(request: Request, context: Context, visit: Visitor, name: _Name) -> Response:
    """Send the table of a series: the completed jobs, as `autoxrd series` writes it."""
    visit.require(Scope.READ)
    report = _report(_members(request, context, visit.identity.owner_id, name))
    headers = {"Content-Disposition": 'attachment; filename="series.csv"'}
    return Response(series_csv(report), media_type="text/csv; charset=utf-8", headers=headers)


def address_of(name: str, path: str = "/series") -> str:
    """Return the address of a series' page."""
    return f"{path}?{urlencode({'name': name})}"


def _members(request: Request, context: ApiContext, owner_id: str, name: str) -> list[Member]:
    jobs = list_jobs(context.database, owner_id, Filters(series=name), limit=SERIES_JOBS).jobs
    if not jobs:
        raise NotFound("series_not_found", f"You have no series {name!r:.60}.")
    cache: RowCache = request.app.state.series_rows
    ordered = sorted(jobs, key=_place)
    return [
        Member(i, job, cache.row(context, job, i) if job.state == "completed" else None)
        for i, job in enumerate(ordered, 1)
    ]


def _place(job: JobView) -> tuple[bool, float, str]:
    value = job.request["series"]["value"]
    return (value is None, value or 0.0, job.id)


def _report(members: Sequence[Member]) -> SeriesReport:
    rows = [m.row for m in members if m.row is not None]
    places = [m.job.request["series"] for m in members]
    valued = all(place["value"] is not None for place in places)
    quantity = (places[0]["quantity"] or "value") if valued else ""
    verdicts = Counter("accepted" if row.accepted else row.verdict for row in rows)
    return SeriesReport(
        order="value" if valued else "file",
        quantity=quantity,
        unit=places[0]["unit"] if valued else "",
        chunks=[m.number for m in members],
        patterns=rows,
        accepted=verdicts["accepted"],
        abstained=verdicts["abstained"],
        failed=verdicts["failed"],
        restarted=0,
        wall_seconds=sum(m.job.wall_seconds_used for m in members),
        files={},
    )
