"""What are the processes of a production set-up? API, worker and scheduler: any number of the first two.

The scheduler reaps dead leases, sees that messages exist for the work there is, and sends webhooks. Two
of them do no harm.
"""

from __future__ import annotations

import signal
import threading

import uvicorn

from autoxrd.errors import StorageError, UserInputError
from autoxrd.hooks.addresses import Guard
from autoxrd.hooks.dispatcher import Dispatcher
from autoxrd.jobs.celery_queue import Broker, Nudger, run_worker
from autoxrd.jobs.housekeeping import Housekeeper
from autoxrd.jobs.local import QUEUES
from autoxrd.jobs.reaper import Reaper
from autoxrd.logs import configure_logs, get_logger
from autoxrd.server.app import build_app
from autoxrd.settings import Settings
from autoxrd.store.service.database import Database

__all__ = ["api", "scheduler", "worker"]

TICK_SECONDS = 0.5


def api(settings: Settings) -> None:
    """Run a process that answers HTTP; behind a server that speaks TLS where others can reach it.

    Raises:
        UserInputError: ``broker_missing``.
        StorageError: the database cannot be reached.
    """
    broker = _broker(settings)
    configure_logs(settings)
    nudger = Nudger(broker)
    with _database(settings) as database:
        app = build_app(settings, database, nudge=nudger.nudge, start=nudger.start, stop=nudger.stop)
        uvicorn.run(app, host=settings.host, port=settings.port, log_config=None, access_log=False)


def worker(settings: Settings, queues: tuple[str, ...], concurrency: int) -> None:
    """Run a worker.

    Raises:
        UserInputError: ``broker_missing`` or ``queue_unknown``.
        StorageError: the database cannot be reached.
    """
    broker = _broker(settings)
    unknown = [name for name in queues if name not in QUEUES]
    if unknown or not queues:
        raise UserInputError("queue_unknown", f"Queues are {', '.join(QUEUES)}, not {', '.join(unknown) or 'none'}.")
    configure_logs(settings)
    _database(settings).close()  # migrated before the pool forks; no connection may be shared over a fork
    run_worker(settings, broker, queues, concurrency)


def scheduler(settings: Settings) -> None:
    """Reap dead leases, top up the queues and send webhooks until SIGTERM or SIGINT.

    Raises:
        UserInputError: ``broker_missing``.
        StorageError: the database cannot be reached at the start; later it is waited for.
    """
    broker = _broker(settings)
    configure_logs(settings)
    log = get_logger("scheduler")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    guard = Guard(allow_loopback=settings.hooks_allow_loopback)
    with _database(settings) as database, Dispatcher(database, guard) as hooks:
        hooks.start()
        keeper = Housekeeper(database, settings.retention_days)
        keeper.start()
        reaper = Reaper(database, settings.lease_seconds)
        while not stop.wait(TICK_SECONDS):
            try:
                reaper.sweep()
                broker.top_up(database, QUEUES)
            except StorageError as error:
                log.warning("tick_failed", code=error.code, detail=error.detail)
        keeper.close()


def _broker(settings: Settings) -> Broker:
    if settings.broker_url is None:
        raise UserInputError(
            "broker_missing",
            "Set AUTOXRD_BROKER_URL (redis://...): without a broker `autoxrd serve` is the whole service.",
        )
    return Broker(settings.broker_url.get_secret_value())


def _database(settings: Settings) -> Database:
    database = Database(settings.database(), settings.artifacts_dir())
    database.migrate()
    return database
