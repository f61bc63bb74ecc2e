from __future__ import annotations

import io
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect

from autoxrd.errors import StorageError
from autoxrd.store import migrate
from autoxrd.store.graph import DATABASE_NAME, Graph
from autoxrd.store.models import Base
from autoxrd.store.session import sqlite_engine

from .factory import build_graph


def test_the_history_is_linear_and_its_head_is_the_one_we_expect() -> None:
    script = ScriptDirectory(str(migrate.migrations_path()))
    assert script.get_heads() == [migrate.HEAD]
    assert script.get_bases() == ["0001"]
    revisions = migrate.known_revisions()
    assert list(revisions) == sorted(revisions)
    assert all(not isinstance(r.down_revision, tuple) for r in script.walk_revisions())


def test_the_models_are_what_the_migrations_make(tmp_path: Path) -> None:
    engine = sqlite_engine(tmp_path / "new.sqlite")
    migrate.upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_up_and_down_on_data(tmp_path: Path) -> None:
    build_graph(tmp_path).close()
    engine = sqlite_engine(tmp_path / DATABASE_NAME)
    migrate.downgrade(engine, "base")
    assert inspect(engine).get_table_names() == ["alembic_version"]
    migrate.upgrade(engine)
    migrate.upgrade(engine)
    assert sorted(inspect(engine).get_table_names()) == ["alembic_version", "edges", "events", "jobs", "states"]
    engine.dispose()


def test_a_failed_upgrade_changes_nothing(tmp_path: Path) -> None:
    engine = sqlite_engine(tmp_path / "x.sqlite")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE events (a TEXT)")  # in the way of the last table
    with pytest.raises(Exception, match="already exists"):
        migrate.upgrade(engine)
    assert inspect(engine).get_table_names() == ["events"]
    engine.dispose()


@pytest.mark.parametrize("revision", ["9999", None])
def test_a_revision_of_another_version_is_refused(tmp_path: Path, revision: str | None) -> None:
    build_graph(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as connection:
        if revision is None:
            connection.execute("DROP TABLE alembic_version")
        else:
            connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        connection.commit()
    with pytest.raises(StorageError, match="newer one") as error:
        Graph.open(tmp_path)
    assert error.value.code == "schema_unknown"


def test_an_older_revision_is_upgraded_by_a_writer_and_refused_to_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_graph(tmp_path).close()
    monkeypatch.setattr(migrate, "HEAD", "0002")
    with pytest.raises(StorageError, match="older version") as error:
        Graph.open(tmp_path, read_only=True)
    assert error.value.code == "schema_old"
    Graph.open(tmp_path).close()


def test_postgresql_gets_its_own_guard() -> None:
    """The statements only; a server runs them in the service's tests."""
    out = io.StringIO()
    config = Config(output_buffer=out)
    config.set_main_option("script_location", str(migrate.migrations_path()))
    config.set_main_option("sqlalchemy.url", "postgresql+psycopg://")
    command.upgrade(config, "head", sql=True)
    text = out.getvalue()
    for table in ("jobs", "states", "edges", "events"):
        assert f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}" in text
        assert f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}" in text
    assert "CREATE FUNCTION autoxrd_append_only()" in text
    assert "AUTOINCREMENT" not in text
    assert "SERIAL" not in text


def test_another_database_is_refused_rather_than_left_unguarded() -> None:
    config = Config(output_buffer=io.StringIO())
    config.set_main_option("script_location", str(migrate.migrations_path()))
    config.set_main_option("sqlalchemy.url", "mysql://")
    with pytest.raises(NotImplementedError, match="mysql"):
        command.upgrade(config, "head", sql=True)


def test_the_environment_takes_a_url(tmp_path: Path) -> None:
    database = tmp_path / "by-url.sqlite"
    config = Config()
    config.set_main_option("script_location", str(migrate.migrations_path()))
    config.set_main_option("sqlalchemy.url", f"sqlite:///{database}")
    command.upgrade(config, "head")
    engine = create_engine(f"sqlite:///{database}")
    assert "states" in inspect(engine).get_table_names()
    engine.dispose()


def test_migrations_that_are_not_installed_are_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autoxrd.resources.__file__", str(tmp_path / "site-packages" / "autoxrd" / "resources.py"))
    with pytest.raises(StorageError, match="reinstall"):
        migrate.migrations_path()
