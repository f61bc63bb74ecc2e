"""A person's word becomes a step through the same gates, once, and the graph says whose it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from autoxrd.errors import Conflict
from autoxrd.jobs.local import QUEUES
from autoxrd.jobs.sessions import SessionCache
from autoxrd.jobs.work import Workshop
from autoxrd.settings import Settings
from autoxrd.store.service import leases, reviews
from autoxrd.store.service.database import Database
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.leases import Ended
from autoxrd.store.service.listing import find_job
from autoxrd.store.service.reviews import Answer, Decision

from .factory import queued
from .test_work import real_job

SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


@pytest.fixture
def work(database: Database) -> Iterator[Callable[[], list[str]]]:
    """Do steps as long as a job can be claimed; return what they were."""
    cache = SessionCache(1)
    shop = Workshop(database, cache, Settings())

    def run() -> list[str]:
        done = []
        while (lease := leases.claim(database, "w", QUEUES)) is not None:
            step = shop.advance(lease)
            leases.release(database, lease, Ended(queue=step.queue))
            done.append(step.step)
        return done

    yield run
    cache.close()


@pytest.mark.real
@SQLITE
def test_a_person_accepts_rejects_and_adds(
    database: Database, small_job: tuple[Path, Path], work: Callable[[], list[str]]
) -> None:
    job = real_job(database, small_job, steps=4, review="each_step")
    owner = find_job(database, job, None).request  # the request is kept as it was sent
    assert owner["review"] == "each_step"
    ada = leases_owner(database, job)

    def say(decision: Decision, action: dict[str, object] | None = None, note: str = "") -> str:
        return reviews.answer(database, job, ada, Answer(decision, action, note)).id

    assert work() == ["input", "prepare", "ask"]
    first = reviews.list_reviews(database, job)[-1]
    assert (find_job(database, job, None).state, first.status) == ("waiting", "asked")
    say(Decision.ACCEPT)
    assert work() == ["attempt", "ask"]
    say(Decision.REJECT, note="The background is fine.")
    assert work() == ["attempt", "ask"]
    refused = say(Decision.ADD, {**first.action, "parent": "0123456789abcdef"})
    assert work() == ["attempt", "ask"]
    say(Decision.ADD, {**first.action, "parent": "current", "evidence": [], "rationale": "again"})
    assert work()[0] == "attempt"

    graph = JobGraph.open(database, job)
    one, two = graph.attempts()[:2]
    assert one.planner["name"] == two.planner["name"] == "person"
    assert (one.planner["proposed_by"], one.planner["review"]) == ("rules", "accept")
    assert one.decision.checks  # judged like any other
    assert (two.accepted, two.candidate) == (False, None)
    assert "rejected_by_person" in two.decision.reasons
    assert two.decision.details["rejected_by_person"] == "The background is fine."
    assert two.action != one.action
    by_id = {r.id: r for r in reviews.list_reviews(database, job)}
    assert [r.status for r in by_id.values()][:2] == ["done", "done"]
    assert [r.attempt for r in by_id.values()][:2] == [1, 2]
    assert by_id[refused].status == "refused"
    assert "state_unknown" in str(by_id[refused].reason)


def leases_owner(database: Database, job: str) -> str:
    from autoxrd.store.service.models import ServiceJobRow

    with database.reading() as session:
        return session.get_one(ServiceJobRow, job).owner_id


def test_what_cannot_be_said(database: Database) -> None:
    job = queued(database)
    ada = leases_owner(database, job)
    with pytest.raises(Conflict) as caught:
        reviews.answer(database, job, ada, Answer(Decision.ACCEPT))
    assert caught.value.code == "review_not_asked"
    assert reviews.answer(database, job, ada, Answer(Decision.ADD, {"kind": "zero"})).status == "answered"
    for _ in range(reviews.MOST_WAITING - 1):
        reviews.answer(database, job, ada, Answer(Decision.ADD, {"kind": "zero"}))
    with pytest.raises(Conflict) as caught:
        reviews.answer(database, job, ada, Answer(Decision.ADD, {"kind": "zero"}))
    assert caught.value.code == "reviews_waiting"


ACTION = {
    "kind": "zero",
    "stage": "instrument",
    "parameters": ["instrument.zero"],
    "rationale": "the lines are shifted",
    "evidence": [
        {"feature": "position.zero", "value": 0.05, "comparison": "abs>", "threshold": 0.01, "source": "root"}
    ],
    "predictions": [{"metric": "position.zero", "direction": "toward_zero", "minimum_effect": 0.02}],
}


@SQLITE
def test_over_rest(quiet: TestClient, database: Database) -> None:
    job = queued(database)
    url = f"/api/v1/jobs/{job}"
    said = quiet.post(f"{url}/review", json={"decision": "add", "action": ACTION, "note": "<b>why</b>"})
    assert said.status_code == 202, said.text
    assert [r["action"]["parent"] for r in quiet.get(f"{url}/reviews").json()] == ["current"]
    assert quiet.post(f"{url}/review", json={"decision": "accept"}).json()["code"] == "review_not_asked"
    for wrong in (
        {"decision": "add", "action": {**ACTION, "kind": "magic"}},
        {"decision": "add", "action": {}},
        {"decision": "add"},
        {"decision": "maybe"},
        {"decision": "accept", "action": ACTION},
        {"decision": "add", "action": ACTION, "note": "\x00"},
    ):
        answer = quiet.post(f"{url}/review", json=wrong)
        assert (answer.status_code, answer.json()["code"]) == (422, "request_invalid"), wrong
    kinds = [e["kind"] for e in quiet.get(f"{url}/events").json()["events"]]
    assert kinds == ["job.accepted", "review.answered"]
    assert json.loads(quiet.get(f"{url}/reviews").text)[0]["note"] == "<b>why</b>"
    quiet.post(f"{url}/cancel")
    assert quiet.post(f"{url}/review", json={"decision": "add", "action": ACTION}).json()["code"] == "job_state"
