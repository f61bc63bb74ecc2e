"""Two states of a job, or of two jobs, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response

from autoxrd.api.context import ApiContext, Context
from autoxrd.domain.action import ActionKind
from autoxrd.domain.state import FitState
from autoxrd.errors import NotFound
from autoxrd.report.words import kind_words
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.keys import Scope
from autoxrd.store.service.listing import Filters, JobView, find_job, list_jobs
from autoxrd.store.service.steps import StepView, list_steps
from autoxrd.web.contrast import contrast
from autoxrd.web.guard import Visit, Visitor
from autoxrd.web.rendering import PageRoute, page
from autoxrd.web.words import percent

__all__ = ["router"]

router = APIRouter(route_class=PageRoute, include_in_schema=False)

OFFERED_JOBS = 100
OFFERED_STATES = 500
_Job = Annotated[str, Query(pattern=r"^([0-9a-f-]{36})?$")]
_State = Annotated[str, Query(pattern=r"^([0-9a-f]{16})?$")]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two.

    Args:
        states: what can be chosen, id and words.
        chosen: id of the state.
    """

    job: JobView
    states: Sequence[tuple[str, str]]
    chosen: str
    state: FitState


@router.get("/compare")
def show_comparison(
    context: Context, visit: Visitor, a: _Job = "", b: _Job = "", sa: _State = "", sb: _State = ""
) -> Response:
    """Show two fits and their differences; without a second job, two states of the first."""
    visit.require(Scope.READ)
    jobs = list_jobs(context.database, visit.identity.owner_id, Filters(), limit=OFFERED_JOBS).jobs
    offered = [(job.id, f"{job.title} ({job.created_at[:16].replace('T', ' ')})") for job in jobs if job.current_state]
    # Of one job, the start beside the result says what was reached.
    from_start = b in {"", a} and not sa and not sb
    first = _side(context, visit, a, sa, start=from_start) if a else None
    second = _side(context, visit, b or a, sb) if a else None
    chosen = [{"name": name, "side": side} for name, side in (("a", first), ("b", second))]
    shown = contrast(first.state, second.state) if first and second else None
    for side in (first, second):
        if side is not None and side.job.id not in {job_id for job_id, _ in offered}:
            offered.append((side.job.id, side.job.title))
    return page("compare.html.j2", visit, offered=offered, chosen=chosen, shown=shown, from_start=from_start)


def _side(context: ApiContext, visit: Visit, job_id: str, state_id: str, *, start: bool = False) -> Side:
    job = find_job(context.database, job_id, visit.identity.owner_id)
    steps = [s for s in list_steps(context.database, job.id, limit=OFFERED_STATES).steps if s.state]
    if not steps or job.current_state is None:
        raise NotFound("state_unknown", f"The job {job.title!r:.80} has no fit yet: there is nothing to compare.")
    states = [(str(s.state), _words(s)) for s in steps]
    chosen = state_id or (states[0][0] if start else job.current_state)
    if chosen not in {state for state, _ in states}:
        raise NotFound("state_unknown", f"The job {job.title!r:.80} has no state {chosen!r:.20}.")
    return Side(job, states, chosen, JobGraph.open(context.database, job.id).state(chosen))


def _words(step: StepView) -> str:
    if step.status == "root":
        return f"Start, Rwp {percent(step.rwp)} %"
    rejected = ", rejected" if step.status == "rejected" else ""
    return f"{step.ordinal} {kind_words(ActionKind(step.kind))}, Rwp {percent(step.rwp)} %{rejected}"
