"""What has a job done so far, for drawing? Its last attempts with their Rwp, whether it is over or goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autoxrd.domain.action import ActionKind
from autoxrd.report.figures import StepPoint, step_curve
from autoxrd.report.graphview import DrawnStep, GraphDrawing, draw_steps
from autoxrd.report.parameters import accepted_path
from autoxrd.report.words import kind_words
from autoxrd.store.service.database import Database
from autoxrd.store.service.listing import JobView
from autoxrd.store.service.steps import StepView, list_steps, released_by

__all__ = ["DRAWN", "Course", "course_of"]

DRAWN = 250
"""Attempts that are drawn, the last ones: a longer drawing could not be read."""


@dataclass(frozen=True, slots=True)
class Course:
    """A job's attempts as drawn.

    Args:
        steps: the last attempts.
        graph: where each is drawn; None where there is no root yet.
        curve: Rwp after each, for the plot.
        earlier: how many attempts before these are not drawn.
        best: the attempt that stands for the result so far, None for the root.
    """

    steps: tuple[StepView, ...]
    graph: GraphDrawing | None
    curve: dict[str, Any]
    earlier: int
    best: int | None


def course_of(database: Database, job: JobView) -> Course:
    """Return the course of a job."""
    after = max(0, job.steps_used - DRAWN)
    first = list_steps(database, job.id, limit=1).steps
    if not first:
        return Course((), None, step_curve([], path=frozenset(), start=None, rexp=None), 0, None)
    steps = tuple(list_steps(database, job.id, after=after, limit=DRAWN).steps)
    released = released_by(database, job.id, after=after)
    rwp = {step.state: step.rwp for step in (*first, *steps) if step.state}
    drawn = [_drawn(step, rwp, released.get(step.ordinal, ())) for step in steps]
    final = job.current_state or ""
    path = frozenset(step.ordinal for step in accepted_path(drawn, final))
    points = [StepPoint(s.ordinal, s.kind, s.rwp, s.status == "accepted") for s in steps]
    curve = step_curve(points, path=path, start=first[0].rwp if after == 0 else None, rexp=_rexp(job))
    graph = draw_steps(drawn, final=final, start_rwp=first[0].rwp)
    return Course(steps, graph, curve, after, max(path, default=None))


def _drawn(step: StepView, rwp: dict[str, float | None], released: tuple[str, ...]) -> DrawnStep:
    return DrawnStep(
        ordinal=step.ordinal,
        parent_state=step.parent or "",
        candidate_state=step.state,
        accepted=step.status == "accepted",
        title=kind_words(ActionKind(step.kind)),
        parameters=released,
        rwp_before=rwp.get(step.parent or ""),
        rwp_after=step.rwp,
    )


def _rexp(job: JobView) -> float | None:
    """Return Rexp of the state that stands for the result, from its Rwp and goodness of fit."""
    return None if job.rwp is None or not job.gof else job.rwp / job.gof
