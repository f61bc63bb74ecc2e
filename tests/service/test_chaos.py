"""Whatever is killed, stopped or filled up: no job is lost, no step done twice, and the result is the undisturbed one.

One production set-up serves all tests of this file; each leaves it whole again.
"""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from autoxrd.jobs.local import LocalDispatcher
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database
from autoxrd.store.service.files import job_file
from autoxrd.store.service.listing import find_job

from .conftest import STUB
from .cut import Cable
from .expected import undisturbed
from .factory import queued
from .fleet import Fleet, settled, submit
from .servers import Postgres, Redis

N_JOBS, N_STEPS = 3, 4


@pytest.fixture(scope="module")
def service(postgres: Postgres) -> Iterator[tuple[Fleet, httpx.Client]]:
    """A running production set-up and a client of it."""
    if shutil.which("redis-server") is None:
        pytest.skip("Redis is not installed (Debian: redis-server)")
    folder = Path(tempfile.mkdtemp(prefix="autoxrd-chaos-"))
    redis = Redis(folder / "redis")
    fleet = Fleet(folder, postgres, redis, postgres.new_database(f"chaos_{secrets.token_hex(6)}"), STUB)
    try:
        redis.start()
        key = fleet.run("keys", "create", "ada")
        fleet.start_all(workers=2)
        yield fleet, fleet.client(key)
    finally:
        fleet.stop()
        redis.stop()
        shutil.rmtree(folder, ignore_errors=True)


def disturbed(fleet: Fleet, client: httpx.Client, disturb: Callable[[], None], *, until: int = 3) -> None:
    """Submit jobs, wait until some steps are recorded, disturb, and compare what comes out with an undisturbed run."""
    request = json.dumps({"title": "chaos", "budgets": {"steps": N_STEPS}})
    jobs = [submit(client, request, key=secrets.token_hex(8)) for _ in range(N_JOBS)]
    deadline = time.monotonic() + 180
    while sum(client.get(f"/jobs/{job}").json()["used"]["steps"] for job in jobs) < until:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    disturb()
    done = settled(client, jobs, 300)
    assert {job["state"] for job in done.values()} == {"completed"}
    for job in jobs:
        steps = client.get(f"/jobs/{job}/graph").json()["steps"]
        assert [step["ordinal"] for step in steps] == list(range(N_STEPS + 1))
        told = [e for e in client.get(f"/jobs/{job}/events").json()["events"] if e["kind"] == "step.recorded"]
        assert [e["data"]["ordinal"] for e in told] == list(range(N_STEPS + 1))
        files = {f["name"]: f["sha256"] for f in client.get(f"/jobs/{job}/files").json()}
        assert files["graph.json"] == undisturbed("chaos", N_STEPS)


def test_kill_9_of_a_worker(service: tuple[Fleet, httpx.Client]) -> None:
    fleet, client = service

    def disturb() -> None:
        fleet.kill("worker0")

    disturbed(fleet, client, disturb)
    fleet.start("worker0", "worker")


def test_kill_9_of_all_workers(service: tuple[Fleet, httpx.Client]) -> None:
    fleet, client = service

    def disturb() -> None:
        hosts = [p for w in ("worker0", "worker1") for p in psutil.Process(fleet.processes[w].pid).children(True)]
        for name in ("worker0", "worker1"):
            fleet.kill(name)
        _, alive = psutil.wait_procs(hosts, timeout=5.0)
        assert alive == [], "a worker's processes outlived it"
        for name in ("worker0", "worker1"):
            fleet.start(name, "worker")

    disturbed(fleet, client, disturb)


def test_kill_9_of_the_api(service: tuple[Fleet, httpx.Client]) -> None:
    fleet, client = service
    key, request = secrets.token_hex(8), json.dumps({"title": "chaos", "budgets": {"steps": 1}})
    made = submit(client, request, key=key)

    def disturb() -> None:
        fleet.kill("api")
        fleet.start_api()

    disturbed(fleet, client, disturb)
    assert submit(client, request, key=key) == made


