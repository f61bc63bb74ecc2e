"""How much does the service carry? ``python -m benchmarks.service.load local|production``: prints one JSON object.

A stub step sleeps 50 ms; claim, lease, graph record with artifacts, feed and release are real. ``local SLOTS``
measures steps a second of the local dispatcher on SQLite. ``production CONCURRENCY JOBS`` starts PostgreSQL, Redis, two
API processes, a scheduler and two workers, and measures steps a second, submission from 20 clients at once, the job
page, and in which order queued jobs of ten owners are done. Wall-clock figures are of the machine as it is: its load
average is printed with them.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from autoxrd.api.auth import SESSION_COOKIE
from autoxrd.jobs.local import LocalDispatcher
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database
from autoxrd.store.service.keys import authenticate
from autoxrd.store.service.sessions import begin_session
from tests.service.factory import queued
from tests.service.fleet import REQUEST_FILES, Fleet
from tests.service.servers import Postgres, Redis, free_port

STUB = str(Path(__file__).resolve().parent / "stub_host.py")
OWNERS = tuple(f"owner{i}" for i in range(10))


def percentile(values: list[float], share: float) -> float:
    """Return a percentile by the nearest rank."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def steps_done(database: Database) -> int:
    """Return how many attempts are recorded."""
    with database.reading() as session:
        from sqlalchemy import func, select

        from autoxrd.store.service.models import ServiceJobRow

        return int(session.scalar(select(func.sum(ServiceJobRow.steps_used))) or 0)


def rate(database: Database, seconds: float, *, after: int) -> dict[str, float]:
    """Count attempts over some time, from some number on: by then all hosts have started; and their processor time."""
    while (first := steps_done(database)) < after:
        time.sleep(0.05)
    began, used = time.monotonic(), cpu_seconds()
    time.sleep(seconds)
    took, steps = time.monotonic() - began, steps_done(database) - first
    return {"steps_per_second": steps / took, "cpu_ms_per_step": 1e3 * (cpu_seconds() - used) / max(steps, 1)}


def cpu_seconds() -> float:
    """Return the processor time of this process and all below it: what a step costs, however busy the machine is."""
    me = psutil.Process()
    times = [process.cpu_times() for process in (me, *me.children(recursive=True))]
    return sum(t.user + t.system for t in times)


