"""An external standard is an earlier job of the same owner: asked for over REST, checked, read, and then let go."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import update

from autoxrd.agent.controller import rejudge
from autoxrd.domain.lifecycle import JobState
from autoxrd.errors import NotFound, UserInputError
from autoxrd.jobs.local import QUEUES
from autoxrd.jobs.request import JobRequest
from autoxrd.jobs.standard import standard_of
from autoxrd.jobs.work import Workshop
from autoxrd.store.graph import Graph
from autoxrd.store.service import leases
from autoxrd.store.service.copying import lay_out
from autoxrd.store.service.database import Database, new_id
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.leases import Ended
from autoxrd.store.service.models import ServiceJobRow
from autoxrd.store.verify import verify
from tests.agent.apart import COMPOSITION, CRYSTALLINE, LONGER, Apart, write_apart

from .access import bearer, token
from .factory import queued
from .test_api import finished, is_problem, submit
from .working import worked_off

NOBODY = "0199aaaa-0000-7000-8000-000000000000"


def _stands(database: Database, job_id: str, **columns: Any) -> str:
    """Let a job stand as if it had been worked on."""
    with database.writing() as session:
        session.execute(update(ServiceJobRow).where(ServiceJobRow.id == job_id).values(**columns))
    return job_id


def _asked(client: TestClient, said: Mapping[str, Any], headers: dict[str, str] | None = None, **more: Any) -> Response:
    request = json.dumps({"external_standard": said, **more})
    files = [("pattern", ("p.xy", b"10 100\n11 120\n")), ("structures", ("a.cif", b"data_a\n"))]
    return client.post("/api/v1/jobs", data={"request": request}, files=files, headers=headers)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_only_a_completed_job_of_ones_own_is_taken(quiet: TestClient, database: Database) -> None:
    good = _stands(database, queued(database), state="completed", verdict="accepted")
    made = _asked(quiet, {"job": good, "crystallinity_percent": 98.5, "composition": COMPOSITION})
    assert made.status_code == 201, made.text
    kept = made.json()["request"]["external_standard"]
    assert kept["job"] == good
    assert (kept["crystallinity_percent"], kept["composition"], kept["intensity_ratio"]) == (98.5, COMPOSITION, None)

    for state in set(JobState) - {JobState.COMPLETED}:
        other = _stands(database, queued(database), state=state.value)
        answer = _asked(quiet, {"job": other})
        assert is_problem(answer, 422, "external_standard_unfinished")
        assert state.value in answer.json()["detail"]
    abstained = _stands(database, queued(database), state="completed", verdict="abstained")
    assert is_problem(_asked(quiet, {"job": abstained}), 422, "external_standard_abstained")
    match = submit_match(quiet)
    _stands(database, match, state="completed", verdict="accepted")
    assert is_problem(_asked(quiet, {"job": match}), 422, "external_standard_unusable")
    other_engine = _stands(database, queued(database), state="completed", verdict="accepted", engine="gsasii")
    assert is_problem(_asked(quiet, {"job": other_engine}), 422, "external_standard_differs")


def submit_match(client: TestClient) -> str:
    files = [("pattern", ("p.xy", b"10 100\n11 120\n")), ("structures", ("a.cif", b"data_a\n"))]
    made = client.post("/api/v1/jobs", data={"request": '{"fit": {"profile_match": true}}'}, files=files)
    return str(made.json()["id"])


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_job_of_somebody_else_is_as_one_that_never_was(quiet: TestClient, database: Database) -> None:
    good = _stands(database, queued(database), state="completed", verdict="accepted")
    eve = bearer(token(database, "eve"))
    answers = [_asked(quiet, {"job": job}, headers=eve) for job in (good, NOBODY)]
    for answer, job in zip(answers, (good, NOBODY), strict=True):
        assert is_problem(answer, 422, "external_standard_missing")
        assert job in answer.json()["detail"]
    texts = [a.json()["detail"].replace(job, "") for a, job in zip(answers, (good, NOBODY), strict=True)]
    assert texts[0] == texts[1]
    assert quiet.get("/api/v1/jobs", headers=eve).json()["jobs"] == []
    request = JobRequest.model_validate({"external_standard": {"job": good}})
    foreign = queued(database, owner="eve")
    with pytest.raises(UserInputError, match="no job"):  # the worker asks again, whoever wrote the request
        standard_of(request, database, foreign, Path("nowhere"))
    assert quiet.delete(f"/api/v1/jobs/{good}").status_code in {200, 204}
    assert is_problem(_asked(quiet, {"job": good}), 422, "external_standard_missing")


@pytest.mark.parametrize(
    ("said", "more", "code"),
    [
        ({"job": "../../etc"}, {}, "request_invalid"),
        ({}, {}, "request_invalid"),
        ({"directory": "/tmp"}, {}, "request_invalid"),
        ({"crystallinity_percent": 0}, {}, "request_invalid"),
        ({"mass_absorption_cm2_g": -1}, {}, "request_invalid"),
        ({"intensity_ratio": 0}, {}, "request_invalid"),
        ({"composition": "Al2O3:60"}, {}, "composition_invalid"),
        ({"composition": "Al2O3:100", "mass_absorption_cm2_g": 31.6}, {}, "mass_absorption_twice"),
        ({}, {"standard": {"phase": "a", "weight_percent": 20}}, "standard_twice"),
        ({}, {"fit": {"profile_match": True}}, "profile_match_alone"),
    ],
)
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_what_cannot_be_asked_is_refused_by_name(
    quiet: TestClient, database: Database, said: dict[str, Any], more: dict[str, Any], code: str
) -> None:
    job = {} if code == "request_invalid" and not (said.keys() - {"job", "directory"}) else {"job": NOBODY}
    assert is_problem(_asked(quiet, job | said, **more), 422, code)


def test_a_job_is_laid_out_as_a_directory_that_verifies(live: TestClient, database: Database, tmp_path: Path) -> None:
    """On both databases; bytes that were changed in the service are found here."""
    job = submit(live, steps=3).json()["id"]
    assert finished(live, job)["state"] == "completed"
    lay_out(database, job, tmp_path / "whole")
    report = verify(tmp_path / "whole", judge=None)
    assert report.ok, report.findings
    assert (report.n_states, report.n_edges, report.finished) == (4, 3, True)
    graph = JobGraph.open(database, job)
    assert report.graph_root == graph.root_hash()
    with Graph.open(tmp_path / "whole", read_only=True) as copy:
        assert copy.export() == graph.export()
    artifact = database.artifacts.path(graph.state(str(graph.current())).snapshot)
    artifact.chmod(0o644)
    artifact.write_bytes(b"changed")
    lay_out(database, job, tmp_path / "changed")
    assert not verify(tmp_path / "changed", judge=None).ok
    artifact.unlink()
    lay_out(database, job, tmp_path / "gone")
    assert {f.code for f in verify(tmp_path / "gone", judge=None).findings} >= {"artifact_missing"}
    with pytest.raises(NotFound):
        lay_out(database, new_id(), tmp_path / "none")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Apart:
    return write_apart(tmp_path_factory.mktemp("apart"), "rietx")


def _send(client: TestClient, pattern: Path, cif: Path, **request: Any) -> str:
    body = json.dumps({"measurement": {"anode": "Cu"}, **request})
    parts = [("pattern", (pattern.name, pattern.read_bytes())), ("structures", (cif.name, cif.read_bytes()))]
    made = client.post("/api/v1/jobs", data={"request": body}, files=parts)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


@pytest.mark.real
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_amorphous_share_comes_out_and_stays_when_the_standard_goes(
    quiet: TestClient, database: Database, shop: Workshop, files: Apart, tmp_path: Path
) -> None:
    standard = _send(quiet, files.standard, files.cif)
    worked_off(database, shop)
    said = {"job": standard, "composition": COMPOSITION, "intensity_ratio": LONGER}
    job = _send(quiet, files.specimen, files.cif, external_standard=said)
    late = _send(quiet, files.specimen, files.cif, external_standard=said, priority=-5)
    while quiet.get(f"/api/v1/jobs/{job}").json()["state"] == "queued":  # its input is read, and the standard with it
        lease = leases.claim(database, "w", QUEUES)
        assert lease is not None
        shop.advance(lease)
        leases.release(database, lease, Ended(queue="engine"))
    assert quiet.delete(f"/api/v1/jobs/{standard}").status_code in {200, 204}
    worked_off(database, shop)
    assert quiet.get(f"/api/v1/jobs/{job}").json()["state"] == "completed"
    found = quiet.get(f"/api/v1/jobs/{job}/report.json").json()["amorphous"]
    assert (found["method"], found["standard"], found["intensity_origin"]) == ("external", "corundum", "given")
    value, esd = found["weight_fraction"]["value"], found["weight_fraction"]["esd"]
    assert abs(value - (1.0 - CRYSTALLINE)) < 3 * esd < 0.06
    record = JobGraph.open(database, job).job.settings["external_standard"]
    assert record["source"]["graph_root"] == JobGraph.open(database, standard).root_hash()
    lay_out(database, job, tmp_path / "job")
    assert verify(tmp_path / "job", judge=rejudge).ok, "with every decision, and no standard there"
    error = quiet.get(f"/api/v1/jobs/{late}").json()["error"]
    assert error["code"] == "external_standard_missing", "its turn came when the standard was gone"


@pytest.mark.real
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_an_unlike_pair_and_a_damaged_standard_fail_with_a_sentence(
    quiet: TestClient, database: Database, shop: Workshop, files: Apart
) -> None:
    standard = _send(quiet, files.standard, files.cif)
    worked_off(database, shop)
    unlike = _send(quiet, files.specimen, files.cif, external_standard={"job": standard}, measurement={"anode": "Co"})
    worked_off(database, shop)
    error = quiet.get(f"/api/v1/jobs/{unlike}").json()["error"]
    assert error["code"] == "external_standard_differs"
    assert "1.789" in error["detail"]
    assert standard in error["detail"]
    graph = JobGraph.open(database, standard)
    arrays = database.artifacts.path(graph.state(str(graph.current())).arrays)
    arrays.chmod(0o644)
    arrays.write_bytes(arrays.read_bytes()[:-1])
    damaged = _send(quiet, files.specimen, files.cif, external_standard={"job": standard})
    worked_off(database, shop)
    assert quiet.get(f"/api/v1/jobs/{damaged}").json()["error"]["code"] == "external_standard_damaged"


def test_one_key_stands_for_one_standard(quiet: TestClient, database: Database) -> None:
    jobs = [_stands(database, queued(database), state="completed", verdict="accepted") for _ in range(2)]
    headers = {"Idempotency-Key": "k"}
    first, again, other = (_asked(quiet, {"job": job}, headers=headers) for job in (jobs[0], jobs[0], jobs[1]))
    assert first.json()["id"] == again.json()["id"]
    assert is_problem(other, 422, "idempotency_key_reused")
    assert quiet.delete(f"/api/v1/jobs/{jobs[0]}").status_code in {200, 204}
    later = _asked(quiet, {"job": jobs[0]}, headers=headers)
    assert (later.status_code, later.json()["id"]) == (201, first.json()["id"]), "sent again, it is no new job"
    assert later.headers["idempotent-replayed"] == "true"
    assert is_problem(_asked(quiet, {"job": jobs[0]}), 422, "external_standard_missing")
