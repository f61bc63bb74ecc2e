"""Is the database's schema the one that the migrations make, triggers included?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import StaticPool

from autoxrd.store import migrate
from autoxrd.store.findings import Finding, error

__all__ = ["check_schema"]


def check_schema(connection: Connection) -> Iterator[Finding]:
    """Compare every table, index and trigger of an SQLite database with the migrations' own, and check its pages.

    The comparison is with the revision that the database says it has, which must be the newest.
    """
    for (answer,) in connection.execute(text("PRAGMA integrity_check(5)")):
        if answer != "ok":
            yield error("database_damaged", "database", f"SQLite: {answer}.")
    for table, row, parent, _ in connection.execute(text("PRAGMA foreign_key_check")):
        yield error("reference_dangling", f"{table} row {row}", f"It refers to {parent} that is not there.")
    revisions = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
    if list(revisions) != [migrate.HEAD]:
        yield error("schema_revision", "alembic_version", f"The revision is {revisions}, expected {migrate.HEAD}.")
    found, expected = _schema(connection), _expected()
    for name in sorted(expected.keys() - found.keys()):
        yield error("schema_missing", name, f"The {expected[name][0]} {name} was removed.")
    for name in sorted(found.keys() - expected.keys()):
        yield error("schema_extra", name, f"The {found[name][0]} {name} does not belong here.")
    for name in sorted(found.keys() & expected.keys()):
        if found[name] != expected[name]:
            yield error("schema_changed", name, f"The {found[name][0]} {name} is not as the migrations make it.")


def _schema(connection: Connection) -> dict[str, tuple[str, str, str | None]]:
    rows = connection.execute(text("SELECT name, type, tbl_name, sql FROM sqlite_master"))
    return {str(name): (str(kind), str(table), None if sql is None else str(sql)) for name, kind, table, sql in rows}


@cache
def _expected() -> dict[str, tuple[str, str, str | None]]:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    try:
        migrate.upgrade(engine)
        with engine.connect() as connection:
            return _schema(connection)
    finally:
        engine.dispose()
