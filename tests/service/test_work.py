"""Workers that take turns with one job decide and record what one alone would: nothing twice, nothing from memory."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from autoxrd.jobs.local import QUEUES
from autoxrd.jobs.request import Budgets, JobRequest, KnownCell, Measurement
from autoxrd.jobs.sessions import SessionCache
from autoxrd.jobs.work import Workshop
from autoxrd.primitives import canonical_json
from autoxrd.settings import Settings
from autoxrd.store.service import leases
from autoxrd.store.service.database import Database
from autoxrd.store.service.files import NewFile, job_file
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.keys import ensure_owner
from autoxrd.store.service.leases import Ended
from autoxrd.store.service.listing import find_job
from autoxrd.store.service.submission import NewJob, submit

pytestmark = pytest.mark.real


def real_job(
    database: Database,
    paths: tuple[Path, Path],
    *,
    steps: int = 3,
    review: Literal["none", "each_step"] = "none",
    known_cells: tuple[KnownCell, ...] = (),
) -> str:
    request = JobRequest(
        measurement=Measurement(anode="Cu"),
        budgets=Budgets(steps=steps),
        review=review,
        reproducible=True,
        known_cells=known_cells,
    )
    files = {}
    for role, path in zip(("pattern", "structure.1"), paths, strict=True):
        data = path.read_bytes()
        files[f"{role}/{path.name}"] = NewFile(database.artifacts.put(data), len(data))
    job = NewJob(
        owner_id=ensure_owner(database, "ada"),
        title="fluorite",
        engine="rietx",
        planner="rules",
        priority=0,
        request=canonical_json(request.model_dump(mode="json")),
        request_hash="0" * 64,
        queue="light",
        files=files,
    )
    return submit(database, job).job.id


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_two_workers_in_turn_leave_what_one_leaves(database: Database, small_job: tuple[Path, Path]) -> None:
    caches = [SessionCache(2), SessionCache(2)]
    shops = [Workshop(database, cache, Settings()) for cache in caches]
    bundles, roots = [], []
    try:
        for turns in ((0,), (0, 1, 1, 0)):
            job, n = real_job(database, small_job), 0
            while (lease := leases.claim(database, f"w{turns[n % len(turns)]}", QUEUES)) is not None:
                done = shops[turns[n % len(turns)]].advance(lease)
                leases.release(database, lease, Ended(queue=done.queue))
                n += 1
            view = find_job(database, job, None)
            assert (view.state, view.steps_used) == ("completed", 3)
            bundles.append(job_file(database, job, "report", "bundle.zip").sha256)
            roots.append(JobGraph.open(database, job).root_hash())
    finally:
        for cache in caches:
            cache.close()
    assert len(set(roots)) == 1
    assert len(set(bundles)) == 1


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_request_may_state_a_certified_cell(database: Database, small_job: tuple[Path, Path]) -> None:
    cache = SessionCache(1)
    job = real_job(database, small_job, steps=1, known_cells=(KnownCell(phase="Fluorite", cell=(5.4655,)),))
    try:
        while (lease := leases.claim(database, "w", QUEUES)) is not None:
            done = Workshop(database, cache, Settings()).advance(lease)
            leases.release(database, lease, Ended(queue=done.queue))
    finally:
        cache.close()
    graph = JobGraph.open(database, job)
    assert [item["phase"] for item in graph.job.settings["known_cells"]] == ["fluorite"]
    for node in graph.states():
        assert node.state.features["known_cell.fluorite"].value == 5.4655
