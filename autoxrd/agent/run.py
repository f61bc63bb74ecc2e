"""Run, resume and finish a job in a directory: the sequence that the CLI and the service share."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from autoxrd.agent.candidates import settled
from autoxrd.agent.controller import Controller, Stopped
from autoxrd.agent.events import Listener, nobody
from autoxrd.agent.exchanges import read_exchanges
from autoxrd.agent.exporting import export_files
from autoxrd.agent.job import Job, SourceFile
from autoxrd.agent.planning import Connection, planner_for, recorded_endpoint
from autoxrd.agent.result import conclude, report_input
from autoxrd.engines.protocol import EngineSession
from autoxrd.engines.registry import checked_runners, get_engine, start_engine
from autoxrd.errors import EngineUnavailable, PlannerError, StorageError, UserInputError
from autoxrd.planners.dictated import Author
from autoxrd.report.build import write_report
from autoxrd.report.model import ReportInput
from autoxrd.store.artifacts import ArtifactStore
from autoxrd.store.graph import ARTIFACTS_NAME, Graph

__all__ = ["Finished", "finish_job", "prepare_job", "repeat_job", "require_same_engine", "resume_job", "start_job"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A job that came to its end.

    Args:
        report: what the report was made from.
        files: what it is -> path.
    """

    report: ReportInput
    files: dict[str, Path]


def start_job(
    job: Job,
    directory: Path,
    *,
    sources: tuple[SourceFile, ...] = (),
    session: EngineSession | None = None,
    listener: Listener = nobody,
    command: str = "",
    connection: Connection | None = None,
) -> Finished:
    """Run a new job in a directory and write its report.

    When not even the root state can be made, a directory that was made for the job is removed again.

    Args:
        job: the job.
        directory: where its graph, artifacts and report go; made where missing.
        sources: input files to keep.
        session: an engine already started; the caller closes it.
        listener: is told of each step.
        command: command line for the report.
        connection: where a planner that asks a language model gets its answers.

    Raises:
        StorageError: ``job_exists``, ``job_locked``, ``job_not_writable``.
        UserInputError, EngineError: the engine cannot use the input, or failed before there was a root.
    """
    began = time.monotonic()
    with _started(job, directory, sources, session, listener, connection) as (job, controller, graph, live):
        return _drive(controller, job, graph, live, directory, began, command)


def prepare_job(
    job: Job,
    directory: Path,
    *,
    sources: tuple[SourceFile, ...] = (),
    session: EngineSession | None = None,
    listener: Listener = nobody,
) -> None:
    """Start a job as `start_job` does, and leave it at its root state: for whoever takes the steps."""
    with _started(job, directory, sources, session, listener):
        pass


@contextmanager
def _started(
    job: Job,
    directory: Path,
    sources: tuple[SourceFile, ...],
    session: EngineSession | None,
    listener: Listener,
    connection: Connection | None = None,
) -> Iterator[tuple[Job, Controller, Graph, EngineSession]]:
    """Make the graph and its root; where that fails, a directory made for it is removed again."""
    connection = connection or Connection()
    made = not directory.exists()
    try:
        with _session(job, session) as live:
            job = settled(job, live)
            record = job.to_record(ArtifactStore(directory / ARTIFACTS_NAME), sources)
            with Graph.create(directory, record) as graph:
                graph.add_event("started", _told(connection))
                controller = Controller(job, graph, live, planner_for(job, graph, connection), listener)
                with _interruption_recorded(graph):
                    controller.prepare()
                made = False
                yield job, controller, graph, live
    except Exception:
        # an error, not an interruption: what was interrupted can be resumed, even without a root
        if made:
            shutil.rmtree(directory, ignore_errors=True)
        raise


def resume_job(
    directory: Path, *, listener: Listener = nobody, command: str = "", base_url: str | None = None, runners: int = 1
) -> Finished:
    """Go on with an interrupted job from its last recorded step, or write a finished job's report anew.

    Args:
        directory: of the job.
        listener: is told of each step.
        command: command line for the report.
        base_url: another endpoint of the language model than the one in the job's log.
        runners: largest number of engine processes; nothing recorded depends on it.

    Raises:
        NotFound: ``job_not_found``.
        StorageError: the graph is locked or damaged.
        EngineUnavailable: the engine's version is not the one the job was started with.
        UserInputError: ``replay_not_resumable``, ``runners_invalid``.
    """
    began, runners = time.monotonic(), checked_runners(runners)
    with Graph.open(directory) as graph:
        job = Job.from_record(graph.job, graph.artifacts)
        require_same_engine(job)
        finished = graph.finished() is not None
        connection = Connection(base_url or recorded_endpoint(graph))
        if finished:  # nothing is asked any more: the record has it all
            connection = Connection(recorded=read_exchanges(graph))
        elif any(event.data.get("replay") for event in graph.events()):
            raise UserInputError(
                "replay_not_resumable", "This job repeats another from its record: start the repetition again."
            )
        if not finished:
            graph.add_event("resumed", _told(connection))
        with _session(job, None, 1 if finished else runners) as live:
            controller = Controller(job, graph, live, planner_for(job, graph, connection), listener)
            return _drive(controller, job, graph, live, directory, began, command)