def local(slots: int, seconds: float = 15.0) -> dict[str, object]:
    """Measure the local dispatcher."""
    folder = Path(tempfile.mkdtemp(prefix="autoxrd-load-"))
    settings = Settings(data_dir=folder, step_host=STUB, slots=slots)
    try:
        with Database(settings.database(), settings.artifacts_dir(), durable=False) as database:
            database.migrate()
            for i in range(4 * slots):
                queued(database, title=f"job {i}", steps=2000)
            dispatcher = LocalDispatcher(database, settings)
            dispatcher.start()
            found = rate(database, seconds, after=40 * slots)
            dispatcher.stop()
        return {"slots": slots, **found}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def timed(what: Callable[[], object]) -> float:
    """Return how long a call took, s."""
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def submissions(ports: list[int], key: str, clients: int = 20, each: int = 25) -> list[float]:
    """Submit from so many clients at once, each to one of the API processes; return the times, s.

    The clients share the machine with what they measure, so they are the standard library's: 0.3 ms of processor time
    a submission.
    """
    request = json.dumps({"title": "load", "budgets": {"steps": 1}}).encode()
    parts = [b'name="request"\r\n\r\n' + request]
    parts += [f'name="{role}"; filename="{name}"\r\n\r\n'.encode() + content for role, (name, content) in REQUEST_FILES]
    form = b"".join(b"--cut\r\nContent-Disposition: form-data; " + part + b"\r\n" for part in parts) + b"--cut--\r\n"
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "multipart/form-data; boundary=cut"}

    def one(number: int) -> list[float]:
        connection = http.client.HTTPConnection("127.0.0.1", ports[number % len(ports)])

        def send() -> None:
            connection.request("POST", "/api/v1/jobs", form, headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 201, answer.status

        send()  # connects
        return [timed(send) for _ in range(each)]

    with ThreadPoolExecutor(clients) as pool:
        return [t for times in pool.map(one, range(clients)) for t in times]


def pages(port: int, cookie: str, path: str, n: int = 200) -> list[float]:
    """Load a page again and again; return the times, s."""
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def load() -> None:
        connection.request("GET", path, headers={"Cookie": f"{SESSION_COOKIE}={cookie}"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status

    load()
    return [timed(load) for _ in range(n)]


def milliseconds(times: list[float]) -> dict[str, float]:
    """Return the quantiles that the service is held to."""
    return {
        "p50": 1e3 * statistics.median(times),
        "p95": 1e3 * percentile(times, 0.95),
        "p99": 1e3 * percentile(times, 0.99),
    }


def drained(database: Database, jobs: dict[str, str] | None = None) -> list[tuple[str, str]]:
    """Wait until all jobs are over; return when each of some ended and whose it was, in the order of their ends."""
    from sqlalchemy import func, select

    from autoxrd.store.service.models import ServiceJobRow

    while True:
        with database.reading() as session:
            left = session.scalar(select(func.count()).where(ServiceJobRow.finished_at.is_(None)))
        if not left:
            break
        time.sleep(0.5)
    with database.reading() as session:
        rows = session.execute(select(ServiceJobRow.finished_at, ServiceJobRow.id)).all()
    return sorted((str(finished), jobs[job]) for finished, job in rows if jobs and job in jobs)


def fairness(ends: list[tuple[str, str]], each: int) -> dict[str, object]:
    """Say how far the owners were apart while all of them had jobs left, and how long it took."""
    counts: Counter[str] = Counter(dict.fromkeys(OWNERS, 0))
    widest = 0
    for _, owner in ends:
        counts[owner] += 1
        if max(counts.values()) == each:
            break
        widest = max(widest, max(counts.values()) - min(counts.values()))
    seconds = (datetime.fromisoformat(ends[-1][0]) - datetime.fromisoformat(ends[0][0])).total_seconds()
    return {"jobs": len(ends), "seconds": seconds, "widest_gap_between_owners": widest}


def stopped(fleet: Fleet, workers: int) -> None:
    """Stop the workers, which have nothing to do."""
    for i in range(workers):
        fleet.kill(f"worker{i}")


def production(workers: int, concurrency: int, n_fair: int = 1000) -> dict[str, object]:
    """Measure the production set-up."""
    folder = Path(tempfile.mkdtemp(prefix="autoxrd-load-"))
    folder.chmod(0o755)
    postgres, redis = Postgres(folder / "cluster", durable=True), Redis(folder / "redis")
    postgres.make()
    postgres.start()
    redis.start()
    url = postgres.new_database("load")
    extra = {"AUTOXRD_HEARTBEAT_SECONDS": "1", "AUTOXRD_LEASE_SECONDS": "15", "AUTOXRD_LOG_LEVEL": "WARNING"}
    fleet = Fleet(folder, postgres, redis, url, STUB, extra)
    ports = [fleet.port, free_port()]
    try:
        key = fleet.run("keys", "create", "owner0")
        fleet.start_all(workers=workers, concurrency=concurrency)
        fleet.start_api("api2", ports[1])
        with Database(url, folder / "data" / "artifacts") as database:
            cookie = begin_session(database, authenticate(database, key)).token
            long = [queued(database, owner="owner0", title=f"job {i}", steps=2000) for i in range(4 * workers)]
            found: dict[str, object] = dict(rate(database, 15.0, after=100))
            page = f"/jobs/{long[0]}"
            found["job_page_ms_beside_steps"] = milliseconds(pages(ports[0], cookie, page))
            found["job_json_ms_beside_steps"] = milliseconds(pages(ports[0], cookie, f"/api/v1{page}"))
            client = fleet.client(key)
            for job in long:
                client.post(f"/jobs/{job}/cancel")
            drained(database)
            found["job_page_ms"] = milliseconds(pages(ports[0], cookie, page))
            found["submission_ms_beside_steps"] = milliseconds(submissions(ports, key))
            drained(database)
            stopped(fleet, workers)
            found["submission_ms_one_process"] = milliseconds(submissions(ports[:1], key))
            found["submission_ms"] = milliseconds(submissions(ports, key))
            fleet.start_workers(workers, concurrency)
            drained(database)  # all these are owner0's, and would count as neither waiting nor done
            stopped(fleet, workers)
            jobs = {}
            for owner in OWNERS:  # one after the other: who came first must not be served first
                for i in range(n_fair // len(OWNERS)):
                    jobs[queued(database, owner=owner, title=f"{owner} {i}", steps=1)] = owner
            fleet.start_workers(workers, concurrency)
            found["fairness"] = fairness(drained(database, jobs), n_fair // len(OWNERS))
        return {"workers": workers, "concurrency": concurrency, **found}
    finally:
        fleet.stop()
        redis.stop()
        postgres.stop()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Run one of the two and print its figures."""
    what = sys.argv[1] if len(sys.argv) > 1 else "local"
    before = os.getloadavg()[0]
    if what == "local":
        found = local(int(sys.argv[2]) if len(sys.argv) > 2 else 12)
    else:
        numbers = [int(word) for word in sys.argv[2:]]
        found = production(2, *(numbers or [4]))
    print(json.dumps({**found, "load_average_before": before, "threads": threading.active_count()}, indent=1))


if __name__ == "__main__":
    main()
