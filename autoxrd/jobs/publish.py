"""How does a concluded job get its report? Rendered from the record, made known in one transaction."""

from __future__ import annotations

import mimetypes
from dataclasses import replace

from autoxrd.agent.exporting import export_files
from autoxrd.agent.job import Job
from autoxrd.agent.result import concluded, report_input
from autoxrd.engines.protocol import EngineSession
from autoxrd.errors import StorageError
from autoxrd.report.build import complete_files
from autoxrd.report.model import ReportInput
from autoxrd.store.service.files import NewFile
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.listing import JobView

__all__ = ["publish"]


def publish(graph: JobGraph, job: Job, session: EngineSession, view: JobView, *, reproducible: bool) -> None:
    """Write the report of a concluded job and complete it.

    Args:
        graph: the job's graph, leased.
        job: the job.
        session: its engine, for the engine's own files.
        view: where it stands.
        reproducible: leave dates and durations out.

    Raises:
        StorageError: ``job_open``, there is nothing to report yet; or the disk refused.
        LeaseLost: somebody else holds the job now.
    """
    finish = graph.finished()
    if finish is None or finish.final_state is None:
        raise StorageError("job_open", "The job has not been concluded yet: there is nothing to report.")
    conclusion = concluded(finish)
    engine_files, trouble = export_files(session, graph, graph.state(conclusion.state_id))
    report = report_input(
        graph,
        job,
        conclusion,
        engine_files=engine_files,
        extra_notices=trouble,
        wall_seconds=view.wall_seconds_used,
        command=view.title,
    )
    if reproducible:
        report = _without_times(report)
    files = {}
    for name, data in complete_files(report).items():
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        files[name] = NewFile(graph.artifacts.put(data), len(data), kind)
    graph.complete(files)


def _without_times(report: ReportInput) -> ReportInput:
    steps = tuple(replace(step, seconds=0.0) for step in report.steps)
    return replace(report, job=replace(report.job, created=""), steps=steps, engine_seconds=0.0, wall_seconds=0.0)
