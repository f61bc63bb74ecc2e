"""The service's tables: linear history, up and down with data, guarded, as the models say, on both databases."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError

from autoxrd.jobs.local import QUEUES
from autoxrd.store import migrate
from autoxrd.store.models import Base
from autoxrd.store.service import leases
from autoxrd.store.service.database import Database
from autoxrd.store.service.job_graph import JobGraph
from autoxrd.store.service.models import ServiceBase

from .factory import queued
from .test_leases import RECORD

TABLES = {"owners", "api_keys", "service_jobs", "feed", "steps", "job_files", "uploads", "idempotency", "reviews"}
TABLES |= {"webhooks", "deliveries", "audit", "service_secrets"}
GRAPH = {"jobs", "states", "edges", "events"}


def with_a_graph(database: Database) -> str:
    job = queued(database)
    lease = leases.claim(database, "w", QUEUES)
    assert lease is not None
    JobGraph.create(database, lease, RECORD)
    return job


def test_the_history_is_linear() -> None:
    script = ScriptDirectory(str(migrate.migrations_path(migrate.SERVICE)))
    assert script.get_heads() == [migrate.SERVICE.head]
    assert script.get_bases() == ["0001"]
    assert all(not isinstance(r.down_revision, tuple) for r in script.walk_revisions())


def test_the_models_are_what_the_migrations_make(database: Database) -> None:
    for metadata, version, own in (
        (ServiceBase.metadata, "service_version", TABLES),
        (Base.metadata, "alembic_version", GRAPH),
    ):
        with database.writer.connect() as connection:
            options = {
                "version_table": version,
                "compare_type": True,
                "include_name": lambda name, kind, _parents, own=own: kind != "table" or name in own,
            }
            context = MigrationContext.configure(connection, opts=options)
            assert compare_metadata(context, metadata) == []


def test_up_and_down_with_data(database: Database) -> None:
    with_a_graph(database)
    migrate.downgrade(database.writer, "base", history=migrate.SERVICE)
    assert set(inspect(database.writer).get_table_names()) == GRAPH | {"alembic_version", "service_version"}
    with database.reading() as session:
        assert session.scalar(text("SELECT count(*) FROM events")) == 1
    migrate.upgrade(database.writer, history=migrate.SERVICE)
    migrate.downgrade(database.writer, "base", history=migrate.SERVICE)
    migrate.downgrade(database.writer, "base")
    database.migrate()
    database.migrate()
    assert set(inspect(database.writer).get_table_names()) >= TABLES | GRAPH
    with_a_graph_of(database)


def test_each_revision_goes_down_and_up_with_data(database: Database) -> None:
    job = with_a_graph(database)
    with database.reading() as session:
        before = session.execute(text("SELECT id, owner_id, title, state, feed_last FROM service_jobs")).all()
    for revision in ("0003", "0002", "0001"):
        migrate.downgrade(database.writer, revision, history=migrate.SERVICE)
        migrate.upgrade(database.writer, history=migrate.SERVICE)
        with database.reading() as session:
            assert (
                session.execute(text("SELECT id, owner_id, title, state, feed_last FROM service_jobs")).all() == before
            )
            assert session.scalar(text("SELECT stored_bytes FROM service_jobs")) == 0
    assert JobGraph.open(database, job).events()
    assert with_a_graph(database)


def with_a_graph_of(database: Database) -> None:
    """The database works again."""
    assert with_a_graph(database)


@pytest.mark.parametrize("table", ["feed", "jobs", "events"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET job_id = job_id", "DELETE FROM {}"])
def test_the_database_itself_refuses_to_change_what_was_recorded(
    database: Database, table: str, statement: str
) -> None:
    with_a_graph(database)
    with pytest.raises(DBAPIError, match="append_only"), database.writer.begin() as connection:
        connection.execute(text(statement.format(table)))


@pytest.mark.parametrize("statement", ["UPDATE audit SET action = 'nothing'", "DELETE FROM audit"])
def test_the_audit_log_is_append_only(database: Database, statement: str) -> None:
    queued(database)
    with pytest.raises(DBAPIError, match="append_only"), database.writer.begin() as connection:
        connection.execute(text(statement))


def test_postgresql_refuses_truncation_too(database: Database) -> None:
    if database.dialect != "postgresql":
        pytest.skip("SQLite has no TRUNCATE")
    for table in ("feed", "steps", "edges", "audit"):
        with pytest.raises(DBAPIError, match="append_only"), database.writer.begin() as connection:
            connection.execute(text(f"TRUNCATE {table} CASCADE"))