def test_kill_9_of_redis_which_comes_back_empty(service: tuple[Fleet, httpx.Client]) -> None:
    fleet, client = service

    def disturb() -> None:
        fleet.redis.stop(signal.SIGKILL)
        time.sleep(1.0)
        submit(client, json.dumps({"title": "without redis", "budgets": {"steps": 1}}))
        fleet.redis.start()

    disturbed(fleet, client, disturb)


def test_postgresql_crashes_and_restarts(service: tuple[Fleet, httpx.Client]) -> None:
    fleet, client = service

    def disturb() -> None:
        fleet.postgres.stop(signal.SIGQUIT)
        assert client.get("/jobs").status_code == 503
        time.sleep(0.5)
        fleet.postgres.start()

    disturbed(fleet, client, disturb)


@pytest.mark.slow
def test_a_worker_sleeps_longer_than_its_lease(service: tuple[Fleet, httpx.Client]) -> None:
    """As behind a cut network: it wakes up in the middle of a step that somebody else has done meanwhile."""
    fleet, client = service
    main = psutil.Process(fleet.processes["worker0"].pid)

    def disturb() -> None:
        asleep = [main, *main.children(recursive=True)]
        for process in asleep:
            process.suspend()
        time.sleep(6.0)
        for process in asleep:
            process.resume()

    disturbed(fleet, client, disturb)


@pytest.mark.slow
def test_a_worker_is_cut_off_from_the_database(service: tuple[Fleet, httpx.Client]) -> None:
    """Its connections stay open and nothing moves in them; when they do again, others have done its steps."""
    fleet, client = service
    cable = Cable(fleet.postgres.port)
    beyond = fleet.database_url.replace(f":{fleet.postgres.port}/", f":{cable.port}/")
    for name in ("worker0", "worker1"):
        fleet.kill(name)
    fleet.start("far", "worker", AUTOXRD_DATABASE_URL=beyond)

    def disturb() -> None:
        cable.cut()
        fleet.start("worker0", "worker")
        time.sleep(8.0)
        cable.mend()

    try:
        disturbed(fleet, client, disturb)
        assert cable.cuts == 1
    finally:
        fleet.kill("far")
        cable.close()
        if "worker0" not in fleet.processes:
            fleet.start("worker0", "worker")
        fleet.start("worker1", "worker")


@pytest.mark.slow
def test_redis_stands_still(service: tuple[Fleet, httpx.Client]) -> None:
    fleet, client = service
    assert fleet.redis.process is not None
    redis = psutil.Process(fleet.redis.process.pid)

    def disturb() -> None:
        redis.suspend()
        began = time.monotonic()
        submit(client, json.dumps({"title": "redis asleep", "budgets": {"steps": 1}}))
        assert time.monotonic() - began < 2.0, "a submission waited for Redis"
        time.sleep(3.0)
        redis.resume()

    disturbed(fleet, client, disturb)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here (needs root)")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_the_disk_is_full_for_a_while(tmp_path: Path, small_disk: Path) -> None:
    settings = Settings(
        data_dir=tmp_path, database_url=f"sqlite:///{tmp_path / 's.sqlite'}", step_host=STUB, slots=1, poll_seconds=0.1
    )
    with Database(settings.database(), tmp_path / "artifacts", durable=False) as database:
        database.migrate()
        (tmp_path / "artifacts").mkdir(exist_ok=True)
        job = queued(database, title="chaos", steps=N_STEPS)
        for entry in (tmp_path / "artifacts").iterdir():
            shutil.move(entry, small_disk / entry.name)
        (tmp_path / "artifacts").rmdir()
        (tmp_path / "artifacts").symlink_to(small_disk)
        filler = small_disk / "filler"
        with pytest.raises(OSError, match="No space"):
            filler.write_bytes(b"0" * 4_000_000)
        local = LocalDispatcher(database, settings)
        local.start()
        try:
            waited_for(lambda: find_job(database, job, None).feed_last >= 5)
            assert find_job(database, job, None).state in {"queued", "running"}
            filler.unlink()
            waited_for(lambda: find_job(database, job, None).finished_at is not None)
        finally:
            local.stop()
        assert find_job(database, job, None).state == "completed"
        assert job_file(database, job, "report", "graph.json").sha256 == undisturbed("chaos", N_STEPS)


def waited_for(what: Callable[[], bool], seconds: float = 180.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)
