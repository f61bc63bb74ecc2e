"""What is kept, for whom, and for how long: quotas, deletion, sweeps, links and the audit log."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest
from fastapi.testclient import TestClient

from autoxrd.errors import Conflict, LimitExceeded, NotFound
from autoxrd.jobs.housekeeping import tidy
from autoxrd.logs import redacted
from autoxrd.primitives import sha256_hex
from autoxrd.store.service import audit, leases
from autoxrd.store.service.audit import Actor
from autoxrd.store.service.budgets import set_limits
from autoxrd.store.service.database import Database
from autoxrd.store.service.files import NewFile, add_upload, put_files
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.keys import ensure_owner
from autoxrd.store.service.leases import Ended
from autoxrd.store.service.links import read_link, signed_link
from autoxrd.store.service.listing import find_job
from autoxrd.store.service.models import OwnerRow, ServiceJobRow
from autoxrd.store.service.retention import GRACE, delete_job, delete_upload, expire, sweep
from autoxrd.store.service.transition import ask

from .access import bearer, token
from .factory import queued
from .test_api import PATTERN, finished, is_problem, submit
from .test_leases import RECORD

SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


def stored(database: Database) -> tuple[int, int]:
    """Bytes that the books say of the owner, and of all jobs."""
    with database.reading() as session:
        owner = session.get_one(OwnerRow, ensure_owner(database, "ada")).stored_bytes
        return owner, sum(row.stored_bytes for row in session.query(ServiceJobRow))


def over(database: Database, name: str = "a.txt", data: bytes = b"report") -> str:
    """A cancelled job with a graph and a file of its own."""
    job = queued(database, title="secret sample")
    lease = leases.claim(database, "w", ["light"])
    assert lease is not None
    JobGraph.create(database, lease, RECORD)
    leases.release(database, lease, Ended())
    with database.writing() as session:
        put_files(session, job, "report", {name: NewFile(database.artifacts.put(data), len(data))})
    ask(database, job, ensure_owner(database, "ada"), "cancel")
    return job


def age(database: Database, hours: float) -> None:
    """Let everything stored be older."""
    for artifact in database.artifacts.ids():
        path = database.artifacts.path(artifact)
        then = path.stat().st_mtime - 3600 * hours
        os.utime(path, (then, then))


def test_a_deleted_job_leaves_the_trail_and_nothing_else(database: Database) -> None:
    ada = ensure_owner(database, "ada")
    job, other = over(database, data=b"only mine"), over(database, data=b"of the other")
    mine, shared = sha256_hex(b"only mine"), sha256_hex(b"10 100\n11 120\n")
    with pytest.raises(NotFound):
        delete_job(database, job, Actor(ensure_owner(database, "eve")))
    delete_job(database, job, Actor(ada, request_id="r"))
    with pytest.raises(NotFound):
        find_job(database, job, ada)
    with pytest.raises(NotFound):
        delete_job(database, job, Actor(ada))
    assert sweep(database).files == 0  # too young
    age(database, 12)
    assert sweep(database).files == 1
    assert not database.artifacts.has(mine)
    assert database.artifacts.has(shared)  # the other job's input too
    assert JobGraph.open(database, job).events()
    assert find_job(database, other, ada).title == "secret sample"
    with database.reading() as session:
        row = session.get_one(ServiceJobRow, job)
        assert (row.title, row.request) == ("", "{}")
    entry = audit.list_audit(database, ada)[0]
    assert (entry.action, entry.subject, entry.request_id) == ("job.delete", job, "r")
    assert audit.list_audit(database, ensure_owner(database, "eve")) == []


def test_what_runs_is_not_deleted(database: Database) -> None:
    job = queued(database)
    with pytest.raises(Conflict):
        delete_job(database, job, Actor(ensure_owner(database, "ada")))
    age(database, 100)
    assert sweep(database).files == 0


def test_jobs_past_their_time_go(database: Database) -> None:
    old, open_ = over(database), queued(database)
    assert expire(database, timedelta(days=1)) == []
    assert expire(database, timedelta(days=1), datetime.now(UTC) + timedelta(days=2)) == [old]
    assert audit.list_audit(database, None)[0].details["why"] == "retention"
    assert find_job(database, open_, None).state == "queued"
    assert tidy(database, 1.0)["jobs"] == 0


@SQLITE
def test_bytes_stored_anew_are_not_swept(database: Database) -> None:
    """The same content, put again just before a sweep, is about to be named by a row."""
    artifact = database.artifacts.put(b"twice")
    age(database, GRACE.total_seconds() / 3600 + 1)
    database.artifacts.put(b"twice")
    assert sweep(database).files == 0
    age(database, GRACE.total_seconds() / 3600 + 1)
    assert sweep(database).files == 1
    assert not database.artifacts.has(artifact)


def test_storage_is_counted_and_limited(database: Database) -> None:
    ada = ensure_owner(database, "ada")
    job = queued(database)
    assert stored(database) == (14, 14)
    add_upload(database, ada, "u", NewFile("0" * 64, 100))
    add_upload(database, ada, "u", NewFile("0" * 64, 100))
    assert stored(database) == (114, 14)
    set_limits(database, ada, {"stored_bytes": 114})
    with pytest.raises(LimitExceeded) as caught:
        queued(database)
    assert caught.value.code == "storage_spent"
    delete_upload(database, Actor(ada), "0" * 64)
    queued(database)
    ask(database, job, ada, "cancel")
    delete_job(database, job, Actor(ada))
    assert stored(database) == (14, 14)


@SQLITE
def test_links(database: Database) -> None:
    job = over(database, name="report.html")
    link, until = signed_link(database, job, "report.html", timedelta(minutes=5))
    assert read_link(database, link).job_id == job
    text, _, mac = link.partition(".")
    other, _ = signed_link(database, job, "other.html", timedelta(minutes=5))
    for forged in (
        f"{text}.{mac[:-2]}AA",
        f"{other.partition('.')[0]}.{mac}",
        text,
        "",
        ".",
        f"{text}.",
        "ä.ö",
        "\ud800",
    ):
        with pytest.raises(NotFound) as caught:
            read_link(database, forged)
        assert caught.value.code == "link_invalid"
    with pytest.raises(NotFound):
        read_link(database, link, now=until + timedelta(seconds=1))
    assert link not in redacted(f"GET /api/v1/links/{link} 200")


@SQLITE
def test_over_rest(live: TestClient, database: Database) -> None:
    job = finished(live, submit(live).json()["id"])["id"]
    base = f"/api/v1/jobs/{job}"
    assert stored(database)[0] > 1000  # the steps' files are counted too
    made = live.post(f"{base}/links", json={"name": "graph.json", "expires_in_seconds": 60}).json()
    nobody = {"Authorization": ""}
    assert live.get(made["path"], headers=nobody).content == live.get(f"{base}/files/graph.json").content
    assert is_problem(live.post(f"{base}/links", json={"name": "../../etc/passwd"}), 404, "file_not_found")
    assert is_problem(live.get(made["path"] + "x", headers=nobody), 404, "link_invalid")
    assert is_problem(live.delete(base, headers=bearer(token(database, "eve"))), 404, "job_not_found")
    stays = live.post("/api/v1/artifacts", files={"file": PATTERN}).json()["sha256"]
    assert live.delete(base).status_code == 204
    for path in (base, f"{base}/events", f"{base}/files"):
        assert is_problem(live.get(path), 404, "job_not_found")
    assert is_problem(live.get(made["path"], headers=nobody), 404, "job_not_found")
    assert live.delete(f"/api/v1/artifacts/{stays}").status_code == 204
    entries = live.get("/api/v1/audit").json()
    assert [e["action"] for e in entries] == ["upload.delete", "job.delete", "link.create", "job.submit", "key.create"]
    assert all(e["key_id"] and e["request_id"] for e in entries[:-1])
    assert made["path"].rpartition("/")[2] not in str(entries)
    hers = live.get("/api/v1/audit", headers=bearer(token(database, "eve"))).json()
    assert {e["action"] for e in hers} == {"key.create"}
