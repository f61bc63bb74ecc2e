"""The page of a job in a real browser: it follows the job, says what is done and why, and passes wishes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, update

from autoxrd.store.service.database import Database
from autoxrd.store.service.listing import find_job
from autoxrd.store.service.models import ServiceJobRow, StepRow
from autoxrd.web.course import DRAWN, course_of
from tests.service.access import token
from tests.service.factory import queued

from .browsing import Opened, logged_in
from .serving import Service, started

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def slow_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A stub whose steps take long enough to be watched."""
    with started(tmp_path_factory.mktemp("slow"), AUTOXRD_STUB_SECONDS="0.4") as running:
        yield running


@pytest.fixture
def watching(browser: Any, slow_service: Service) -> Iterator[Opened]:
    with logged_in(browser, slow_service) as visit:
        visit.expected.append("404")  # a stub's job has no fit to be drawn, and the page says so
        yield visit


def test_what_runs_is_said_and_can_be_paused_resumed_and_cancelled(watching: Opened) -> None:
    page = watching.page
    job = watching.service.submit(title="watched", budgets={"steps": 600})
    watching.go(f"/jobs/{job}")
    page.wait_for_selector("#graph [data-step='2']")
    assert page.inner_text("#job-head .state") == "Running"
    assert "cannot be drawn" in page.inner_text("#fit-missing")
    watching.sound()
    page.click("text=Pause")
    page.wait_for_selector("#job-now >> text=Paused")
    assert page.locator("#job-head button").all_inner_texts() == ["Resume", "Cancel"]
    watching.sound()
    page.focus("text=Resume")
    page.keyboard.press("Enter")
    page.wait_for_selector("#job-head .state >> text=Running")
    page.click("text=Cancel")
    page.wait_for_selector("#job-head .state >> text=Cancelled")
    assert watching.service.job(job)["state"] == "cancelled"
    assert page.locator("#job-head button").all_inner_texts() == ["Resume"]


def test_a_job_that_is_over_can_be_deleted(watching: Opened) -> None:
    page = watching.page
    job = watching.service.submit(title="to be deleted", budgets={"steps": 1})
    watching.service.finished(job)
    watching.go(f"/jobs/{job}")
    page.click("text=Delete this job")
    page.check("[name=sure]")
    watching.sound()
    page.click("button:has-text('Delete')")
    page.wait_for_url("**/jobs")
    assert page.locator("text=to be deleted").count() == 0
    watching.go(f"/jobs/{job}")
    assert "There is no job" in page.inner_text("main")


def test_a_failed_job_says_what_to_do(watching: Opened) -> None:
    job = watching.service.submit(title="unreadable")
    watching.go(f"/jobs/{job}")
    watching.page.wait_for_selector("#job-now >> text=Failed")
    assert "The pattern cannot be read." in watching.page.inner_text("#job-now")
    assert "start a new refinement" in watching.page.inner_text("#job-now")
    watching.sound()


def test_a_long_job_is_drawn_from_its_end(tmp_path: Path) -> None:
    with Database(f"sqlite:///{tmp_path / 's.sqlite'}", tmp_path / "artifacts", durable=False) as database:
        database.migrate()
        job = queued(database)
        rows = [step_row(job, n) for n in range(1, DRAWN + 51)]
        with database.writing() as session:
            session.execute(insert(StepRow), [step_row(job, 0), *rows])
            now = {"steps_used": len(rows), "current_state": rows[-1]["candidate_id"], "rwp": 0.1, "gof": 2.0}
            session.execute(update(ServiceJobRow).values(**now))
        course = course_of(database, find_job(database, job, None))
    assert (course.earlier, len(course.steps), course.best) == (50, DRAWN, DRAWN + 50)
    assert course.graph is not None
    assert {row.status for row in course.graph.rows} == {"path"}
    assert course.curve["rexp"] == 5.0


def step_row(job: str, ordinal: int) -> dict[str, Any]:
    return {
        "job_id": job,
        "ordinal": ordinal,
        "parent_id": f"{ordinal - 1:016x}" if ordinal else None,
        "candidate_id": f"{ordinal:016x}",
        "status": "accepted" if ordinal else "root",
        "kind": "zero" if ordinal else "prepare",
        "stage": "instrument",
        "planner": "rules",
        "rationale": "",
        "reasons": "[]",
        "rwp": 0.1,
        "gof": 2.0,
        "n_free": 1,
        "seconds": 1.0,
        "at": "2026-01-01T00:00:00.000000Z",
    }


def test_the_page_works_without_a_script(browser: Any, slow_service: Service) -> None:
    service = slow_service
    job = service.submit(title="plain", budgets={"steps": 3})
    service.finished(job)
    visit = Opened.at(browser, service, java_script_enabled=False)
    visit.log_in()
    visit.go(f"/jobs/{job}")
    visit.page.click("#graph [data-step='2'] text.title")
    visit.page.wait_for_selector("#step-2")
    assert "because the stub says so" in visit.page.inner_text("#details")
    visit.close()


def test_others_jobs_are_not_there(slow_service: Service) -> None:
    service = slow_service
    job = service.submit(title="mine", budgets={"steps": 1})
    service.finished(job)
    with Database(f"sqlite:///{service.data_dir / 'service.sqlite'}", service.data_dir / "artifacts") as database:
        key = token(database, "eve")
    with service.browsing() as mine, httpx.Client(base_url=service.url, headers=mine.headers) as eve:
        assert eve.post("/login", data={"key": key}).status_code == 303
        state = service.job(job)["current_state"]
        for path in ("", "/live", "/steps/1", f"/fit.json?state={state}", "/inputs/pattern/pattern.xy"):
            assert eve.get(f"/jobs/{job}{path}").status_code == 404, path
            if not path.startswith("/fit"):
                assert mine.get(f"/jobs/{job}{path}").status_code == 200, path
        csrf = mine.get(f"/jobs/{job}").text.partition('name="csrf" value="')[2].partition('"')[0]
        assert eve.post(f"/jobs/{job}/resume", data={"csrf": csrf}).status_code == 404
        assert mine.post(f"/jobs/{job}/cancel", data={"csrf": "x"}).status_code == 403
        assert mine.post(f"/jobs/{job}/cancel", data={"csrf": csrf}).status_code == 409, "the table has no such step"
