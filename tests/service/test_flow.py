"""The whole flow over real PostgreSQL, Redis, two Celery workers and an API under uvicorn."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from autoxrd.store.document import verify_export

from .fleet import Fleet, settled, submit
from .test_api import events_of

N_JOBS = 20


class Follower(threading.Thread):
    """Follows a job's stream, breaks it off after every third event, and comes back with Last-Event-ID."""

    def __init__(self, client: httpx.Client, job: str) -> None:
        super().__init__(daemon=True)
        self.client, self.job = client, job
        self.seen: list[tuple[int, str]] = []
        self.breaks = 0

    def run(self) -> None:
        while True:
            headers = {"Accept": "text/event-stream"}
            if self.seen:
                headers["Last-Event-ID"] = str(self.seen[-1][0])
            with self.client.stream("GET", f"/jobs/{self.job}/events", headers=headers) as stream:
                if stream.status_code == 204:
                    return
                text = ""
                for chunk in stream.iter_text():
                    text += chunk
                    if len(events_of(text)) >= 3:
                        break
            self.seen += events_of(text)[:3]
            self.breaks += 1


def test_twenty_jobs_over_http(fleet: Fleet) -> None:
    fleet.database_url = fleet.database_url.replace("autoxrd@", "autoxrd:dont-log-me@")
    key = fleet.run("keys", "create", "ada")
    fleet.start_all(workers=2)
    client = fleet.client(key)
    hook = client.post("/webhooks", json={"url": "https://192.0.2.1/"}).json()
    assert hook["code"] == "callback_private"
    hook = client.post("/webhooks", json={"url": "https://8.8.8.8:1/hook", "kinds": ["job.accepted"]}).json()
    jobs = [submit(client, json.dumps({"title": f"job {i}", "budgets": {"steps": 3}})) for i in range(N_JOBS)]
    followers = [Follower(client, job) for job in jobs[:4]]
    for follower in followers:
        follower.start()
    done = settled(client, jobs, 400)
    assert {job["state"] for job in done.values()} == {"completed"}
    assert {job["used"]["steps"] for job in done.values()} == {3}
    for follower in followers:
        follower.join(timeout=60)
        listed = client.get(f"/jobs/{follower.job}/events").json()["events"]
        assert follower.seen == [(e["number"], e["kind"]) for e in listed]
        assert follower.breaks >= 3
    for job in jobs:
        document = client.get(f"/jobs/{job}/files/graph.json").json()
        assert verify_export(document) == ()
        assert [len(document["nodes"]), len(document["edges"])] == [4, 3]
    holders = {line for line in fleet.logs().splitlines() if "Traceback" in line}
    assert holders == set()
    link = client.post(f"/jobs/{jobs[0]}/links", json={"name": "graph.json"}).json()["path"]
    assert httpx.get(str(client.base_url).removesuffix("/api/v1/") + link).status_code == 200
    made = client.post("/api-keys", json={"name": "second"}).json()["token"]
    assert client.get("/jobs", headers={"Authorization": f"Bearer {made}"}).status_code == 200
    assert client.delete(f"/webhooks/{hook['webhook']['id']}").status_code == 204
    logs = fleet.logs()
    assert "/api/v1/links/***" in logs
    secrets = [key, made, key.rpartition("_")[2], made.rpartition("_")[2], hook["secret"], link.rpartition("/")[2]]
    assert [n for n, secret in enumerate([*secrets, "dont-log-me"]) if secret in logs] == []


@pytest.mark.real
def test_a_real_refinement_through_postgresql_and_celery(fleet: Fleet, small_job: tuple[Path, Path]) -> None:
    """The same job as the laptop's: equal graph, and a report whose bundle holds together."""
    pattern, cif = small_job
    fleet.step_host = "autoxrd.jobs.host"
    key = fleet.run("keys", "create", "ada")
    fleet.start_all(workers=2)
    client = fleet.client(key)
    request = json.dumps({"measurement": {"anode": "Cu"}, "reproducible": True})
    files = [("pattern", ("pattern.xy", pattern.read_bytes())), ("structures", ("fluorite.cif", cif.read_bytes()))]
    jobs = [client.post("/jobs", data={"request": request}, files=files).json()["id"] for _ in range(2)]
    done = settled(client, jobs, 600)
    assert {job["verdict"] for job in done.values()} <= {"accepted", "accepted_with_warnings"}
    bundles = [client.get(f"/jobs/{job}/report.zip").content for job in jobs]
    assert bundles[0] == bundles[1]
    with zipfile.ZipFile(io.BytesIO(bundles[0])) as bundle:
        assert bundle.testzip() is None
        document: dict[str, Any] = json.loads(bundle.read("graph.json"))
        assert verify_export(document) == ()
        assert b"fluorite" in bundle.read("report.html")
    page = client.get(f"/jobs/{jobs[0]}/report.html")
    assert page.headers["content-security-policy"].startswith("sandbox")
    assert "data_" in client.get(f"/jobs/{jobs[0]}/report.cif").text
    assert client.get(f"/jobs/{jobs[0]}/report.csv?table=parameters").text.count("\n") > 5