def repeat_job(source: Path, directory: Path, *, listener: Listener = nobody, command: str = "") -> Finished:
    """Run a job again from its record: same input, same rules, the language model's answers as recorded.

    Equal decisions give an equal graph; nothing is sent anywhere.

    Args:
        source: directory of the job that is repeated.
        directory: where the new one goes.
        listener: is told of each step.
        command: command line for the report.

    Raises:
        NotFound: ``job_not_found``.
        PlannerError: ``replay_prompt_differs``, ``replay_exhausted``: this program would ask other questions.
        EngineUnavailable: the engine's version is not the one the job was made with.
    """
    with Graph.open(source, read_only=True) as graph:
        job = Job.from_record(graph.job, graph.artifacts)
        files = graph.job.files
        sources = tuple(
            SourceFile(role.removeprefix("source."), graph.artifacts.get(artifact))
            for role, artifact in files.items()
            if role.startswith("source.")
        )
        recorded = read_exchanges(graph)
    require_same_engine(job)
    return start_job(
        job, directory, sources=sources, listener=listener, command=command, connection=Connection(recorded=recorded)
    )


def _told(connection: Connection) -> dict[str, object]:
    """Return what the log says of where answers come from; never a key."""
    if connection.recorded is not None:
        return {"replay": True}
    return {"endpoint": connection.base_url} if connection.base_url else {}


def require_same_engine(job: Job) -> None:
    """Let nobody go on with another version of the engine than the one that made the states so far.

    Raises:
        EngineUnavailable: ``engine_version_differs``.
    """
    _, version = get_engine(job.engine).available()
    if version != job.engine_version:
        raise EngineUnavailable(
            "engine_version_differs",
            f"The job was started with {job.engine} {job.engine_version}, here is {version}: "
            "install that version, or refine anew.",
        )


@contextmanager
def _session(job: Job, given: EngineSession | None, runners: int = 1) -> Iterator[EngineSession]:
    if given is not None:
        yield given
        return
    session = start_engine(job.engine, runners)
    try:
        yield session
    finally:
        session.close()


@contextmanager
def _interruption_recorded(graph: Graph) -> Iterator[None]:
    """Write an interruption into the graph before it goes on its way."""
    try:
        yield
    except KeyboardInterrupt:
        if graph.finished() is None:
            graph.add_event("interrupted", {"reason": "signal"})
        raise
    except PlannerError as error:
        if graph.finished() is None:
            graph.add_event("interrupted", {"reason": error.code})
        raise


def _drive(
    controller: Controller,
    job: Job,
    graph: Graph,
    session: EngineSession,
    directory: Path,
    began: float,
    command: str,
) -> Finished:
    """Run to the end and write the report."""
    with _interruption_recorded(graph):
        stopped = controller.run()
    return _close(stopped, job, graph, session, directory, began, command)


def finish_job(directory: Path, state: str, *, by: Author, command: str = "") -> Finished:
    """Close an open job with a state that someone holds for the result, audit it and write the report.

    Args:
        directory: of the job.
        state: id of the root or an accepted state.
        by: who ends it, for the record.
        command: command line for the report.

    Raises:
        NotFound: ``job_not_found``, ``path_unknown``: the state was rejected.
        StorageError: ``job_finished``, or the graph is locked or damaged.
    """
    began = time.monotonic()
    with Graph.open(directory) as graph:
        job = Job.from_record(graph.job, graph.artifacts)
        require_same_engine(job)
        if graph.finished() is not None:
            raise StorageError("job_finished", f"{directory} is finished: its report is in it.")
        graph.accepted_path(state)
        article = "an" if by == "agent" else "a"
        text = f"The job was ended by {article} {by}: no planner said that nothing is left to gain."
        with _session(job, None) as live:
            return _close(Stopped(state, f"ended_by_{by}", text), job, graph, live, directory, began, command)


def _close(
    stopped: Stopped,
    job: Job,
    graph: Graph,
    session: EngineSession,
    directory: Path,
    began: float,
    command: str,
) -> Finished:
    """Audit, close the graph, export the engine's files and write the report."""
    with _interruption_recorded(graph):
        conclusion = conclude(graph, job, stopped)
        engine_files, trouble = export_files(session, graph, graph.state(conclusion.state_id))
    report = report_input(
        graph,
        job,
        conclusion,
        engine_files=engine_files,
        extra_notices=trouble,
        wall_seconds=time.monotonic() - began,
        command=command,
    )
    return Finished(report, write_report(report, directory))
