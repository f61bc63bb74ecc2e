"""Databases of both kinds, a running service with a stub in place of the engine, and a client for it."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from autoxrd.jobs.local import LocalDispatcher
from autoxrd.jobs.sessions import SessionCache
from autoxrd.jobs.work import Workshop
from autoxrd.server.app import build_app
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database
from autoxrd.store.service.keys import ensure_owner

from .access import bearer, token
from .fleet import Fleet
from .servers import Postgres, Redis, postgres_programs

ROOT = Path(__file__).resolve().parents[2]
STUB = str(ROOT / "benchmarks" / "service" / "stub_host.py")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server of this test session."""
    if postgres_programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="autoxrd-postgres-"))
    folder.chmod(0o755)
    server = Postgres(folder / "cluster")
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'service.sqlite'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database(f"test_{secrets.token_hex(6)}")


@pytest.fixture
def database(url: str, tmp_path: Path) -> Iterator[Database]:
    """A migrated database with one owner, ``ada``."""
    with Database(url, tmp_path / "artifacts", durable=False) as opened:
        opened.migrate()
        ensure_owner(opened, "ada")
        yield opened


@pytest.fixture
def settings(url: str, tmp_path: Path) -> Settings:
    """Settings of a quick service around a stub."""
    return Settings(
        data_dir=tmp_path,
        database_url=url,
        slots=2,
        step_host=STUB,
        heartbeat_seconds=0.2,
        lease_seconds=2.0,
        poll_seconds=0.1,
    )


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[Redis]:
    """A Redis server of this test."""
    if shutil.which("redis-server") is None:
        pytest.skip("Redis is not installed (Debian: redis-server)")
    server = Redis(tmp_path / "redis")
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def fleet(tmp_path: Path, postgres: Postgres, redis_server: Redis) -> Iterator[Fleet]:
    """A production set-up around the stub; the test starts its processes."""
    url = postgres.new_database(f"fleet_{secrets.token_hex(6)}")
    made = Fleet(tmp_path, postgres, redis_server, url, STUB)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("AUTOXRD_") and n != "AUTOXRD_GSASII_PYTHON"]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def small_job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Pattern and CIF of a small real job."""
    from tests.agent.small import write_inputs

    return write_inputs(tmp_path_factory.mktemp("small"))


@pytest.fixture
def quiet(settings: Settings, database: Database) -> Iterator[TestClient]:
    """A client of a service whose jobs stay queued."""
    app = build_app(settings, database, nudge=lambda: None)
    with TestClient(app, headers=bearer(token(database)), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def live(settings: Settings, database: Database) -> Iterator[TestClient]:
    """A client of a service that works."""
    local = LocalDispatcher(database, settings)
    app = build_app(settings, database, nudge=local.nudge, start=local.start, stop=local.stop)
    with TestClient(app, headers=bearer(token(database)), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def shop(database: Database) -> Iterator[Workshop]:
    """Does steps with engines of its own."""
    cache = SessionCache(1)
    yield Workshop(database, cache, Settings())
    cache.close()
