"""The Python client and `autoxrd jobs`, against a real API over real sockets around the stub engine."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
import uvicorn
from typer.testing import CliRunner

from autoxrd.cli.main import app as program
from autoxrd.client import AsyncClient, Client, Event
from autoxrd.errors import AccessDenied, AutoxrdError, NotFound, ServiceUnavailable, UserInputError
from autoxrd.jobs.local import LocalDispatcher
from autoxrd.logs import configure_logs
from autoxrd.primitives import sha256_hex
from autoxrd.server.app import build_app
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database

from .access import token
from .servers import free_port

SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)  # the client knows HTTP only
TITLE = "Al2O3 <b>[red]bold[/] =1+1"


@pytest.fixture
def service(settings: Settings, database: Database) -> Iterator[tuple[str, str]]:
    """Address and key of a service that works; a message of the client goes over a real socket."""
    before = logging.getLogger().handlers[:], logging.getLogger().level
    configure_logs(settings)  # to standard error: what a command prints stands alone
    local = LocalDispatcher(database, settings)
    app = build_app(settings, database, nudge=local.nudge, start=local.start, stop=local.stop)
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}", token(database)
    server.should_exit = True
    thread.join(timeout=20)
    structlog.reset_defaults()
    logging.getLogger().handlers[:], _ = before
    logging.getLogger().setLevel(before[1])


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[Path, list[Path]]:
    (tmp_path / "pattern.xy").write_text("10 100\n10.1 120\n")
    (tmp_path / "a.cif").write_text("data_a\n")
    return tmp_path / "pattern.xy", [tmp_path / "a.cif"]


@SQLITE
def test_submit_wait_download(service: tuple[str, str], inputs: tuple[Path, list[Path]], tmp_path: Path) -> None:
    seen: list[Event] = []
    with Client(*service) as client:
        job = client.submit(*inputs, request={"title": TITLE, "budgets": {"steps": 2}}, idempotency_key="once")
        again = client.submit(*inputs, request={"title": TITLE, "budgets": {"steps": 2}}, idempotency_key="once")
        assert again.id == job.id
        done = client.wait(job.id, progress=seen.append, timeout_seconds=60.0)
        assert (done.state, done.verdict, done.title, done.over) == ("completed", "accepted", TITLE, True)
        assert [e.number for e in seen] == list(range(1, done.last_event + 1))
        assert [e.kind for e in seen].count("step.recorded") == 3
        assert next(e.number for e in client.events(job.id, after=2)) == 3
        assert [s.ordinal for s in client.steps(job.id)] == [0, 1, 2]
        assert [j.id for j in client.jobs(state=["completed"])] == [job.id]
        graph = client.download(job.id, "graph.json", to=tmp_path / "graph.json")
        named = next(f for f in client.files(job.id) if f.name == "graph.json")
        assert sha256_hex(graph) == named.sha256 == sha256_hex((tmp_path / "graph.json").read_bytes())
        with pytest.raises(NotFound) as caught:
            client.report(job.id, "html")  # the stub writes none
        assert caught.value.code == "report_not_found"


@SQLITE
def test_the_asynchronous_client_does_the_same(service: tuple[str, str], inputs: tuple[Path, list[Path]]) -> None:
    async def both() -> list[str]:
        async with AsyncClient(*service) as client:
            asked = [client.submit(*inputs, request={"title": f"job {i}", "budgets": {"steps": 1}}) for i in range(3)]
            jobs = await asyncio.gather(*asked)
            done = await asyncio.gather(*(client.wait(job.id, timeout_seconds=60.0) for job in jobs))
            assert {j.id for j in await client.jobs()} == {job.id for job in jobs}
            assert len(await client.steps(jobs[0].id)) == 2
            with pytest.raises(AutoxrdError) as caught:
                await client.resume(jobs[0].id)
            assert caught.value.code == "job_state"
            return [job.state for job in done]

    assert asyncio.run(both()) == ["completed"] * 3


@SQLITE
def test_what_is_wrong_is_said(service: tuple[str, str], inputs: tuple[Path, list[Path]], tmp_path: Path) -> None:
    def code(what: Callable[[], object]) -> tuple[type[AutoxrdError], str]:
        with pytest.raises(AutoxrdError) as caught:
            what()
        return type(caught.value), caught.value.code

    url, key = service
    with Client(url, key) as client:
        assert code(lambda: client.submit(*inputs, request={"titel": "x"})) == (UserInputError, "request_invalid")
        assert code(lambda: client.submit(tmp_path / "no.xy", [])) == (UserInputError, "file_unreadable")
        assert code(lambda: client.job("../api-keys")) == (UserInputError, "job_id")
        assert code(lambda: client.job("0" * 36)) == (NotFound, "job_not_found")
        assert code(lambda: client.report("0" * 36, "pdf")) == (UserInputError, "report_form")
    with Client(url, key[:-1] + "_") as client:
        assert code(client.jobs) == (AccessDenied, "key_invalid")
    assert code(lambda: Client("ftp://x", key)) == (UserInputError, "service_url")
    assert code(lambda: Client(url, "ключ")) == (AccessDenied, "key_missing")


@SQLITE
def test_candidates_are_sent_by_both_clients_and_the_command(
    service: tuple[str, str], inputs: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    pattern, cifs = inputs
    others = [tmp_path / "b.cif", tmp_path / "c.cif"]
    for path in others:
        path.write_text("data_b\n")
    few = {"budgets": {"steps": 1}}

    async def sent() -> str:
        async with AsyncClient(*service) as client:
            return (await client.submit(pattern, candidates=others, request=few)).id

    environment = {"AUTOXRD_URL": service[0], "AUTOXRD_API_KEY": service[1]}
    words = ["jobs", "submit", str(pattern), "--steps", "1", "--json"]
    words += [word for path in others for word in ("--candidate", str(path))]
    with Client(*service) as client:
        made = client.submit(pattern, cifs, candidates=others, request=few).id
        both = {made: ["structure.1/a.cif"], asyncio.run(sent()): []}
        for more, known in (([], []), ([str(cifs[0])], ["structure.1/a.cif"])):
            done = CliRunner().invoke(program, [*words, *more], env=environment)
            assert done.exit_code == 0, (done.output, done.exception)
            both[json.loads(done.stdout)["id"]] = known
        for job, known in both.items():
            names = [file.name for file in client.files(job) if file.role == "input"]
            assert names == ["candidate.1/b.cif", "candidate.2/c.cif", "pattern/pattern.xy", *known]
        with pytest.raises(UserInputError) as caught:
            client.submit(pattern)
        assert caught.value.code == "part_missing"


def answering(*answers: httpx.Response | Exception) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    """A transport that gives these answers one after the other: failures no real service gives on demand."""
    left, seen = list(answers), []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return httpx.MockTransport(handle), seen


JOB: dict[str, Any] = {
    "id": "1", "title": "", "state": "queued", "verdict": None, "engine": "rietx", "planner": "rules", "created_at": "",
    "finished_at": None, "current_state": None, "rwp": None, "gof": None, "used": {}, "last_event": 1, "error": None,
}  # fmt: skip


def test_only_what_does_no_harm_is_sent_again(inputs: tuple[Path, list[Path]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autoxrd.client.calls.FIRST_PAUSE_SECONDS", 0.0)
    gone, busy = httpx.ConnectError("refused"), httpx.Response(503, headers={"Retry-After": "0"}, json={})
    transport, seen = answering(gone, busy, httpx.Response(201, json=JOB))
    with Client("http://service", "key", transport=transport) as client:
        assert client.submit(*inputs).id == "1"
    assert len({request.headers["Idempotency-Key"] for request in seen}) == 1
    transport, seen = answering(*[gone] * 6)
    with Client("http://service", "key", transport=transport) as client, pytest.raises(ServiceUnavailable) as caught:
        client.job("1")
    assert (caught.value.code, len(seen)) == ("service_unreachable", 6)
    transport, _ = answering(httpx.Response(302, headers={"Location": "http://elsewhere/"}))
    with Client("http://service", "key", transport=transport) as client, pytest.raises(ServiceUnavailable):
        client.job("1")  # no redirect is followed with the key
    transport, _ = answering(httpx.Response(200, content=b"half", headers={"ETag": f'"{sha256_hex(b"whole")}"'}))
    with Client("http://service", "key", transport=transport) as client, pytest.raises(ServiceUnavailable) as caught:
        client.report("1")
    assert caught.value.code == "download_damaged"


@SQLITE
def test_the_commands(service: tuple[str, str], inputs: tuple[Path, list[Path]], tmp_path: Path) -> None:
    environment = {"AUTOXRD_URL": service[0], "AUTOXRD_API_KEY": service[1], "COLUMNS": "100"}

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(program, ["jobs", *words], env=environment)
        assert done.exit_code == code, (done.output, done.exception)
        assert service[1] not in done.output
        return done.stdout

    pattern, (cif,) = inputs
    text = run("submit", str(pattern), str(cif), "--title", TITLE, "--steps", "2", "--watch")
    assert "accepted" in text
    assert TITLE[:20] in text
    assert all(len(line) <= 100 for line in text.splitlines())
    job = json.loads(run("submit", str(pattern), str(cif), "--steps", "1", "--json"))
    events = [json.loads(line) for line in run("watch", job["id"], "--json").splitlines()]
    assert [e["number"] for e in events] == list(range(1, len(events) + 1))
    listed = run("list")
    assert job["id"] in listed
    assert all(len(line) <= 100 for line in listed.splitlines())
    assert [j["title"] for j in json.loads(run("list", "--json", "--text", "b>[red]"))] == [TITLE]
    run("cancel", job["id"], code=1)  # it is over
    caught = CliRunner().invoke(program, ["jobs", "report", job["id"]], env=environment)
    assert isinstance(caught.exception, NotFound)
    missing = CliRunner().invoke(program, ["jobs", "list"], env={**environment, "AUTOXRD_API_KEY": ""})
    assert isinstance(missing.exception, AccessDenied)
    assert "autoxrd serve" in missing.exception.detail
