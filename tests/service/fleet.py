"""A production set-up started by a test: API under uvicorn, Celery workers, scheduler, PostgreSQL, Redis; no Docker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from .servers import Postgres, Redis, free_port

COMMAND = [sys.executable, "-P", "-c", "from autoxrd.cli.main import main; main()"]
REQUEST_FILES = [("pattern", ("pattern.xy", b"10 100\n10.1 120\n")), ("structures", ("a.cif", b"data_a\n"))]


@dataclass
class Fleet:
    """The processes of one service."""

    folder: Path
    postgres: Postgres
    redis: Redis
    database_url: str
    step_host: str
    extra: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    clients: list[httpx.Client] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of every process, as docker-compose.yml gives them."""
        return {
            **os.environ,
            "AUTOXRD_DATA_DIR": str(self.folder / "data"),
            "AUTOXRD_DATABASE_URL": self.database_url,
            "AUTOXRD_BROKER_URL": self.redis.url,
            "AUTOXRD_STEP_HOST": self.step_host,
            "AUTOXRD_HEARTBEAT_SECONDS": "0.3",
            "AUTOXRD_LEASE_SECONDS": "4",
            "AUTOXRD_REQUESTS_PER_SECOND": "100000",
            **self.extra,
        }

    def run(self, *words: str) -> str:
        """Run a command of ours to its end and return what it printed."""
        done = subprocess.run(
            [*COMMAND, *words], env=self.environment, capture_output=True, text=True, check=True, timeout=120
        )
        return done.stdout.strip()

    def start(self, name: str, *words: str, **variables: str) -> subprocess.Popen[bytes]:
        """Start a process of the service; its log is NAME.log."""
        environment = {**self.environment, **variables}
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen([*COMMAND, *words], env=environment, stdout=log, stderr=log)
        self.processes[name] = process
        return process

    def start_api(self, name: str = "api", port: int | None = None) -> None:
        """Start an API process and wait until it answers."""
        port = port or self.port
        self.start(name, "api", "--port", str(port))
        deadline = time.monotonic() + 180
        while True:
            try:
                if httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=2.0).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            assert time.monotonic() < deadline, self.log(name)
            time.sleep(0.1)

    def start_all(self, workers: int = 2, concurrency: int = 1) -> None:
        """Start API, scheduler and workers."""
        self.start("scheduler", "scheduler")
        self.start_workers(workers, concurrency)
        self.start_api()

    def start_workers(self, workers: int = 2, concurrency: int = 1) -> None:
        """Start workers."""
        for i in range(workers):
            self.start(f"worker{i}", "worker", "--concurrency", str(concurrency))

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Kill one process and wait for its end."""
        process = self.processes.pop(name)
        process.send_signal(how)
        process.wait(timeout=30)

    def stop(self) -> None:
        """Kill what is left."""
        for name in list(self.processes):
            self.kill(name)
        for client in self.clients:
            client.close()

    def log(self, name: str) -> str:
        """Return the log of a process."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def logs(self) -> str:
        """Return all logs."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    def client(self, key: str) -> httpx.Client:
        """Return a client with a key."""
        base = f"http://127.0.0.1:{self.port}/api/v1"
        self.clients.append(httpx.Client(base_url=base, headers={"Authorization": f"Bearer {key}"}, timeout=30.0))
        return self.clients[-1]


def submit(client: httpx.Client, request: str, key: str | None = None) -> str:
    """Queue a job over HTTP; return its id. Repeated with its key until the service has answered."""
    headers = {"Idempotency-Key": key} if key else {}
    deadline = time.monotonic() + 60
    while True:
        try:
            answer = client.post("/jobs", data={"request": request}, files=REQUEST_FILES, headers=headers)
            if answer.status_code == 201:
                return str(answer.json()["id"])
            assert answer.status_code == 503, answer.text
        except httpx.TransportError:
            assert key is not None
        assert time.monotonic() < deadline
        time.sleep(0.2)


def settled(client: httpx.Client, jobs: list[str], seconds: float) -> dict[str, dict[str, Any]]:
    """Wait until all jobs are over; return them by id."""
    deadline = time.monotonic() + seconds
    done: dict[str, dict[str, Any]] = {}
    while len(done) < len(jobs):
        for job in jobs:
            if job in done:
                continue
            try:
                answer = client.get(f"/jobs/{job}")
            except httpx.TransportError:
                break
            if answer.status_code == 200 and answer.json()["finished_at"]:
                done[job] = answer.json()
        left = [job for job in jobs if job not in done]
        assert time.monotonic() < deadline, f"not over: {left}"
        time.sleep(0.1)
    return done
