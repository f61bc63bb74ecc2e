"""The page of a job: where it stands, what it does and why, its fit, its decision graph, and what to ask of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse

from autoxrd.agent.codec import arrays_of, decode_reflections, load_arrays
from autoxrd.agent.history import step_records
from autoxrd.api.context import ApiContext, Context
from autoxrd.domain.lifecycle import FINAL, JobState
from autoxrd.domain.pattern import AxisKind
from autoxrd.errors import NotFound, StorageError, UserInputError
from autoxrd.report.figures import FitShown, PlotSettings, fit_figure
from autoxrd.report.model import FitArrays
from autoxrd.report.stepview import StepView, step_view
from autoxrd.store.service.files import job_file, job_files
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.keys import Scope
from autoxrd.store.service.listing import JobView
from autoxrd.store.service.retention import delete_job
from autoxrd.store.service.transition import ask
from autoxrd.web.course import Course, course_of
from autoxrd.web.guard import OwnJob, Visit, Visitor, believed_form
from autoxrd.web.progress import now_of, wishes_of
from autoxrd.web.rendering import PageRoute, fragment, page
from autoxrd.web.reviewing import asked_of

__all__ = ["fit_of", "router"]

router = APIRouter(prefix="/jobs/{job_id}", route_class=PageRoute, include_in_schema=False)

_Ordinal = Annotated[int, Path(ge=1, le=999_999)]
_State = Annotated[str, Query(pattern=r"^[0-9a-f]{16}$")]


@router.get("")
def show_job(
    job: OwnJob, context: Context, visit: Visitor, step: Annotated[int | None, Query(ge=1, le=999_999)] = None
) -> Response:
    """Show a job."""
    course = course_of(context.database, job)
    chosen = step or (course.best if course.best else course.steps[-1].ordinal if course.steps else None)
    return page(
        "job.html.j2",
        visit,
        **_parts(context, job, visit, course),
        inputs=job_files(context.database, job.id, "input"),
        step=_step(context, job, course, chosen) if chosen else None,
        data={"steps": course.curve, "state": job.current_state, "last": job.feed_last, "over": _over(job)},
    )


@router.get("/live")
def live(job: OwnJob, context: Context, visit: Visitor) -> Response:
    """Give the parts of the page that change while a job runs."""
    course = course_of(context.database, job)
    names = _parts(context, job, visit, course)
    html = {name: fragment(f"job_{name}.html.j2", **names) for name in ("head", "now", "review", "graph")}
    told = {"html": html, "steps": course.curve, "state": job.current_state, "over": _over(job), "best": course.best}
    return JSONResponse(told)


@router.get("/steps/{ordinal}")
def show_step(job: OwnJob, context: Context, ordinal: _Ordinal) -> Response:
    """Give one attempt: evidence, predictions with their effect, and every ruling of the gate."""
    view = _step(context, job, course_of(context.database, job), ordinal)
    return HTMLResponse(fragment("step.html.j2", s=view))


@router.get("/fit.json")
def get_fit(job: OwnJob, context: Context, state: _State) -> Response:
    """Give the fit of a state, as the plot draws it."""
    return JSONResponse(fit_of(context, job, state))


@router.get("/inputs/{name:path}")
def get_input(job: OwnJob, context: Context, name: str) -> Response:
    """Send an input back as it was uploaded."""
    file = job_file(context.database, job.id, "input", name)
    place = context.database.artifacts.path(file.sha256)
    return FileResponse(place, media_type="application/octet-stream", filename=file.name.rpartition("/")[2])


@router.post("/delete")
async def remove(job: OwnJob, request: Request, context: Context, visit: Visitor) -> Response:
    """Delete a job that is over, with its files; the record of what was done stays."""
    visit.require(Scope.WRITE)
    form = await believed_form(request, visit)
    if form.get("sure") != "yes":
        raise UserInputError("not_sure", "Tick that you are sure: the files and the report of the job would be gone.")
    await run_in_threadpool(delete_job, context.database, job.id, visit.identity.actor)
    return RedirectResponse("/jobs", status_code=303)


@router.post("/{wish}")
async def wish_for(
    job: OwnJob, request: Request, context: Context, visit: Visitor, wish: Literal["cancel", "pause", "resume", "retry"]
) -> Response:
    """Do what a person asks for, and show the job again."""
    visit.require(Scope.WRITE)
    await believed_form(request, visit)
    identity = visit.identity
    await run_in_threadpool(ask, context.database, job.id, identity.owner_id, wish, actor=identity.actor)
    context.nudge()
    return RedirectResponse(f"/jobs/{job.id}", status_code=303)


def fit_of(context: ApiContext, job: JobView, state_id: str) -> dict[str, Any]:
    """Return the figure of a state's fit.

    Raises:
        NotFound: ``state_unknown``, ``graph_not_begun``, ``fit_missing`` where its arrays are not there or not ours.
    """
    graph = JobGraph.open(context.database, job.id)
    state, record = graph.state(state_id), graph.job
    try:
        # of several histograms the first is drawn
        arrays = arrays_of(load_arrays(graph.artifacts.get(state.arrays)), record.histograms[0].name)
    except StorageError as error:
        raise NotFound("fit_missing", f"The fit of state {state_id} cannot be drawn: {error.detail}") from error
    excluded = record.settings.get("engine", {}).get("excluded_regions", ())
    shown = FitShown(
        arrays=FitArrays(**{name: arrays[name] for name in FitArrays.__dataclass_fields__}),
        reflections=decode_reflections(arrays),
        state=state,
        axis=AxisKind(record.histograms[0].pattern.get("axis", AxisKind.TWO_THETA)),
        excluded=tuple((float(a), float(b)) for a, b in excluded),
    )
    return fit_figure(shown, PlotSettings(embedded_points=20_000))


def _parts(context: ApiContext, job: JobView, visit: Visit, course: Course) -> dict[str, Any]:
    return {
        "job": job,
        "csrf": visit.csrf,
        "review": asked_of(context.database, job) if visit.may(Scope.WRITE) else None,
        "may_delete": visit.may(Scope.WRITE),
        "wishes": wishes_of(job) if visit.may(Scope.WRITE) else (),
        "now": now_of(context.database, job),
        "course": course,
        "has_report": job.state == "completed",
        "over": _over(job),
    }


def _over(job: JobView) -> bool:
    return JobState(job.state) in FINAL


def _step(context: ApiContext, job: JobView, course: Course, ordinal: int) -> StepView:
    graph = JobGraph.open(context.database, job.id)
    attempt = graph.attempt(ordinal)
    ids = [attempt.parent, *([attempt.candidate] if attempt.candidate else [])]
    (record,) = step_records([attempt], {state: graph.state(state) for state in ids})
    rows = course.graph.rows if course.graph else ()
    on_path = any(row.ordinal == ordinal and row.status == "path" for row in rows)
    return step_view(record, planner=job.planner, on_path=on_path)
