"""A corpus of hostile uploads and names does no harm: it is refused in a sentence, or kept as mere bytes and words."""

from __future__ import annotations

import io
import json
import pickle
import re
import socket
import threading
import time
import zipfile
from pathlib import Path

import pytest
import uvicorn
from fastapi.testclient import TestClient

from autoxrd.agent.inputs import Request, load_job
from autoxrd.errors import AutoxrdError
from autoxrd.primitives import safe_name
from autoxrd.report.tables import guarded
from autoxrd.server.app import build_app
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database
from autoxrd.store.service.files import job_files

from .servers import free_port
from .test_api import CIF, PATTERN, is_problem

SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)

NAMES = (
    "../../../etc/passwd", "..\\..\\windows\\win.ini", "/etc/passwd", "C:\\boot.ini", "a\x00.xy", "a\r\nX-Evil: 1.xy",
    ".", "..", "", " ", ".htaccess", "-rf", "$(reboot).xy", "`id`.xy", "a;rm -rf b.xy", "<script>alert(1)</script>.xy",
    "=1+1.xy", "\u202egnp.xy", "x" * 5000 + ".xy", "CON", "file://x", "%2e%2e%2f", "{{7*7}}.xy", "ä" * 300,
    "'; DROP TABLE jobs;--.xy",
)  # fmt: skip
BILLION_LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">
<!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;"><!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;">
<!ENTITY g "&f;&f;&f;&f;&f;&f;&f;&f;&f;&f;"><!ENTITY h "&g;&g;&g;&g;&g;&g;&g;&g;&g;&g;">]>
<xrdMeasurements><sample><id>&h;</id></sample></xrdMeasurements>"""
OUTSIDE = (
    b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY p SYSTEM "file:///etc/passwd">]><xrdMeasurements>&p;</xrdMeasurements>'
)
REMOTE = b'<?xml version="1.0"?><!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd"><xrdMeasurements/>'
WORDS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=1+1",
    "@SUM(A1)",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "{{7*7}}",
    "%n%s",
)


def zipped(*names: str, data: bytes = b"10 100\n", copies: int = 1) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, data * copies)
    return buffer.getvalue()


CONTENTS = {
    "bomb.xrdml": BILLION_LAUGHS,
    "outside.xrdml": OUTSIDE,
    "remote.xrdml": REMOTE,
    "deep.xrdml": b"<a>" * 100_000,
    "zip-bomb.xy": zipped("p.xy", data=b"0" * 1_000_000, copies=40),
    "zip-slip.xy": zipped("../../../../tmp/autoxrd-slip.xy"),
    "gzip.xy": bytes.fromhex("1f8b0800000000000003") + b"\x00" * 200,
    "nul.xy": b"\x00" * 10_000,
    "one-line.xy": b"1 " * 2_000_000,
    "huge-number.xy": b"10 1" + b"0" * 100_000 + b"\n11 5\n",
    "nan.xy": b"10 nan\n11 inf\n12 -inf\n",
    "elf.xy": b"\x7fELF" + bytes(range(256)) * 20,
    "script.xy": b"#!/bin/sh\ntouch /tmp/autoxrd-hostile\n",
    "pickle.xy": pickle.dumps(("posix", "system", "id")),
}


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_name_never_leads_out_of_its_folder(name: str, tmp_path: Path) -> None:
    safe = safe_name(name)
    assert re.fullmatch(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,99}", safe), safe
    assert (tmp_path / safe).resolve().parent == tmp_path.resolve()


@SQLITE
def test_hostile_names_are_kept_as_words(quiet: TestClient, database: Database) -> None:
    for name in NAMES:
        files = [("pattern", (name, PATTERN[1])), ("structures", (name, CIF[1]))]
        answer = quiet.post("/api/v1/jobs", files=files)
        if answer.status_code != 201:  # a part without a usable name is none
            assert answer.status_code in {400, 422}, (name, answer.text)
            assert answer.headers["content-type"] == "application/problem+json"
            continue
        for file in job_files(database, answer.json()["id"]):
            assert re.fullmatch(r"(pattern|structure\.1)/[A-Za-z0-9_.+-]{1,100}", file.name)
    assert not list(database.artifacts.strangers())


@SQLITE
def test_words_come_back_as_words(quiet: TestClient) -> None:
    """A title or a fact is JSON, never a page; and no answer of the interface may be run as one."""
    for word in WORDS:
        request = json.dumps({"title": word, "sample": {"name": word}})
        made = quiet.post("/api/v1/jobs", data={"request": request}, files=[("pattern", PATTERN), ("structures", CIF)])
        assert made.json()["title"] == word
        assert made.headers["content-type"] == "application/json"
        assert made.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in made.headers["content-security-policy"]
    for control in ("a\x00b", "a\x1b[31m", "a\u202eb", "\ud800"):
        body = json.dumps({"title": control})
        answer = quiet.post("/api/v1/jobs", data={"request": body}, files=[("pattern", PATTERN), ("structures", CIF)])
        assert is_problem(answer, 422, "request_invalid"), control


@SQLITE
def test_broken_bodies_are_problems(quiet: TestClient) -> None:
    multipart = "multipart/form-data; boundary=x"
    deep = b'{"sample":' * 100_000
    bodies = {
        "application/json": [b"", b"[" * 100_000, deep, b'{"title": "\xff"}', b"NaN", b'{"priority": 1e999}', b"null"],
        multipart: [
            b"",
            b"--x",
            b"--x--",
            b"--x\r\n\r\n\r\n--x--",
            b"--y\r\n",
            b"--x\r\nContent-Disposition: \x00\r\n\r\n",
        ],
        "multipart/form-data": [b"--x--"],
        "multipart/form-data; boundary=" + "y" * 5000: [b"--x--"],
        "application/x-www-form-urlencoded": [b"request={}"],
        "application/json; charset=utf-16": [b"\xff\xfe{\x00}\x00"],
    }
    for kind, contents in bodies.items():
        for content in contents:
            answer = quiet.post("/api/v1/jobs", content=content, headers={"content-type": kind})
            assert 400 <= answer.status_code < 500, (kind, content[:40], answer.text)
            assert answer.headers["content-type"] == "application/problem+json"
    for path in ("/api/v1/jobs/x/review", "/api/v1/webhooks", "/api/v1/api-keys"):
        answer = quiet.post(path, content=b"[" * 100_000, headers={"content-type": "application/json"})
        assert 400 <= answer.status_code < 500, (path, answer.text)


@SQLITE
def test_four_gibibytes_declared_are_refused_unread(settings: Settings, database: Database) -> None:
    """Over a real socket: the answer comes although not a byte of the body was sent."""
    app = build_app(settings, database, nudge=lambda: None)
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10.0) as wire:
            head = f"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: {4 * 2**30}\r\n"
            wire.sendall((head + "Content-Type: multipart/form-data; boundary=x\r\n\r\n").encode())
            assert b" 413 " in wire.recv(4096).splitlines()[0]
    finally:
        server.should_exit = True
        thread.join(timeout=20)


@pytest.mark.parametrize("name", CONTENTS)
def test_no_content_does_harm(name: str, tmp_path: Path) -> None:
    """What the worker's process does with an input: one sentence, in a moment, and nothing outside its folder."""
    pattern, cif = tmp_path / name, tmp_path / "a.cif"
    pattern.write_bytes(CONTENTS[name])
    cif.write_bytes(CIF[1])
    began = time.process_time()
    with pytest.raises(AutoxrdError) as caught:
        load_job(Request(pattern=pattern, structures=(cif,), anode="Cu"))
    assert time.process_time() - began < 60.0
    assert "root:" not in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert not Path("/tmp/autoxrd-slip.xy").exists()
    assert not Path("/tmp/autoxrd-hostile").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({name, "a.cif"})


@pytest.mark.parametrize("word", WORDS)
def test_no_cell_of_a_table_is_a_formula(word: str) -> None:
    assert not guarded(word).startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/jobs?q=a%00b",
        "/api/v1/jobs?series=%00",
        "/api/v1/jobs?engine=%00",
        "/api/v1/jobs/%00",
        "/api/v1/jobs/%00/graph",
        "/api/v1/webhooks/%00/deliveries",
        "/api/v1/audit?before=%00",
    ],
)
def test_a_nul_in_an_address_is_the_callers_fault(quiet: TestClient, path: str) -> None:
    """PostgreSQL refuses the character; the answer must not say that the database is out of reach."""
    assert quiet.get(path).status_code in {200, 404, 422}
