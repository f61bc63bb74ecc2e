"""How is the database of a job directory opened? One place for SQLite's settings and transaction rules.

The journal is SQLite's rollback journal with ``synchronous=EXTRA``, not WAL: a killed process leaves the last
committed step, a closed graph is one plain file that can be copied, and it works on network file systems, where
WAL's shared memory does not. A step costs about 2 ms of waiting for the disk, which an engine's seconds hide.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

from autoxrd.errors import StorageError
from autoxrd.store.lock import JobLock

__all__ = ["ARTIFACTS_NAME", "DATABASE_NAME", "LOCK_NAME", "recover", "sqlite_engine"]

DATABASE_NAME = "graph.sqlite"
ARTIFACTS_NAME = "artifacts"
LOCK_NAME = "job.lock"

BUSY_SECONDS = 30.0
"""How long a reader or the writer waits for the other's short transaction."""


def sqlite_engine(path: Path, *, read_only: bool = False, text_factory: Callable[[bytes], str] | None = None) -> Engine:
    """Return an engine on one SQLite file; the caller disposes of it.

    Args:
        path: the file; made where it is missing unless ``read_only``.
        read_only: open with ``mode=ro``: the file is never written.
        text_factory: how stored text becomes ``str``; strict UTF-8 where None.
    """
    mode = "ro" if read_only else "rwc"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,  # transactions are ours to begin: see `begin`
            check_same_thread=False,
        )
        if text_factory is not None:
            connection.text_factory = text_factory
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA recursive_triggers=ON")  # else INSERT OR REPLACE would slip past the delete guard
        if not read_only:
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("PRAGMA synchronous=EXTRA")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=1)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer takes its lock at the start: a transaction never fails half way on an upgrade of the lock.
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine


def recover(database: Path) -> None:
    """Roll back what a killed writer left half done; a read-only connection could not read past it.

    Where the lock is held, the journal belongs to a living writer and readers wait for it by themselves.
    """
    if not database.with_name(f"{database.name}-journal").exists():
        return
    try:
        lock = JobLock(database.with_name(LOCK_NAME))
    except StorageError as error:
        if error.code == "job_locked":
            return
        raise
    engine = sqlite_engine(database)
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").all()
    finally:
        engine.dispose()
        lock.release()
