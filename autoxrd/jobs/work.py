"""What is the next step of a job, and how is it done? One bounded step, recorded under the lease that allows it.

Which step comes next follows from the record alone: no graph yet: read the input; no root: prepare; not concluded:
one attempt; concluded: the report. A worker that takes a job over therefore goes on exactly where the record ends.
"""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autoxrd.agent.candidates import settled
from autoxrd.agent.controller import Controller, Stopped
from autoxrd.agent.events import JobEvent, StepStarted
from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.job import Budget, Job
from autoxrd.agent.planning import Connection, check_endpoint, planner_for
from autoxrd.agent.result import conclude
from autoxrd.agent.run import require_same_engine
from autoxrd.domain.standard import InternalStandard, KnownCell
from autoxrd.errors import NotFound
from autoxrd.jobs.modelling import model_settings
from autoxrd.jobs.publish import publish
from autoxrd.jobs.request import JobRequest
from autoxrd.jobs.reviewing import ask_first, take_answer
from autoxrd.jobs.sessions import SessionCache
from autoxrd.jobs.standard import standard_of
from autoxrd.planners.registry import planner_info
from autoxrd.settings import Settings
from autoxrd.store.service import reviews
from autoxrd.store.service.budgets import spent
from autoxrd.store.service.database import Database
from autoxrd.store.service.files import StoredFile, job_files
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.leases import Lease
from autoxrd.store.service.listing import JobView, find_job

__all__ = ["Advance", "Workshop"]

KEPT_JOBS = 8
"""Jobs whose graph is kept in memory between steps; the others are read from the record again."""


@dataclass(frozen=True, slots=True)
class Advance:
    """What a step came to.

    Args:
        step: ``input``, ``prepare``, ``ask``, ``attempt``, ``conclude`` or ``report``.
        queue: where the next step belongs; None where there is none.
    """

    step: str
    queue: str | None


@dataclass(slots=True)
class _Open:
    """A job as this process knows it between steps.

    Args:
        fence: the last claim under which it was worked on. Where the next one is not the one after it, somebody else
            has held the job in between, and all this may be out of date.
        prepared: whether there is a root.
        concluded: whether only the report is missing.
    """

    graph: JobGraph
    job: Job
    controller: Controller
    request: JobRequest
    fence: int
    prepared: bool
    concluded: bool


class Workshop:
    """Does steps; one at a time.

    Args:
        database: the service's database.
        sessions: engines kept alive.
        settings: of the service; which language model there is.
    """

    def __init__(self, database: Database, sessions: SessionCache, settings: Settings) -> None:
        self._database = database
        self._sessions = sessions
        self._settings = settings
        self._open: OrderedDict[str, _Open] = OrderedDict()

    def advance(self, lease: Lease) -> Advance:
        """Do the next step of a leased job.

        Raises:
            LeaseLost: nothing was recorded.
            UserInputError, PolicyError, EngineError: the job cannot go on.
            StorageError: the database or the disk failed; the record is as it was, or as it should be.
        """
        try:
            return self._advance(lease)
        except BaseException:
            # whatever was remembered may differ from the record now
            self.forget(lease.job_id)
            raise

    def forget(self, job_id: str) -> None:
        """Drop what is remembered of a job, its engine included."""
        self._open.pop(job_id, None)
        self._sessions.drop(job_id)

    def _advance(self, lease: Lease) -> Advance:
        opened = self._opened(lease)
        if opened is None:
            self._read_input(lease)
            return Advance("input", "engine")
        if opened.concluded:
            self._report(opened, find_job(self._database, lease.job_id, None))
            self.forget(lease.job_id)
            return Advance("report", None)
        if not opened.prepared:
            opened.controller.prepare()
            opened.prepared = True
            return Advance("prepare", _queue(opened))
        stopped = self._over_budget(opened, lease) or self._attempt(opened, lease)
        if isinstance(stopped, Advance):
            return stopped
        conclude(opened.graph, opened.job, stopped)
        opened.concluded = True
        return Advance("conclude", "engine")

    def _attempt(self, opened: _Open, lease: Lease) -> Stopped | Advance:
        """Take the next step: a person's word first, else the planner's, which may have to be asked about."""
        said = reviews.answered(self._database, lease.job_id)
        if said is not None:
            stopped = take_answer(opened.graph, opened.controller, said)
        elif opened.request.review == "each_step":
            asked = ask_first(opened.graph, opened.controller, opened.job.planner)
            if asked is True:
                return Advance("ask", None)
            stopped = asked or None
        else:
            stopped = opened.controller.step()
        return stopped or Advance("attempt", _queue(opened))

    def _opened(self, lease: Lease) -> _Open | None:
        opened = self._open.get(lease.job_id)
        if opened is not None and lease.fence > opened.fence + 1:
            del self._open[lease.job_id]
            opened = None
        if opened is None:
            try:
                graph = JobGraph.open(self._database, lease.job_id, lease)
            except NotFound:
                return None
            opened = self._open[lease.job_id] = self._begin(graph, lease)
            while len(self._open) > KEPT_JOBS:
                self.forget(next(iter(self._open)))
        opened.graph.with_lease(lease)
        opened.fence = lease.fence
        self._open.move_to_end(lease.job_id)
        return opened

    def _begin(self, graph: JobGraph, lease: Lease) -> _Open:
        job = Job.from_record(graph.job, graph.artifacts)
        require_same_engine(job)
        request = JobRequest.model_validate(dict(find_job(self._database, lease.job_id, None).request))
        session = _Lazy(self._sessions, lease.job_id, job.engine)
        planner = planner_for(job, graph, Connection(check_endpoint(None)))
        # The service keeps the wall clock of a job that many processes work on; the controller's own would not know.
        controller = Controller(job, graph, session, planner, _teller(graph), elapsed=lambda: 0.0)
        prepared, concluded = graph.root() is not None, graph.finished() is not None
        return _Open(graph, job, controller, request, lease.fence, prepared, concluded)

    def _read_input(self, lease: Lease) -> None:
        view = find_job(self._database, lease.job_id, None)
        request = JobRequest.model_validate(dict(view.request))
        files = job_files(self._database, lease.job_id, "input")
        with tempfile.TemporaryDirectory(prefix="autoxrd-input-") as folder:
            paths = {f.name: _laid_out(self._database, f, Path(folder)) for f in files}
            wanted = _load_request(request, paths, model_settings(request, self._settings))
            apart = standard_of(request, self._database, lease.job_id, Path(folder) / "standard")
            job, sources = load_job(replace(wanted, external=apart))
        job = settled(job, _Lazy(self._sessions, lease.job_id, job.engine))
        JobGraph.create(self._database, lease, job.to_record(self._database.artifacts, sources))

    def _over_budget(self, opened: _Open, lease: Lease) -> Stopped | None:
        view = find_job(self._database, lease.job_id, None)
        budgets = opened.request.budgets
        for name, used, limit in (
            ("wall", view.wall_seconds_used, budgets.wall_seconds),
            ("engine", view.engine_seconds_used, budgets.engine_seconds),
        ):
            if limit is not None and used >= limit:
                current = opened.graph.current()
                return Stopped(str(current), f"budget_{name}", f"The budget of {limit:g} s of {name} time is spent.")
        over = spent(self._database, lease.job_id)
        return None if over is None else Stopped(str(opened.graph.current()), f"budget_owner_{over.name}", over.text)

    def _report(self, opened: _Open, view: JobView) -> None:
        session = self._sessions.get(view.id, opened.job.engine)
        publish(opened.graph, opened.job, session, view, reproducible=opened.request.reproducible)


