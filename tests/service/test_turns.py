"""In which order are submissions worked on? One order for programs and for pages."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from anyio import CapacityLimiter
from fastapi.testclient import TestClient

from autoxrd.api.context import ApiContext
from autoxrd.server.app import build_app
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database
from autoxrd.store.service.listing import count_states

from .access import bearer, token

pytestmark = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


def test_a_page_waits_in_the_same_order_as_a_program(
    settings: Settings, database: Database, small_job: tuple[Path, Path]
) -> None:
    key = token(database)
    files = [(n, (p.name, p.read_bytes())) for n, p in zip(("pattern", "structures"), small_job, strict=True)]
    app = build_app(settings, database, nudge=lambda: None)
    with TestClient(app) as client, ThreadPoolExecutor(2) as pool:
        context: ApiContext = app.state.context
        turns: CapacityLimiter = context.submitting
        assert client.post("/login", data={"key": key}, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
        text = client.get("/jobs/new").text
        fields = {name: text.partition(f'name="{name}" value="')[2].partition('"')[0] for name in ("csrf", "key")}
        assert client.portal is not None
        busy = [object(), object()]
        for borrower in busy:
            client.portal.call(turns.acquire_on_behalf_of, borrower)

        def from_page() -> int:
            data = {**fields, "anode": "Cu", "title": "from a page"}
            headers = {"Sec-Fetch-Site": "same-origin"}
            return client.post("/jobs/new", data=data, files=files, headers=headers, follow_redirects=False).status_code

        def from_program() -> int:
            data = {"request": json.dumps({"title": "from a program"})}
            return client.post("/api/v1/jobs", data=data, files=files, headers=bearer(key)).status_code

        def waiting(n: int) -> bool:
            assert client.portal is not None
            deadline = time.monotonic() + 60
            while client.portal.call(turns.statistics).tasks_waiting != n:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.01)
            return True

        page = pool.submit(from_page)
        assert waiting(1)
        program = pool.submit(from_program)
        assert waiting(2)
        assert count_states(database) == {}, "both wait"
        for borrower in busy:
            client.portal.call(turns.release_on_behalf_of, borrower)
        assert (page.result(60), program.result(60)) == (303, 201)
        assert count_states(database) == {"queued": 2}
