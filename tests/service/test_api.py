"""The REST interface over a real application, with the local dispatcher and a stub in place of the engine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response

from autoxrd.server.app import build_app
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database
from autoxrd.store.service.keys import Scope

from .access import bearer, token

PATTERN = ("pattern.xy", b"10 100\n10.1 120\n")
CIF = ("a.cif", b"data_a\n")


def submit(
    client: TestClient, *, title: str = "job", steps: int = 2, headers: dict[str, str] | None = None
) -> Response:
    request = json.dumps({"title": title, "budgets": {"steps": steps}})
    files = [("pattern", PATTERN), ("structures", CIF)]
    return client.post("/api/v1/jobs", data={"request": request}, files=files, headers=headers)


def finished(client: TestClient, job_id: str, seconds: float = 60.0) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while True:
        job: dict[str, Any] = client.get(f"/api/v1/jobs/{job_id}").json()
        if job["finished_at"] or time.monotonic() > deadline:
            return job
        time.sleep(0.05)


def is_problem(answer: Response, status: int, code: str) -> bool:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert body["type"] == f"urn:autoxrd:problem:{code}"
    assert body["instance"] == answer.headers["x-request-id"]
    return answer.status_code == body["status"] == status


def test_from_submission_to_report(live: TestClient) -> None:
    made = submit(live, title="corundum")
    assert made.status_code == 201
    job_id = made.json()["id"]
    assert made.headers["location"] == f"/api/v1/jobs/{job_id}"
    job = finished(live, job_id)
    assert (job["state"], job["verdict"], job["used"]["steps"]) == ("completed", "accepted", 2)
    steps = live.get(f"/api/v1/jobs/{job_id}/graph").json()["steps"]
    assert [s["status"] for s in steps] == ["root", "accepted", "accepted"]
    assert [s["parent"] for s in steps[1:]] == [s["state"] for s in steps[:-1]]
    state = live.get(f"/api/v1/jobs/{job_id}/states/{steps[-1]['state']}").json()
    assert state["state"]["quality"]["rwp"] == job["rwp"]
    files = {f["name"]: f for f in live.get(f"/api/v1/jobs/{job_id}/files").json()}
    assert set(files) == {"pattern/pattern.xy", "structure.1/a.cif", "graph.json"}
    got = live.get(f"/api/v1/jobs/{job_id}/files/graph.json")
    assert got.json()["finish"]["final_state"] == job["current_state"]
    again = live.get(f"/api/v1/jobs/{job_id}/files/graph.json", headers={"If-None-Match": got.headers["etag"]})
    assert again.status_code == 304
    artifact = live.get(f"/api/v1/jobs/{job_id}/artifacts/{state['state']['snapshot']}")
    assert artifact.content == b"snapshot corundum/2"
    assert artifact.headers["content-disposition"].startswith("attachment")


def test_fifty_equal_posts_with_one_key_make_one_job(quiet: TestClient) -> None:
    with ThreadPoolExecutor(25) as pool:
        headers = {"Idempotency-Key": "k-1"}
        answers = list(pool.map(lambda _: submit(quiet, headers=headers), range(50)))
    assert {a.status_code for a in answers} == {201}
    assert len({a.json()["id"] for a in answers}) == 1
    assert sum("idempotent-replayed" not in a.headers for a in answers) == 1
    assert len(quiet.get("/api/v1/jobs").json()["jobs"]) == 1
    other = submit(quiet, title="another", headers={"Idempotency-Key": "k-1"})
    assert is_problem(other, 422, "idempotency_key_reused")


def test_every_error_is_a_problem(quiet: TestClient, settings: Settings) -> None:
    get, post = quiet.get, quiet.post
    files = [("pattern", PATTERN), ("structures", CIF)]
    assert is_problem(get("/api/v1/jobs/nothing"), 404, "job_not_found")
    assert is_problem(get("/nothing"), 404, "not_found")
    assert is_problem(quiet.put("/api/v1/jobs"), 405, "method_not_allowed")
    assert is_problem(get("/api/v1/jobs?limit=0"), 422, "request_invalid")
    assert is_problem(post("/api/v1/jobs", content=b"x", headers={"content-type": "text/plain"}), 415, "media_type")
    assert is_problem(post("/api/v1/jobs", json={"unknown": 1}), 422, "request_invalid")
    assert is_problem(
        post("/api/v1/jobs", content=b"{", headers={"content-type": "application/json"}), 422, "request_invalid"
    )
    assert is_problem(post("/api/v1/jobs", files=files[:1]), 422, "part_missing")
    assert is_problem(post("/api/v1/jobs", files=[*files, ("virus", CIF)]), 422, "part_unknown")
    for wrong in ({"engine": "x"}, {"planner": "x"}, {"policy": "../secret.toml"}):
        answer = post("/api/v1/jobs", files=files, data={"request": json.dumps(wrong)})
        assert is_problem(answer, 422, f"{next(iter(wrong))}_unknown")
    big = [("pattern", ("p.xy", b"1" * (settings.max_upload_bytes + 1))), ("structures", CIF)]
    assert is_problem(post("/api/v1/jobs", files=big), 413, "body_too_large")
    assert is_problem(get("/api/v1/jobs", headers={"Authorization": ""}), 401, "key_missing")
    assert is_problem(get("/api/v1/jobs", headers=bearer("axr_" + "0" * 32 + "_" + "a" * 43)), 401, "key_invalid")


def test_a_body_of_unknown_length_is_cut_off_too(quiet: TestClient, settings: Settings) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(settings.max_upload_bytes // 2**20 + 2):
            yield b"1" * 2**20

    headers = {"content-type": "application/json"}
    assert is_problem(quiet.post("/api/v1/jobs", content=chunks(), headers=headers), 413, "body_too_large")


def test_an_unforeseen_error_tells_nothing(quiet: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("autoxrd.api.routes.jobs.list_jobs", broken)
    answer = quiet.get("/api/v1/jobs")
    assert is_problem(answer, 500, "internal_error")
    assert "secret" not in answer.text


def test_too_many_requests(settings: Settings, database: Database) -> None:
    app = build_app(settings.model_copy(update={"requests_per_second": 1.0}), database, nudge=lambda: None)
    with TestClient(app, headers=bearer(token(database))) as client:
        answers = [client.get("/api/v1/jobs") for _ in range(5)]
        assert is_problem(answers[-1], 429, "rate")
        assert int(answers[-1].headers["retry-after"]) >= 1


def test_other_owners_jobs_are_not_there(quiet: TestClient, database: Database) -> None:
    job_id = submit(quiet).json()["id"]
    eve = bearer(token(database, "eve"))
    base = f"/api/v1/jobs/{job_id}"
    for path in ("", "/events", "/graph", "/files", "/report.html", "/states/" + "0" * 16, "/artifacts/" + "0" * 64):
        assert is_problem(quiet.get(base + path, headers=eve), 404, "job_not_found"), path
    for wish in ("cancel", "pause", "resume", "retry"):
        assert is_problem(quiet.post(f"{base}/{wish}", headers=eve), 404, "job_not_found")
    assert quiet.get("/api/v1/jobs", headers=eve).json()["jobs"] == []
    assert quiet.get(base).json()["state"] == "queued"


def test_keys_have_scopes_and_ends(quiet: TestClient, database: Database) -> None:
    reader = bearer(token(database, "ada", Scope.READ))
    assert quiet.get("/api/v1/jobs", headers=reader).status_code == 200
    assert is_problem(submit(quiet, headers=reader), 403, "scope_missing")
    assert is_problem(quiet.get("/metrics", headers=reader), 403, "scope_missing")
    expired = bearer(token(database, "ada", days=-1.0))
    assert is_problem(quiet.get("/api/v1/jobs", headers=expired), 401, "key_invalid")
    made = quiet.post("/api/v1/api-keys", json={"name": "laptop", "scopes": ["jobs:read"]}).json()
    assert quiet.get("/api/v1/jobs", headers=bearer(made["token"])).status_code == 200
    more = {"name": "x", "scopes": ["service:admin"]}
    assert is_problem(quiet.post("/api/v1/api-keys", json=more), 403, "scope_missing")
    assert quiet.delete(f"/api/v1/api-keys/{made['id']}").status_code == 204
    assert is_problem(quiet.get("/api/v1/jobs", headers=bearer(made["token"])), 401, "key_invalid")
    listed = quiet.get("/api/v1/api-keys").json()
    assert made["token"].split("_", 2)[2] not in json.dumps(listed)
    assert next(k for k in listed if k["id"] == made["id"])["revoked_at"]


def test_the_list_is_filtered_and_paged(quiet: TestClient) -> None:
    ids = [submit(quiet, title=f"Job {i % 2}").json()["id"] for i in range(7)]
    quiet.post(f"/api/v1/jobs/{ids[0]}/cancel")
    seen: list[str] = []
    cursor = None
    while True:
        page = quiet.get("/api/v1/jobs", params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == ids[::-1]
    assert [j["id"] for j in quiet.get("/api/v1/jobs?state=cancelled").json()["jobs"]] == ids[:1]
    assert len(quiet.get("/api/v1/jobs?q=JOB 1").json()["jobs"]) == 3
    assert quiet.get("/api/v1/jobs?q=%25").json()["jobs"] == []


def test_an_entity_tag_saves_a_second_answer(quiet: TestClient) -> None:
    path = f"/api/v1/jobs/{submit(quiet).json()['id']}"
    tag = quiet.get(path).headers["etag"]
    assert quiet.get(path, headers={"If-None-Match": tag}).status_code == 304
    quiet.post(f"{path}/pause")
    assert quiet.get(path, headers={"If-None-Match": tag}).status_code == 200


def test_what_the_states_do_not_allow_is_a_conflict(quiet: TestClient) -> None:
    path = f"/api/v1/jobs/{submit(quiet).json()['id']}"
    assert quiet.post(f"{path}/cancel").json()["state"] == "cancelled"
    assert is_problem(quiet.post(f"{path}/pause"), 409, "job_state")
    assert quiet.post(f"{path}/resume").json()["state"] == "queued"


def test_a_job_by_references_to_uploads(quiet: TestClient, database: Database) -> None:
    def artifact(name: str, data: bytes, headers: dict[str, str] | None = None) -> str:
        return str(quiet.post("/api/v1/artifacts", files={"file": (name, data)}, headers=headers).json()["sha256"])

    inputs = {
        "pattern": {"artifact": artifact("p.xy", b"1 2\n"), "name": "../../p.xy"},
        "structures": [{"artifact": artifact("a.cif", b"data_a\n"), "name": "a.cif"}],
    }
    job = quiet.post("/api/v1/jobs", json={"inputs": inputs}).json()
    assert {f["name"] for f in quiet.get(job["links"]["files"]).json()} == {"pattern/p.xy", "structure.1/a.cif"}
    theirs = artifact("q.xy", b"3 4\n", bearer(token(database, "eve")))
    inputs["pattern"]["artifact"] = theirs  # type: ignore[index]
    assert is_problem(quiet.post("/api/v1/jobs", json={"inputs": inputs}), 404, "artifact_not_found")


def events_of(text: str) -> list[tuple[int, str]]:
    blocks = [dict(line.split(": ", 1) for line in b.splitlines() if ": " in line) for b in text.split("\n\n")]
    return [(int(b["id"]), b["event"]) for b in blocks if "id" in b]


def test_a_stream_that_is_broken_off_goes_on_without_gap_or_repetition(live: TestClient) -> None:
    job_id = submit(live, steps=6).json()["id"]
    path, headers = f"/api/v1/jobs/{job_id}/events", {"Accept": "text/event-stream"}
    seen: list[tuple[int, str]] = []
    for stop_after in (2, 3, 10_000):
        more = {"Last-Event-ID": str(seen[-1][0])} if seen else {}
        with live.stream("GET", path, headers={**headers, **more}) as stream:
            text = ""
            for chunk in stream.iter_text():
                text += chunk
                if len(events_of(text)) >= stop_after:
                    break
        seen += events_of(text)[:stop_after]
    listed = live.get(path).json()["events"]
    assert [(e["number"], e["kind"]) for e in listed] == seen
    assert [n for n, _ in seen] == list(range(1, len(seen) + 1))
    assert live.get(path, headers={**headers, "Last-Event-ID": str(seen[-1][0])}).status_code == 204


def test_a_job_whose_input_cannot_be_used_fails_with_a_sentence(live: TestClient) -> None:
    job = finished(live, submit(live, title="unreadable").json()["id"])
    assert job["state"] == "failed"
    assert job["error"] == {"code": "pattern_unreadable", "detail": "The pattern cannot be read."}


def test_a_job_that_kills_its_host_crashes_and_others_go_on(live: TestClient) -> None:
    poison = submit(live, title="poison").json()["id"]
    good = submit(live, title="good").json()["id"]
    assert finished(live, good)["state"] == "completed"
    job = finished(live, poison)
    assert job["state"] == "crashed"
    assert job["error"]["code"] == "step_lost"


def test_the_catalogue_and_the_metrics(quiet: TestClient) -> None:
    submit(quiet)
    assert "rietx" in {e["name"] for e in quiet.get("/api/v1/engines").json()}
    assert {"default", "strict"} <= {p["name"] for p in quiet.get("/api/v1/profiles").json()["policies"]}
    for name, path in quiet.get("/api/v1/schemas").json().items():
        assert quiet.get(path).json()["type"] == "object", name
    assert is_problem(quiet.get("/api/v1/schemas/nothing"), 404, "schema_unknown")
    text = quiet.get("/metrics").text
    assert 'autoxrd_jobs{state="queued"} 1.0' in text
    assert 'route="/api/v1/jobs",status="201"' in text
    assert quiet.get("/readyz").json() == {"status": "ok"}