def _queue(opened: _Open) -> str:
    """Return where an attempt belongs: one that may ask a language model waits for it more than it computes."""
    return "model" if planner_info(opened.job.planner).needs_model else "engine"


class _Lazy:
    """The session of a job, taken from the cache at each use: another job may have pushed it out meanwhile."""

    def __init__(self, cache: SessionCache, job_id: str, engine: str) -> None:
        self._cache, self._job_id, self._engine = cache, job_id, engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache.get(self._job_id, self._engine), name)


def _teller(graph: JobGraph) -> Callable[[JobEvent], None]:
    """Tell the feed what is being tried; what came of it is told with its record."""

    def tell(event: JobEvent) -> None:
        if isinstance(event, StepStarted):
            action = event.action
            told = {"ordinal": event.ordinal, "kind": action.kind.value, "stage": action.stage.value}
            graph.tell("step.started", {**told, "parent": action.parent, "rationale": action.rationale})

    return tell


def _laid_out(database: Database, file: StoredFile, folder: Path) -> Path:
    """Write an input where the readers can open it: a folder by role, in it the name that was made safe at upload."""
    role, _, name = file.name.partition("/")
    place = folder / role
    place.mkdir()
    path = place / name
    path.write_bytes(database.artifacts.get(file.sha256))
    return path


def _load_request(request: JobRequest, paths: dict[str, Path], planner_settings: Mapping[str, Any]) -> Request:
    by_role = {name.partition("/")[0]: path for name, path in paths.items()}
    measurement, fit = request.measurement, request.fit
    return Request(
        pattern=by_role["pattern"],
        structures=_numbered(by_role, "structure"),
        candidates=_numbered(by_role, "candidate"),
        instrument=by_role.get("instrument"),
        anode=measurement.anode,
        wavelength=measurement.wavelength,
        radiation=measurement.radiation,
        geometry=measurement.geometry,
        monochromator_two_theta_deg=measurement.monochromator_two_theta_deg,
        two_theta_limits=fit.two_theta_limits_deg,
        excluded_regions=fit.excluded_regions_deg,
        background_terms=fit.background_terms,
        form_factors=fit.form_factors,
        engine=request.engine,
        planner=request.planner,
        planner_settings=planner_settings,
        policy=request.policy,
        budget=Budget(steps=request.budgets.steps, wall_seconds=request.budgets.wall_seconds),
        standard=_standard(request),
        known_cells=tuple(KnownCell(given.phase, given.cell) for given in request.known_cells),
        profile_match=fit.profile_match,
    )


def _numbered(by_role: Mapping[str, Path], kind: str) -> tuple[Path, ...]:
    """Return the files of a kind of which there are several, in the order in which they were sent."""
    roles = (role for role in by_role if role.startswith(f"{kind}."))
    return tuple(by_role[role] for role in sorted(roles, key=lambda role: int(role.partition(".")[2])))


def _standard(request: JobRequest) -> InternalStandard | None:
    given = request.standard
    if given is None:
        return None
    return InternalStandard(given.phase, given.weight_percent / 100.0, given.crystallinity_percent / 100.0)
