"""`autoxrd serve` as a process of its own, and what a test asks it for over HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.service.servers import free_port

ROOT = Path(__file__).resolve().parents[2]
STUB = str(ROOT / "benchmarks" / "service" / "stub_host.py")
COMMAND = [sys.executable, "-P", "-c", "from autoxrd.cli.main import main; main()"]
FILES = [("pattern", ("pattern.xy", b"10 100\n10.1 120\n")), ("structures", ("a.cif", b"data_a\n"))]


@dataclass
class Service:
    """A running service and the key that it printed."""

    url: str
    key: str
    data_dir: Path

    def client(self, key: str | None = None) -> httpx.Client:
        """Return a client of the REST interface."""
        return httpx.Client(
            base_url=f"{self.url}/api/v1", headers={"Authorization": f"Bearer {key or self.key}"}, timeout=30.0
        )

    @contextlib.contextmanager
    def browsing(self) -> Iterator[httpx.Client]:
        """Give a client that is logged in as a browser is, without being one."""
        headers = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=60.0) as client:
            assert client.post("/login", data={"key": self.key}).status_code == 303
            yield client

    def submit(self, *, files: Any = FILES, **request: Any) -> str:
        """Queue a job; return its id."""
        with self.client() as client:
            answer = client.post("/jobs", data={"request": json.dumps(request)}, files=files)
            assert answer.status_code == 201, answer.text
            return str(answer.json()["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        """Look at a job."""
        with self.client() as client:
            found: dict[str, Any] = client.get(f"/jobs/{job_id}").json()
            return found

    def finished(self, job_id: str, seconds: float = 120.0) -> dict[str, Any]:
        """Wait for the end of a job."""
        deadline = time.monotonic() + seconds
        while not (job := self.job(job_id))["finished_at"]:
            assert time.monotonic() < deadline, job
            time.sleep(0.1)
        return job


@contextlib.contextmanager
def started(folder: Path, *, stub: bool = True, **variables: str) -> Iterator[Service]:
    """Run a service for a while."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AUTOXRD_")}
    environment |= {"AUTOXRD_DATA_DIR": str(folder / "data"), "AUTOXRD_PORT": str(port), "AUTOXRD_SLOTS": "1"}
    environment |= {"AUTOXRD_REQUESTS_PER_SECOND": "100000", "AUTOXRD_POLL_SECONDS": "0.1", **variables}
    if stub:
        environment["AUTOXRD_STEP_HOST"] = STUB
    log = folder / "serve.log"
    with log.open("wb") as out:
        process = subprocess.Popen([*COMMAND, "serve"], env=environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 180
        while not _answers(url):
            assert process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.1)
        found = re.search(r"axr_[0-9a-f]{32}_[A-Za-z0-9_-]{43}", log.read_text(errors="replace"))
        assert found is not None
        yield Service(url, found.group(), folder / "data")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=2.0).status_code == 200
    except httpx.TransportError:
        return False
