"""Candidates over REST: parts and names, what is refused, and the phases that the command line finds too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response

from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.run import start_job
from autoxrd.jobs.work import Workshop
from autoxrd.primitives import sha256_hex
from autoxrd.store.graph import Graph
from autoxrd.store.service.database import Database
from autoxrd.store.service.job_graph import JobGraph
from tests.agent.mixture import write_mixture
from tests.agent.small import CIF

from .test_api import is_problem
from .working import worked_off

SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
PATTERN = ("p.xy", b"10 100\n11 120\n")
PERICLASE = (
    CIF.replace("fluorite", "periclase")
    .replace("5.4631", "4.2117")
    .replace("Ca Ca 0 0 0 1 0.006", "Mg Mg 0 0 0 1 0.004")
    .replace("F F 0.25 0.25 0.25 1 0.009", "O O 0.5 0.5 0.5 1 0.005")
)


def _sent(
    client: TestClient, structures: Sequence[str] = (), candidates: Sequence[str] = (), **request: Any
) -> Response:
    given = {"structures": structures, "candidates": candidates}
    files = [("pattern", PATTERN)]
    files += [(part, (name, f"data_{name}\n".encode())) for part, names in given.items() for name in names]
    return client.post("/api/v1/jobs", data={"request": json.dumps(request)}, files=files)


def _inputs(client: TestClient, job_id: str) -> list[str]:
    return [f["name"] for f in client.get(f"/api/v1/jobs/{job_id}/files").json() if f["role"] == "input"]


@SQLITE
def test_candidates_are_inputs_beside_the_structures(quiet: TestClient) -> None:
    made = _sent(quiet, ["a.cif"], ["b.cif", "c.cif"])
    assert made.status_code == 201, made.text
    assert made.json()["title"] == "p.xy"
    names = ["candidate.1/b.cif", "candidate.2/c.cif", "pattern/p.xy", "structure.1/a.cif"]
    assert _inputs(quiet, made.json()["id"]) == names
    digests = {f["name"]: f["sha256"] for f in quiet.get(f"/api/v1/jobs/{made.json()['id']}/files").json()}
    assert digests["candidate.2/c.cif"] == sha256_hex(b"data_c.cif\n")
    alone = _sent(quiet, [], ["b.cif"])
    assert _inputs(quiet, alone.json()["id"]) == ["candidate.1/b.cif", "pattern/p.xy"]
    assert _sent(quiet, [f"{i}.cif" for i in range(25)], [f"c{i}.cif" for i in range(25)]).status_code == 201


@SQLITE
def test_uploads_are_named_as_candidates(quiet: TestClient) -> None:
    def uploaded(name: str, data: bytes) -> dict[str, str]:
        answer = quiet.post("/api/v1/artifacts", files={"file": (name, data)})
        assert answer.status_code == 201, answer.text
        return {"artifact": answer.json()["sha256"], "name": name}

    pattern, cif = uploaded(*PATTERN), uploaded("a.cif", b"data_a\n")
    made = quiet.post("/api/v1/jobs", json={"inputs": {"pattern": pattern, "candidates": [cif, cif]}})
    assert made.status_code == 201, made.text
    assert _inputs(quiet, made.json()["id"]) == ["candidate.1/a.cif", "candidate.2/a.cif", "pattern/p.xy"]
    for wrong in ({}, {"structures": [cif] * 25, "candidates": [cif] * 26}, {"candidates": [cif] * 51}):
        answer = quiet.post("/api/v1/jobs", json={"inputs": {"pattern": pattern, **wrong}})
        assert is_problem(answer, 422, "request_invalid"), wrong
    answer = quiet.post(
        "/api/v1/jobs", json={"fit": {"profile_match": True}, "inputs": {"pattern": pattern, "candidates": [cif]}}
    )
    assert is_problem(answer, 422, "profile_match_candidates")


@SQLITE
def test_what_cannot_be_is_refused_at_once(quiet: TestClient) -> None:
    assert is_problem(_sent(quiet), 422, "part_missing")
    assert "'candidates'" in _sent(quiet).json()["detail"]
    many = [f"{i}.cif" for i in range(26)]
    assert is_problem(_sent(quiet, many, many[:25]), 422, "part_missing")
    assert "50" in _sent(quiet, many, many[:25]).json()["detail"]
    match = {"fit": {"profile_match": True}}
    assert is_problem(_sent(quiet, ["a.cif"], ["b.cif"], **match), 422, "profile_match_candidates")
    assert _sent(quiet, ["a.cif"], **match).status_code == 201
    cell = {"known_cells": [{"phase": "b"}]}
    assert is_problem(_sent(quiet, [], ["b.cif"], **cell), 422, "known_cell_unknown")
    assert quiet.get("/api/v1/jobs").json()["jobs"][1:] == []


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A pattern of fluorite and halite, the CIFs of both and that of periclase, which is not there."""
    folder = tmp_path_factory.mktemp("mixture")
    paths = write_mixture(folder)
    (folder / "periclase.cif").write_text(PERICLASE)
    return [*paths, folder / "periclase.cif"]


def _done(client: TestClient, database: Database, shop: Workshop, mixture: list[Path], **request: Any) -> str:
    """Submit the mixture with its candidates and do all steps, as a worker would; return the id."""
    parts = [("pattern", (mixture[0].name, mixture[0].read_bytes()))]
    parts += [("candidates", (path.name, path.read_bytes())) for path in mixture[:0:-1]]
    body = json.dumps({"measurement": {"anode": "Cu"}, **request})
    made = client.post("/api/v1/jobs", data={"request": body}, files=parts)
    assert made.status_code == 201, made.text
    worked_off(database, shop)
    return str(made.json()["id"])


@pytest.mark.real
@SQLITE
def test_the_phases_are_found_as_on_the_command_line(
    quiet: TestClient, database: Database, shop: Workshop, mixture: list[Path], tmp_path: Path
) -> None:
    job_id = _done(quiet, database, shop, mixture)
    job = quiet.get(f"/api/v1/jobs/{job_id}").json()
    assert job["state"] == "completed", job
    report = quiet.get(f"/api/v1/jobs/{job_id}/report.json").json()
    assert {phase["name"] for phase in report["phases"]} == {"fluorite", "halite"}
    ranked = report["details"]["candidate_sets"]
    assert set(ranked[0]["phases"]) == {"fluorite", "halite"}
    assert len(ranked) > 1
    assert [one["behind"] for one in ranked] == sorted(one["behind"] for one in ranked)
    wanted = Request(mixture[0], candidates=tuple(mixture[:0:-1]), anode="Cu")
    loaded, sources = load_job(wanted)
    start_job(loaded, tmp_path / "alone", sources=sources)
    with Graph.open(tmp_path / "alone", read_only=True) as alone:
        assert alone.root_hash() == JobGraph.open(database, job_id).root_hash()
        assert str(alone.current()) == job["current_state"]
    (left_out,) = [n["text"] for n in report["details"]["qc_notices"] if n["code"] == "candidates_left_out"]
    assert "periclase" in left_out


@pytest.mark.real
@SQLITE
def test_without_a_line_in_range_the_job_fails_with_the_sentence(
    quiet: TestClient, database: Database, shop: Workshop, mixture: list[Path]
) -> None:
    job_id = _done(quiet, database, shop, mixture, fit={"two_theta_limits_deg": [24.5, 26.5]})
    job = quiet.get(f"/api/v1/jobs/{job_id}").json()
    assert (job["state"], job["error"]["code"]) == ("failed", "no_line_in_range")
    assert "No candidate has a line" in job["error"]["detail"]
