"""Events reach a receiver signed, once more when it failed, under both secrets while one replaces the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from fastapi.testclient import TestClient
from standardwebhooks import Webhook, WebhookVerificationError

from autoxrd.domain.lifecycle import Trigger
from autoxrd.errors import UserInputError
from autoxrd.hooks.addresses import Guard
from autoxrd.hooks.dispatcher import Dispatcher
from autoxrd.server.app import build_app
from autoxrd.settings import Settings
from autoxrd.store.service import outbox, webhooks
from autoxrd.store.service.database import Database
from autoxrd.store.service.keys import ensure_owner
from autoxrd.store.service.transition import fail, locked, move

from .access import bearer, token
from .factory import queued

SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


@dataclass
class Receiver:
    """A web server that takes events: what it answers next, and what it got."""

    answers: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.got.append((self.path, dict(self.headers), body))
            self.send_response(found.answers.pop(0) if found.answers else 204)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.url = f"http://127.0.0.1:{server.server_port}/hook"
    yield found
    server.shutdown()
    server.server_close()


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def sender(database: Database) -> Iterator[tuple[Dispatcher, Clock]]:
    clock = Clock()
    with Dispatcher(database, Guard(allow_loopback=True), now=clock) as dispatcher:
        yield dispatcher, clock


def registered(database: Database, url: str, *kinds: str, every_job: bool = True) -> webhooks.NewWebhook:
    owner = ensure_owner(database, "ada")
    return webhooks.register(database, owner, url, kinds or outbox.KINDS, every_job=every_job)


def end(database: Database, job: str, verdict: str | None) -> None:
    with database.writing() as session:
        row = locked(session, job)
        if verdict is None:
            fail(session, row, Trigger.FAIL, {"code": "pattern_unreadable", "detail": "No numbers."})
        else:
            move(session, row, Trigger.COMPLETE, {"verdict": verdict})


def test_events_arrive_signed(database: Database, receiver: Receiver, sender: tuple[Dispatcher, Clock]) -> None:
    made = registered(database, receiver.url)
    for verdict in ("accepted", "abstained", None):
        end(database, queued(database, title=str(verdict)), verdict)
    queued(database, owner="eve")  # somebody else's: not told
    assert sender[0].sweep() == 6
    assert sender[0].sweep() == 0
    kinds = []
    for path, headers, body in receiver.got:
        content = Webhook(made.secret).verify(body, headers)
        assert path == "/hook"
        assert content["data"]["title"] in {"accepted", "abstained", "None"}
        kinds.append(content["type"])
        with pytest.raises(WebhookVerificationError):
            Webhook(made.secret).verify(body + b" ", headers)
    assert sorted(kinds) == ["job.abstained", *["job.accepted"] * 3, "job.completed", "job.failed"]
    assert len({headers["webhook-id"] for _, headers, _ in receiver.got}) == 6


def test_a_failure_is_tried_again_later_and_at_last_given_up(
    database: Database, receiver: Receiver, sender: tuple[Dispatcher, Clock]
) -> None:
    made = registered(database, receiver.url, "job.accepted")
    queued(database)
    dispatcher, clock = sender
    receiver.answers = [500, 302]
    receiver.headers = {"Location": "http://127.0.0.1:1/"}
    assert [dispatcher.sweep(), dispatcher.sweep()] == [1, 0]  # not at once
    clock.ahead += timedelta(seconds=6)
    assert dispatcher.sweep() == 1
    clock.ahead += timedelta(seconds=301)
    assert dispatcher.sweep() == 1
    (found,) = outbox.deliveries(database, made.webhook.id)
    assert (found.status, found.attempts, found.next_at) == ("delivered", 3, None)
    assert [h["error"] for h in found.history] == ["status", "redirect_refused", None]
    assert len({headers["webhook-id"] for _, headers, _ in receiver.got}) == 1

    again = outbox.redeliver(database, made.webhook.id, found.id)
    assert (again.status, again.id) == ("pending", found.id)
    receiver.answers, receiver.headers = [503] * 20, {}
    attempts = 0
    while dispatcher.sweep():
        attempts += 1
        clock.ahead += timedelta(days=2)
    assert attempts == len(outbox.BACKOFF_SECONDS) + 1
    (found,) = outbox.deliveries(database, made.webhook.id, status="failed")
    assert len(found.history) == 3 + attempts


def test_two_dispatchers_send_a_message_once(database: Database, receiver: Receiver) -> None:
    registered(database, receiver.url, "job.accepted")
    for _ in range(12):
        queued(database)
    guards = [Guard(allow_loopback=True) for _ in range(2)]
    with Dispatcher(database, guards[0]) as one, Dispatcher(database, guards[1]) as two:
        threads = [threading.Thread(target=d.sweep) for d in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ids = [headers["webhook-id"] for _, headers, _ in receiver.got]
    assert len(ids) == len(set(ids)) == 12


def test_what_was_rolled_back_is_not_told(database: Database) -> None:
    made = registered(database, "https://example.org/")
    job = queued(database)

    def broken() -> None:
        with database.writing() as session:
            move(session, locked(session, job), Trigger.COMPLETE, {"verdict": "accepted"})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert [d.kind for d in outbox.deliveries(database, made.webhook.id)] == ["job.accepted"]


@SQLITE
def test_secrets_rotate_with_an_overlap(
    database: Database, receiver: Receiver, sender: tuple[Dispatcher, Clock]
) -> None:
    made = registered(database, receiver.url, "job.accepted")
    owner = ensure_owner(database, "ada")
    new = webhooks.rotate(database, owner, made.webhook.id, overlap=timedelta(hours=1))
    assert new.webhook.secrets == 2
    queued(database)
    sender[0].sweep()
    _, headers, body = receiver.got[-1]
    for secret in (made.secret, new.secret):
        assert Webhook(secret).verify(body, headers)
    newest = webhooks.rotate(database, owner, made.webhook.id, overlap=timedelta())
    queued(database)
    sender[0].sweep()
    _, headers, body = receiver.got[-1]
    assert Webhook(newest.secret).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new.secret).verify(body, headers)


@SQLITE
def test_a_receiver_that_is_gone_gets_nothing_more(
    database: Database, receiver: Receiver, sender: tuple[Dispatcher, Clock]
) -> None:
    made = registered(database, receiver.url, "job.accepted")
    queued(database)
    receiver.answers = [410]
    sender[0].sweep()
    queued(database)
    assert sender[0].sweep() == 0
    hook = webhooks.find(database, ensure_owner(database, "ada"), made.webhook.id)
    assert hook.disabled_at is not None


INSIDE = (
    "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1/", "https://192.168.1.1/", "https://172.16.0.1/",
    "https://169.254.169.254/latest/", "https://0.0.0.0/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:10.0.0.1]/",
    "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/", "https://[fe80::1]/", "https://[fd00::1]/",
    "https://224.0.0.1/", "https://255.255.255.255/", "https://100.64.0.1/", "https://2130706433/", "https://0x7f.1/",
    "https://localhost/", "https://localhost:8417/",
)  # fmt: skip
UNSOUND = (
    "", "x", "ftp://example.org/", "file:///etc/passwd", "http://example.org/", "https://", "https://u:p@example.org/",
    "https://example.org/#f", "https://example.org:0/", "https://example.org:99999/", "https://exa mple.org/",
    "https://example.org/\r\nX: y", "https://ex\u00e4mple.org/", "gopher://example.org/", "https://u@example.org/",
)  # fmt: skip


@pytest.mark.parametrize("url", INSIDE)
def test_no_address_inside_is_asked(url: str) -> None:
    with pytest.raises(UserInputError) as caught:
        Guard().check(url)
    assert caught.value.code in {"callback_private", "callback_unresolved"}


@pytest.mark.parametrize("url", UNSOUND)
def test_no_unsound_address_is_asked(url: str) -> None:
    with pytest.raises(UserInputError) as caught:
        Guard(resolver=lambda *_: ["93.184.216.34"]).check(url)
    assert caught.value.code == "callback_invalid"


def test_the_address_that_was_checked_is_the_one_that_is_asked() -> None:
    names = {"good.example": ["93.184.216.34"], "mixed.example": ["93.184.216.34", "10.0.0.1"], "none.example": []}
    guard = Guard(resolver=lambda host, _: names[host])
    place = guard.check("https://good.example/hook?a=1")
    assert (place.pinned, place.authority) == ("https://93.184.216.34:443/hook?a=1", "good.example")
    for name, code in (("mixed", "callback_private"), ("none", "callback_unresolved")):
        with pytest.raises(UserInputError) as caught:
            guard.check(f"https://{name}.example/")
        assert caught.value.code == code


@SQLITE
def test_a_name_that_moves_inside_is_not_followed(database: Database, receiver: Receiver) -> None:
    """DNS rebinding: public when it was registered, this machine when an event is due."""
    made = registered(database, "https://rebind.example/", "job.accepted")
    queued(database)
    with Dispatcher(database, Guard(resolver=lambda *_: ["127.0.0.1"])) as dispatcher:
        assert dispatcher.sweep() == 1
    (found,) = outbox.deliveries(database, made.webhook.id)
    assert found.history[0]["error"] == "callback_private"
    assert receiver.got == []


@SQLITE
def test_over_rest(settings: Settings, database: Database, receiver: Receiver) -> None:
    app = build_app(settings.model_copy(update={"hooks_allow_loopback": True}), database, nudge=lambda: None)
    base = "/api/v1/webhooks"
    with TestClient(app, headers=bearer(token(database)), raise_server_exceptions=False) as client:
        assert client.post(base, json={"url": "https://10.0.0.1/"}).json()["code"] == "callback_private"
        assert client.post(base, json={"url": receiver.url, "kinds": ["x"]}).status_code == 422
        made = client.post(base, json={"url": receiver.url, "kinds": ["job.accepted"], "every_job": False}).json()
        assert made["secret"].startswith("whsec_")
        hook = f"{base}/{made['webhook']['id']}"
        assert made["secret"] not in client.get(base).text + client.get(hook).text
        files: Any = [("pattern", ("p.xy", b"10 1\n")), ("structures", ("a.cif", b"data_a\n"))]
        plain = client.post("/api/v1/jobs", files=files)
        unknown = client.post("/api/v1/jobs", files=files, data={"request": json.dumps({"callback": "https://x/"})})
        assert (plain.status_code, unknown.json()["code"]) == (201, "callback_unregistered")
        named = client.post("/api/v1/jobs", files=files, data={"request": json.dumps({"callback": receiver.url})})
        (delivery,) = client.get(f"{hook}/deliveries").json()
        assert (delivery["job_id"], delivery["kind"]) == (named.json()["id"], "job.accepted")
        assert client.post(f"{hook}/deliveries/{delivery['id']}/redeliver").status_code == 202
        assert client.post(f"{hook}/rotate").json()["secret"] != made["secret"]
        with TestClient(app, headers=bearer(token(database, "eve"))) as eve:
            assert eve.get(hook).status_code == eve.post(f"{hook}/rotate").status_code == 404
        assert client.delete(hook).status_code == 204
        assert client.get(hook).status_code == 404
