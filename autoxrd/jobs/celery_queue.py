"""How do several machines share the work? By Celery over Redis; the only module that imports Celery.

A message says "there may be work", nothing more. The database says what the work is, who may do it, and what came of
it. So a message that is lost, sent twice or late does no harm: the scheduler sends another, and a worker that finds
nothing to claim goes on. Messages are acknowledged before the step: redelivery is the database's business.

A child of the prefork pool computes nothing. It holds a slot, whose host is a process of its own; both die with the
child, the child with the worker.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import redis
from celery import Celery, signals
from kombu.exceptions import KombuError, OperationalError

from autoxrd.engines.launcher import die_with_parent
from autoxrd.errors import AutoxrdError, StorageError
from autoxrd.jobs.slot import Slot
from autoxrd.logs import get_logger
from autoxrd.settings import Settings
from autoxrd.store.service import leases
from autoxrd.store.service.database import Database

__all__ = ["Broker", "Nudger", "run_worker"]

TASK = "autoxrd.look"
QUEUED_AT_MOST = 64
"""Messages that the scheduler keeps in a queue: enough for every worker to find one, few enough to overlook."""
PAUSE_SECONDS = 0.02
_BROKER_ERRORS = (KombuError, OperationalError, redis.RedisError, OSError)

_log = get_logger("celery")


class Broker:
    """The message transport.

    Args:
        url: ``redis://...``.
    """

    def __init__(self, url: str) -> None:
        # connects when first used, and anew in a process that was forked
        self._client = redis.Redis.from_url(url, socket_connect_timeout=2.0, socket_timeout=5.0)
        self.app = Celery("autoxrd", broker=url, set_as_current=False)
        self.app.conf.update(
            task_ignore_result=True,
            task_acks_late=False,
            task_publish_retry=False,
            worker_prefetch_multiplier=1,
            worker_hijack_root_logger=False,
            worker_redirect_stdouts=False,
            # Not to control anything: its subscription is the one socket that is always listened to. Without it, a
            # worker whose acknowledgement failed with Redis waits for that message for ever and never reconnects.
            worker_enable_remote_control=True,
            worker_send_task_events=False,
            broker_connection_retry_on_startup=True,
            broker_connection_max_retries=None,
            broker_transport_options={
                "socket_connect_timeout": 2.0,
                "socket_timeout": 10.0,
                "health_check_interval": 5,
            },
        )

    def nudge(self, name: str) -> None:
        """Send one message to a queue.

        Raises:
            StorageError: ``broker_unreachable``.
        """
        try:
            self.app.send_task(TASK, queue=name, ignore_result=True, retry=False)
        except _BROKER_ERRORS as error:
            raise StorageError("broker_unreachable", f"Redis cannot be reached: {error!s:.200}.") from error

    def waiting(self, names: Sequence[str]) -> dict[str, int]:
        """Return how many messages lie in each queue.

        Raises:
            StorageError: ``broker_unreachable``.
        """
        try:
            return {name: int(self._client.llen(name)) for name in names}
        except _BROKER_ERRORS as error:
            raise StorageError("broker_unreachable", f"Redis cannot be reached: {error!s:.200}.") from error

    def call(self, wanted: Mapping[str, int]) -> None:
        """Send so many messages to each queue, none to one where `QUEUED_AT_MOST` lie: each free worker finds one.

        Raises:
            StorageError: ``broker_unreachable``.
        """
        there = self.waiting(list(wanted))
        for name, count in wanted.items():
            for _ in range(min(count, QUEUED_AT_MOST - there[name])):
                self.nudge(name)

    def top_up(self, database: Database, names: Sequence[str]) -> int:
        """See that every job that can be worked on has a message, up to `QUEUED_AT_MOST`; return how many were sent.

        Raises:
            StorageError: Redis or the database cannot be reached.
        """
        due = leases.waiting_jobs(database, names)
        if not due:
            return 0
        there = self.waiting(names)
        missing = {name: min(count, QUEUED_AT_MOST) - there[name] for name, count in due.items()}
        for name, count in missing.items():
            for _ in range(count):
                self.nudge(name)
        return sum(max(count, 0) for count in missing.values())


class Nudger:
    """Sends messages from a thread of its own: a request must not wait for Redis, nor fail with it.

    The first wish is done at once. Those that come in the `PAUSE_SECONDS` after it are done together, so that many
    submissions cost one question to Redis, and messages only as long as there are few.

    Args:
        broker: the transport.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._wanted: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._there, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def nudge(self, name: str = "light") -> None:
        """Ask for a message."""
        with self._lock:
            self._wanted[name] += 1
        self._there.set()

    def stop(self) -> None:
        """Send what is waiting, and end."""
        self._ending.set()
        self._there.set()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        last = False
        while not last:
            self._there.wait()
            self._there.clear()
            last = self._ending.is_set()  # asked before the wishes are taken: none is left behind
            with self._lock:
                wanted, self._wanted = self._wanted, Counter()
            try:
                self._broker.call(wanted)
            except StorageError as error:
                _log.warning("nudge_lost", code=error.code, detail=error.detail)
            self._ending.wait(PAUSE_SECONDS)


@dataclass
class _Child:
    """What a child of the pool holds: a slot, made with its first task and not before the fork."""

    settings: Settings
    broker: Broker
    queues: tuple[str, ...]
    _slot: Slot | None = field(default=None)
    _database: Database | None = field(default=None)

    def look(self) -> None:
        """Do one step of the job whose turn it is, and pass the message on where there is more."""
        if self._slot is None or self._database is None:
            self._database = Database(self.settings.database(), self.settings.artifacts_dir(), durable=False)
            self._slot = Slot(self._database, self.settings)
        try:
            lease = self._slot.claim(self.queues)
            if lease is None:
                return
            ended = self._slot.step(lease)
            self._slot.release(lease, ended)
            if not ended.machine:  # else the scheduler sends the next one, after a pause
                self._pass_on(ended.queue)
        except AutoxrdError as error:
            _log.warning("look_failed", code=error.code, detail=error.detail)

    def _pass_on(self, name: str | None) -> None:
        """Send one message for the one consumed, so that there are as many as jobs under way."""
        assert self._database is not None
        if name is None:
            name = next(iter(leases.waiting_jobs(self._database, self.queues)), None)
        if name is not None:
            self.broker.nudge(name)

    def close(self) -> None:
        """Kill the host and its engines."""
        if self._slot is not None:
            self._slot.close()
        if self._database is not None:
            self._database.close()


def run_worker(settings: Settings, broker: Broker, queues: tuple[str, ...], concurrency: int) -> NoReturn:
    """Run a worker until it is told to stop, and end the process; a step in flight is finished on SIGTERM.

    Args:
        settings: of the service.
        broker: the transport.
        queues: whose messages it takes, and whose jobs it claims.
        concurrency: steps done at once.
    """
    child = _Child(settings, broker, queues)

    def look() -> None:
        child.look()

    broker.app.task(look, name=TASK)

    def begin(**_: object) -> None:
        die_with_parent()

    def end(**_: object) -> None:
        child.close()

    signals.worker_process_init.connect(begin, weak=False)
    signals.worker_process_shutdown.connect(end, weak=False)
    words = ["worker", "--pool=prefork", f"--concurrency={concurrency}", f"--queues={','.join(queues)}"]
    words.append(f"--hostname=worker-{os.getpid()}@%h")
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", f"--loglevel={settings.log_level}"]
    code = broker.app.worker_main([*words, *quiet])
    # By now the pool is joined and all is told. To take this interpreter apart would cost seconds of a busy processor,
    # in which whoever stops the worker waits and might kill it.
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code or 0)
