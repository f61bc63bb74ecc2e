"""What is a job doing right now, and why? From its state and the end of its feed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autoxrd.domain.action import ActionKind
from autoxrd.domain.lifecycle import JobState, Trigger, allowed
from autoxrd.errors import NotFound
from autoxrd.report.model import Verdict
from autoxrd.report.words import VERDICT_WORDS, humanised, kind_words
from autoxrd.store.service.database import Database
from autoxrd.store.service.feed import FeedEvent, events_after
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.listing import JobView
from autoxrd.store.service.reviews import list_reviews

__all__ = ["Now", "now_of", "wishes_of"]

LOOK_BACK = 30
"""Events looked at from the end; what runs is told by the last few."""

_RESTING = {
    JobState.QUEUED: ("Waiting for its turn", "A worker takes it up as soon as one is free.", "idle"),
    JobState.WAITING: ("Paused", "Nothing runs. Resume it to go on from the last recorded step.", "warn"),
    JobState.CANCELLING: ("Cancelling", "The step in flight and its engine are being stopped.", "warn"),
    JobState.CANCELLED: ("Cancelled", "All recorded steps are kept. Resume it to go on from there.", "idle"),
}
_AFTERWARDS = {
    JobState.FAILED: "Correct the input and start a new refinement, or retry where the cause has gone.",
    JobState.CRASHED: "The machine failed, not the data. Retry goes on from the last recorded step.",
}
_WISHES = (("pause", Trigger.PAUSE), ("resume", Trigger.RESUME), ("retry", Trigger.RETRY), ("cancel", Trigger.CANCEL))


@dataclass(frozen=True, slots=True)
class Now:
    """What a job does, or how it ended.

    Args:
        title, text: in words; the text is the planner's own rationale while a step runs.
        tone: ``idle``, ``live``, ``good``, ``warn`` or ``bad``.
        reasons, warnings: sentences of a verdict.
        stage: of the step that runs.
    """

    title: str
    text: str
    tone: str
    stage: str = ""
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def wishes_of(job: JobView) -> tuple[str, ...]:
    """Return what a person may ask of a job as it stands."""
    state = JobState(job.state)
    return tuple(wish for wish, trigger in _WISHES if allowed(state, trigger))


def now_of(database: Database, job: JobView) -> Now:
    """Say what a job is doing, or how it ended."""
    state = JobState(job.state)
    if state is JobState.WAITING and any(r.status == "asked" for r in list_reviews(database, job.id)):
        return Now("It is your turn", "The planner asks before it takes the next step.", "warn")
    if state in _RESTING:
        return Now(*_RESTING[state])
    if job.error is not None:
        detail = str(job.error.get("detail", ""))
        return Now(humanised(state.value), detail, "bad", reasons=(_AFTERWARDS.get(state, ""),))
    if state is JobState.COMPLETED:
        return _verdict(database, job)
    return _step(events_after(database, job.id, max(0, job.feed_last - LOOK_BACK)))


def _step(events: Sequence[FeedEvent]) -> Now:
    last = next((e for e in reversed(events) if e.kind.startswith(("step.", "job.concluded"))), None)
    if last is None:
        return Now("Preparing", "The files are read and checked, and the engine computes the first pattern.", "live")
    if last.kind == "job.concluded":
        return Now("Writing the report", "No step is left to try: the final audit is done.", "live")
    if last.kind == "step.started":
        kind = kind_words(ActionKind(str(last.data["kind"])))
        title = f"Step {last.data['ordinal']}: {kind}"
        return Now(title, str(last.data["rationale"]), "live", stage=humanised(str(last.data["stage"])))
    return Now("Choosing the next step", "The residual is measured; the planner weighs what it speaks for.", "live")


def _verdict(database: Database, job: JobView) -> Now:
    said: Mapping[str, Any] = {}
    try:
        finish = JobGraph.open(database, job.id).finished()
        said = {} if finish is None else finish.verdict
    except NotFound:
        pass
    verdict = Verdict(job.verdict) if job.verdict in set(Verdict) else None
    tone = {Verdict.ACCEPTED: "good", Verdict.ACCEPTED_WITH_WARNINGS: "warn"}.get(verdict, "bad") if verdict else "idle"
    title = VERDICT_WORDS[verdict] if verdict else "Completed"
    return Now(title, "", tone, reasons=_texts(said, "reasons"), warnings=_texts(said, "warnings"))


def _texts(said: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(str(text) or humanised(str(code)) for code, text in said.get(name, ()))
