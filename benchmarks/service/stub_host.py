"""A host whose steps cost 50 ms and no mathematics: the real loop, lease, graph and artifacts around a sleep.

What it records follows from the job's id-free request and the ordinal alone, so that two runs of a job can be compared
byte for byte. The request's ``budgets.steps`` says how many attempts a job has; a title ``poison`` kills the host,
``stuck`` hangs in an engine process.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from autoxrd.answering import own_answers
from autoxrd.domain.action import Action, ActionKind, Evidence, Prediction, Stage
from autoxrd.domain.decision import Decision
from autoxrd.domain.state import Complexity, Convergence, Feature, FitState, ParameterValue, Quality
from autoxrd.engines.launcher import Launcher
from autoxrd.errors import NotFound, UserInputError
from autoxrd.jobs.host import serve, step_aside
from autoxrd.jobs.work import Advance
from autoxrd.primitives import canonical_json, sha256_hex
from autoxrd.settings import Settings
from autoxrd.store.records import HistogramRecord, JobRecord
from autoxrd.store.service.database import Database
from autoxrd.store.service.files import NewFile
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.leases import Lease
from autoxrd.store.service.listing import JobView, find_job

STEP_SECONDS = float(os.environ.get("AUTOXRD_STUB_SECONDS", "0.05"))
N_FEATURES = 20


@dataclass
class Known:
    """What this process remembers of a job; out of date when somebody else has held it in between."""

    fence: int
    graph: JobGraph
    current: str | None
    n_done: int
    finished: bool


class Stub:
    """Does steps of jobs that are not refinements."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, Known] = {}
        self._views: dict[str, JobView] = {}

    def advance(self, lease: Lease) -> Advance:
        try:
            return self._advance(lease)
        except BaseException:
            self._known.pop(lease.job_id, None)
            raise

    def _advance(self, lease: Lease) -> Advance:
        view = self._views.get(lease.job_id) or find_job(self._database, lease.job_id, None)
        self._views[lease.job_id] = view
        if view.title == "unreadable":
            raise UserInputError("pattern_unreadable", "The pattern cannot be read.")
        known = self._remembered(lease)
        if known is None:
            JobGraph.create(self._database, lease, self._record(view))
            return Advance("input", "engine")
        graph = known.graph
        if known.finished:
            data = canonical_json(graph.export()).encode()
            graph.complete({"graph.json": NewFile(graph.artifacts.put(data), len(data), "application/json")})
            del self._known[lease.job_id]
            return Advance("report", None)
        if known.current is None:
            known.current = graph.add_root(self._state(view, 0), {"seconds": 0.0})
            return Advance("prepare", "engine")
        if known.n_done >= view.request["budgets"]["steps"]:
            graph.finish(known.current, {"verdict": "accepted", "reasons": [], "warnings": [], "notes": []})
            known.finished = True
            return Advance("conclude", "engine")
        known.current = self._attempt(graph, view, known.current, known.n_done + 1)
        known.n_done += 1
        return Advance("attempt", "engine")

    def _attempt(self, graph: JobGraph, view: JobView, parent: str, ordinal: int) -> str | None:
        began = time.monotonic()
        time.sleep(STEP_SECONDS)
        if view.title == "poison":
            os._exit(1)
        if view.title == "stuck":
            Launcher((sys.executable, "-c", "import time; time.sleep(600)")).start().request({}, 600.0)
        action = Action(
            kind=ActionKind.ZERO,
            stage=Stage.INSTRUMENT,
            parameters=("instrument.zero",),
            rationale="because the stub says so",
            evidence=(Evidence(feature="f0", value=0.0, comparison="<", threshold=1.0, source=parent),),
            predictions=(Prediction(metric="position.zero", direction="toward_zero", minimum_effect=0.02),),
            parent=parent,
        )
        decision = Decision(
            accepted=True,
            numerically_better=True,
            mechanism_supported=True,
            admissible=True,
            reasons=(),
            policy_name="stub",
            policy_hash="0" * 64,
        )
        seconds = time.monotonic() - began
        telemetry = {"seconds": seconds, "engine_seconds": seconds}
        state = self._state(view, ordinal)
        attempt = graph.record(parent, action, decision, state, planner={"name": "stub"}, telemetry=telemetry)
        return attempt.candidate

    def _remembered(self, lease: Lease) -> Known | None:
        known = self._known.get(lease.job_id)
        if known is None or lease.fence > known.fence + 1:
            try:
                graph = JobGraph.open(self._database, lease.job_id, lease)
            except NotFound:
                return None
            finished = graph.finished() is not None
            known = Known(lease.fence, graph, graph.current(), graph.n_attempts(), finished)
            self._known[lease.job_id] = known
        known.graph.with_lease(lease)
        known.fence = lease.fence
        return known

    def _record(self, view: JobView) -> JobRecord:
        return JobRecord(
            histograms=(HistogramRecord(name="1", pattern={"title": view.title}, instrument={}),),
            structures=(),
            settings={},
            engine={"name": "stub", "version": "1"},
            planner={"name": "stub"},
            policy={"name": "stub"},
        )

    def _state(self, view: JobView, ordinal: int) -> FitState:
        put = self._database.artifacts.put
        seed = f"{view.title}/{ordinal}"
        rwp = 0.5 / (1 + ordinal)
        numbers = [int(sha256_hex(f"{seed}/{i}".encode())[:8], 16) / 2**32 for i in range(N_FEATURES)]
        return FitState(
            stage=Stage.INSTRUMENT,
            engine="stub",
            engine_version="1",
            snapshot=put(f"snapshot {seed}".encode()),
            arrays=put(f"arrays {seed}".encode()),
            quality=Quality(
                rp=rwp,
                rwp=rwp,
                rexp=0.01,
                gof=rwp / 0.01,
                chi2=rwp * 1e4,
                rwp_no_background=rwp,
                n_points=1000,
                n_parameters=5,
                abs_residual=rwp,
                r_bragg={},
            ),
            features={f"f{i}": Feature(value=v, esd=v, significance=v, n_used=1) for i, v in enumerate(numbers)},
            violations=(),
            complexity=Complexity(n_free=5, n_points=1000),
            convergence=Convergence(converged=True, cycles=3, status="converged"),
            parameters=tuple(ParameterValue(name=f"p{i}", value=v, esd=v, unit="1") for i, v in enumerate(numbers)),
            phases=(),
        )


def main() -> None:
    """Run the loop as `autoxrd.jobs.host` does, with the stub in place of the workshop."""
    step_aside()
    answers = own_answers()
    settings = Settings()
    with Database(settings.database(), settings.artifacts_dir(), durable=False) as database:
        serve(Stub(database).advance, sys.stdin, answers)


if __name__ == "__main__":
    main()
