"""How does the service reach its database? Connections, transactions and migrations, on SQLite or PostgreSQL.

SQLite here runs in WAL, other than in a job directory: many processes read while one writes, and the database stays on
one machine. A submission waits for the disk (``synchronous=FULL``); a step does not (``NORMAL``): after a power cut the
last steps may be missing, but never a part of one, and they are computed again with the same result.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, DisconnectionError, IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from autoxrd.errors import StorageError, UserInputError
from autoxrd.store import migrate
from autoxrd.store.artifacts import ArtifactStore

__all__ = ["Database", "Transaction", "new_id", "now_text", "time_text"]

BUSY_SECONDS = 30.0
POOL_SIZE = 16
IDLE_SECONDS = 1.0
"""A connection that was not used for so long is asked whether it still stands before it is used."""
MIGRATION_LOCK = 7_215_001
"""Advisory lock under which PostgreSQL is migrated: several processes may start at once."""

_PATIENCE = {
    "application_name": "autoxrd",
    "connect_timeout": 5,
    "options": "-c statement_timeout=30000 -c idle_in_transaction_session_timeout=60000",
    # a server that vanished without a word is noticed within seconds, not hours
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

Transaction = Session | Connection
"""What a statement of tables is executed in."""

_last_id = threading.Lock(), [0]


def now_text() -> str:
    """Return the present time as the tables keep it: ISO 8601, UTC, microseconds, ``Z``."""
    return time_text(datetime.now(UTC))


def time_text(time: datetime) -> str:
    """Return a time, UTC, as the tables keep it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def new_id() -> str:
    """Return a UUIDv7 (RFC 9562): time in milliseconds, then 12 counting and 62 random bits.

    Ids of one process rise even within a millisecond and when the clock is set back.
    """
    lock, last = _last_id
    with lock:
        stamp = max(time.time_ns() // 1_000_000 << 12, last[0] + 1)
        last[0] = stamp
    value = (stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0b10 << 62 | secrets.randbits(62)
    digits = f"{value:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Database:
    """The service's database and the artifacts beside it.

    Args:
        url: ``sqlite:///...`` or ``postgresql+psycopg://...``.
        artifacts: where the bytes are; for workers on several machines a shared file system.
        durable: wait for the disk at each commit on SQLite; PostgreSQL always does.

    Raises:
        StorageError: ``database_url``.
    """

    def __init__(self, url: str, artifacts: Path, *, durable: bool = True) -> None:
        try:
            parsed = make_url(url)
        except ArgumentError as error:
            raise StorageError("database_url", "The database's URL cannot be read: see docs/service.md.") from error
        self.dialect = parsed.get_backend_name()
        self.artifacts = ArtifactStore(artifacts)
        if self.dialect == "sqlite":
            path = Path(parsed.database or "service.sqlite")
            self.reader = _sqlite(path, durable=durable, immediate=False)
            self.writer = _sqlite(path, durable=durable, immediate=True)
        elif self.dialect == "postgresql":
            self.writer = _postgresql(parsed)
            # a reading session takes no snapshot of its own: two round trips less
            self.reader = self.writer.execution_options(isolation_level="AUTOCOMMIT")
        else:
            raise StorageError("database_url", f"{self.dialect} is no database of the service: SQLite or PostgreSQL.")

    def migrate(self) -> None:
        """Bring graph and service tables to the newest revision; safe from several processes at once."""
        if self._is_current():
            return
        with self._migration_lock():
            for history in (migrate.GRAPH, migrate.SERVICE):
                migrate.upgrade(self.writer, history=history)

    def _is_current(self) -> bool:
        with _translated(), self.reader.connect() as connection:
            return all(migrate.current_revision(connection, h) == h.head for h in (migrate.GRAPH, migrate.SERVICE))

    @contextlib.contextmanager
    def _migration_lock(self) -> Iterator[None]:
        if self.dialect != "postgresql":
            yield
            return
        with self.writer.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("SET statement_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
                connection.invalidate()  # its settings are not for the pool

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a session that changes nothing.

        Raises:
            StorageError: ``database_unreachable``.
        """
        with _translated(), Session(self.reader) as session:
            yield session

    @contextlib.contextmanager
    def writing(self) -> Iterator[Session]:
        """Give one transaction: committed on leaving, rolled back on an error.

        Raises:
            StorageError: ``database_unreachable``; whether the commit was done is then not known.
        """
        with _translated(), Session(self.writer, expire_on_commit=False) as session, session.begin():
            yield session

    @contextlib.contextmanager
    def committing(self) -> Iterator[Connection]:
        """Give one transaction as `writing` does, for statements of tables alone: a session's books cost half of it.

        Raises:
            StorageError: ``database_unreachable``; whether the commit was done is then not known.
        """
        with _translated(), self.writer.begin() as connection:
            yield connection

    def ping(self) -> None:
        """Ask the database for one row.

        Raises:
            StorageError: ``database_unreachable``.
        """
        with self.reading() as session:
            session.execute(text("SELECT 1"))

    def close(self) -> None:
        """Close all connections."""
        self.reader.dispose()
        self.writer.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Say in our words that the database failed; what breaks a rule of the schema passes to who asked for it."""
    try:
        yield
    except IntegrityError:
        raise
    except DataError as error:  # PostgreSQL keeps no NUL; the request is at fault, not the database
        raise UserInputError(
            "value_unstorable",
            "A text or number of the request is none that the database can hold: NUL characters, say.",
        ) from error
    except DBAPIError as error:
        reason = str(error.orig).strip().partition("\n")[0]
        raise StorageError(
            "database_unreachable", f"The database did not do its work ({reason:.200}): see that it runs, then retry."
        ) from error


def _postgresql(url: URL) -> Engine:
    import psycopg  # only here: SQLite needs none of it

    engine = create_engine(
        url.set(drivername="postgresql+psycopg"), pool_size=POOL_SIZE, max_overflow=0, connect_args=_PATIENCE
    )

    @event.listens_for(engine, "checkin")
    def given_back(_: object, record: ConnectionPoolEntry) -> None:
        record.info["used"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def taken(connection: DBAPIConnection, record: ConnectionPoolEntry, _: object) -> None:
        # A restarted server costs one failed call, not every pooled one; asking before each call would double it.
        if time.monotonic() - record.info.get("used", time.monotonic()) < IDLE_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
            connection.rollback()  # ends the transaction that the question began
        except psycopg.Error as error:
            raise DisconnectionError from error

    return engine


def _sqlite(path: Path, *, durable: bool, immediate: bool) -> Engine:
    path.parent.mkdir(parents=True, exist_ok=True)

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            path.absolute(), timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA recursive_triggers=ON")  # else INSERT OR REPLACE would slip past the delete guard
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=POOL_SIZE, max_overflow=0)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer takes its lock at the start: a transaction never fails half way on an upgrade of the lock.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine
