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
from tests.support.chromium import chromium

from . import mixed_host
from .fleet import Fleet, settled, submit
from .test_api import events_of

N_JOBS = 20
N_REAL = 2
"""So many of them refine; the others take the same steps with a stub in place of the engine."""


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


def shown(folder: Path, bundle: bytes, link: str) -> list[tuple[str, str]]:
    """Open a report in Chromium: out of the bundle that was downloaded, and by its link; return what both say."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        assert archive.testzip() is None
        assert verify_export(json.loads(archive.read("graph.json"))) == ()
        archive.extractall(folder)
    found = []
    with chromium() as browser:
        for address in ((folder / "report.html").as_uri(), link):
            page, said = browser.new_page(), []
            page.on("console", lambda message, said=said: said.append(message.text))
            page.on("pageerror", lambda error, said=said: said.append(str(error)))
            page.on("request", lambda request, said=said, own=address: request.url == own or said.append(request.url))
            page.goto(address)
            page.wait_for_selector("#fit-plot[data-ready=true]", timeout=120_000)
            points = page.evaluate("document.querySelectorAll('#fit-plot .scatterlayer .point').length")
            assert points > 500, "the pattern is drawn"
            assert [line for line in said if not line.startswith(("data:", "blob:"))] == []
            found.append((page.inner_text("h1"), page.inner_text("main")))
            page.close()
    return found


@pytest.mark.browser
@pytest.mark.real
def test_twenty_jobs_over_http(fleet: Fleet, small_job: tuple[Path, Path], tmp_path: Path) -> None:
    fleet.step_host = str(Path(mixed_host.__file__))
    fleet.database_url = fleet.database_url.replace("autoxrd@", "autoxrd:dont-log-me@")
    key = fleet.run("keys", "create", "ada")
    fleet.start_all(workers=2)
    client = fleet.client(key)
    hook = client.post("/webhooks", json={"url": "https://192.0.2.1/"}).json()
    assert hook["code"] == "callback_private"
    hook = client.post("/webhooks", json={"url": "https://8.8.8.8:1/hook", "kinds": ["job.accepted"]}).json()
    pattern, cif = small_job
    files = [("pattern", ("pattern.xy", pattern.read_bytes())), ("structures", ("fluorite.cif", cif.read_bytes()))]
    wish = json.dumps({"title": mixed_host.REAL, "measurement": {"anode": "Cu"}, "budgets": {"steps": 3}})
    stubs = [submit(client, json.dumps({"title": f"job {i}", "budgets": {"steps": 3}})) for i in range(N_JOBS - N_REAL)]
    real = [client.post("/jobs", data={"request": wish}, files=files).json()["id"] for _ in range(N_REAL)]
    jobs = [*stubs, *real]
    followers = [Follower(client, job) for job in (*stubs[:4], *real)]
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
    base = str(client.base_url).removesuffix("/api/v1/")
    holders = {line for line in fleet.logs().splitlines() if "Traceback" in line}
    assert holders == set()
    link = client.post(f"/jobs/{jobs[0]}/links", json={"name": "graph.json"}).json()["path"]
    assert httpx.get(base + link).status_code == 200
    made = client.post("/api-keys", json={"name": "second"}).json()["token"]
    assert client.get("/jobs", headers={"Authorization": f"Bearer {made}"}).status_code == 200
    assert client.delete(f"/webhooks/{hook['webhook']['id']}").status_code == 204
    logs = fleet.logs()
    assert "/api/v1/links/***" in logs
    secrets = [key, made, key.split("_", 2)[2], made.split("_", 2)[2], hook["secret"], link.rpartition("/")[2]]
    assert [n for n, secret in enumerate([*secrets, "dont-log-me"]) if secret in logs] == []
    for job in real:
        bundle = client.get(f"/jobs/{job}/report.zip").content
        link = client.post(f"/jobs/{job}/links", json={"name": "report.html"}).json()["path"]
        downloaded, linked = shown(tmp_path / job, bundle, base + link)
        assert downloaded == linked
        assert "pattern.xy: fluorite" in downloaded[0]
        assert f"{100 * done[job]['rwp']:.2f}" in downloaded[1]


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
