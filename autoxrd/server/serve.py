"""What does `autoxrd serve` start? REST under uvicorn, SQLite or the database that is named, and local slots."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address

import uvicorn

from autoxrd.errors import UserInputError
from autoxrd.hooks.addresses import Guard
from autoxrd.hooks.dispatcher import Dispatcher
from autoxrd.jobs.housekeeping import Housekeeper
from autoxrd.jobs.local import LocalDispatcher
from autoxrd.jobs.reaper import Reaper
from autoxrd.logs import configure_logs
from autoxrd.server.app import build_app
from autoxrd.settings import Settings
from autoxrd.store.lock import JobLock
from autoxrd.store.service.database import Database
from autoxrd.store.service.keys import NewKey, Scope, ensure_owner, issue_key, revoke_named

__all__ = ["serve"]

OWNER = "local"
KEY_NAME = "serve"
KEY_DAYS = 30


def serve(settings: Settings, tell: object = print) -> None:
    """Run the service until it is interrupted.

    Args:
        settings: of the service.
        tell: prints a line for the person who started it.

    Raises:
        UserInputError: ``bind_address``, another address than this machine's own.
        StorageError: the data directory is in use, or the database cannot be reached.
    """
    assert callable(tell)
    _require_loopback(settings.host)
    configure_logs(settings)
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = JobLock(settings.data_dir / "serve.lock")
    try:
        with Database(settings.database(), settings.artifacts_dir()) as database:
            database.migrate()
            if database.dialect == "sqlite":
                Reaper(database, settings.lease_seconds).clear()  # this process is the only one: no other holds a job
            key = _key(database, settings)
            steps = Database(settings.database(), settings.artifacts_dir(), durable=False)
            local = LocalDispatcher(steps, settings)
            hooks = Dispatcher(steps, Guard(allow_loopback=settings.hooks_allow_loopback))
            hooks.start()
            keeper = Housekeeper(steps, settings.retention_days)
            keeper.start()
            app = build_app(settings, database, nudge=local.nudge, start=local.start, stop=local.stop)
            tell(f"AutoXRD listens on http://{settings.host}:{settings.port}")
            tell(f"API key (valid until the next start, {KEY_DAYS} days at most): {key.token}")
            uvicorn.run(app, host=settings.host, port=settings.port, log_config=None, access_log=False)
            keeper.close()
            hooks.close()
            steps.close()
    finally:
        lock.release()


def _key(database: Database, settings: Settings) -> NewKey:
    owner = ensure_owner(database, OWNER, limits={"open_jobs": settings.open_jobs})
    revoke_named(database, owner, KEY_NAME)
    return issue_key(database, owner, KEY_NAME, [Scope.ADMIN], lifetime=timedelta(days=KEY_DAYS))


def _require_loopback(host: str) -> None:
    try:
        local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise UserInputError(
            "bind_address",
            f"`autoxrd serve` listens on this machine only, not on {host!r:.60}: for others to reach it, run "
            "`autoxrd api` behind a server that speaks TLS (docs/service.md).",
        )
