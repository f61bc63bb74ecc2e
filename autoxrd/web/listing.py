"""The list of jobs: filters and pages, all of it in the address, so that a view can be kept and sent on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from autoxrd.api.context import Context
from autoxrd.domain.lifecycle import FINAL, JobState
from autoxrd.engines.registry import engine_names
from autoxrd.planners.registry import planner_names
from autoxrd.store.service.keys import Scope
from autoxrd.store.service.listing import Filters, list_jobs
from autoxrd.web.guard import Visitor
from autoxrd.web.rendering import PageRoute, page
from autoxrd.web.words import VERDICTS

__all__ = ["router"]

router = APIRouter(route_class=PageRoute, include_in_schema=False)

PAGE_SIZE = 25
_DAY_BEGIN, _DAY_END = "T00:00:00.000000Z", "T23:59:59.999999Z"
_GROUPS = {
    "open": [s.value for s in JobState if s not in FINAL],
    "completed": ["completed"],
    "failed": ["failed", "crashed"],
    "cancelled": ["cancelled"],
}
_Text = Annotated[str, Query(max_length=200)]
_Name = Annotated[str, Query(max_length=64)]
_Day = Annotated[str, Query(pattern=r"^(\d{4}-\d\d-\d\d)?$")]
_Cursor = Annotated[str | None, Query(pattern=r"^[0-9a-f-]{36}$")]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person filters by, as written in the form; empty lets everything through."""

    q: str = ""
    status: str = ""
    verdict: str = ""
    engine: str = ""
    planner: str = ""
    since: str = ""
    until: str = ""

    def filters(self) -> Filters:
        """Return it as the store asks for it; days are days in UTC."""
        return Filters(
            states=_GROUPS.get(self.status, ()),
            verdict=self.verdict or None,
            engine=self.engine or None,
            planner=self.planner or None,
            text=self.q or None,
            created_after=self.since + _DAY_BEGIN if self.since else None,
            created_before=self.until + _DAY_END if self.until else None,
        )

    def given(self) -> Mapping[str, str]:
        """Return the fields that are filled in."""
        return {name: value for name in self.__dataclass_fields__ if (value := getattr(self, name))}


@router.get("/jobs")
def show_jobs(
    context: Context,
    visit: Visitor,
    q: _Text = "",
    status: _Name = "",
    verdict: _Name = "",
    engine: _Name = "",
    planner: _Name = "",
    since: _Day = "",
    until: _Day = "",
    cursor: _Cursor = None,
) -> Response:
    """Show a page of jobs, newest first."""
    visit.require(Scope.READ)
    wanted = Wanted(q.strip(), status, verdict, engine, planner, since, until)
    found = list_jobs(context.database, visit.identity.owner_id, wanted.filters(), cursor=cursor, limit=PAGE_SIZE)
    given = wanted.given()
    return page(
        "jobs.html.j2",
        visit,
        jobs=found.jobs,
        wanted=wanted,
        filtered=bool(given),
        is_open=any(JobState(job.state) not in FINAL for job in found.jobs),
        may_submit=visit.may(Scope.WRITE),
        engines=[(name, name) for name in engine_names()],
        planners=[(name, name) for name in planner_names()],
        verdicts=[(code, text) for code, (text, _) in VERDICTS.items()],
        newest=_address(given) if cursor else None,
        older=_address({**given, "cursor": found.next_cursor}) if found.next_cursor else None,
    )


def _address(query: Mapping[str, str]) -> str:
    return "/jobs" + (f"?{urlencode(query)}" if query else "")
