"""Any single byte that is changed in any column of any row, or in any artifact, is found."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoxrd.store.graph import ARTIFACTS_NAME, DATABASE_NAME
from autoxrd.store.verify import verify

from .factory import build_graph, judge

TABLES = ("jobs", "states", "edges", "events", "alembic_version")
MANY = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("job")
    build_graph(directory, size=4).close()
    assert verify(directory, judge=judge).ok
    return directory


def _mutated(value: object, data: st.DataObject) -> object:
    """Another value for a cell: one byte of a text replaced, removed or added; another number; something for NULL."""
    if value is None:
        return data.draw(st.sampled_from(["", "0", "null", "0" * 16]))
    if isinstance(value, int):
        return value + data.draw(st.sampled_from([-1, 1, 256, 2**40]))
    assert isinstance(value, bytes)
    place = data.draw(st.integers(0, len(value) - 1))
    kind = data.draw(st.sampled_from(["replace", "remove", "add", "bit", "null"]))
    if kind == "replace":
        other = data.draw(st.integers(0, 255).filter(lambda byte: byte != value[place]))
        return value[:place] + bytes([other]) + value[place + 1 :]
    if kind == "bit":
        return value[:place] + bytes([value[place] ^ 1 << data.draw(st.integers(0, 7))]) + value[place + 1 :]
    if kind == "add":
        return value[:place] + bytes([data.draw(st.integers(0, 255))]) + value[place:]
    if kind == "null":
        return b""
    return value[:place] + value[place + 1 :]


def _change_a_cell(database: Path, data: st.DataObject) -> str:
    """Change one cell behind the triggers, put the triggers back as they were, and say what was done."""
    with closing(sqlite3.connect(database)) as connection:
        connection.text_factory = bytes
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name.decode()}")
        table = data.draw(st.sampled_from(TABLES))
        columns = [row[1].decode() for row in connection.execute(f"PRAGMA table_info({table})")]
        column = data.draw(st.sampled_from(columns))
        rows = [row[0] for row in connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
        row = data.draw(st.sampled_from(rows))
        (old,) = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()
        new = _mutated(old, data)
        # A blob cast to text keeps its bytes, valid UTF-8 or not.
        value = "CAST(? AS TEXT)" if isinstance(new, bytes) else "?"
        connection.execute(f"UPDATE {table} SET {column} = {value} WHERE rowid = ?", (new, row))
        for _, sql in triggers:
            connection.execute(sql.decode())
        connection.commit()
    return f"{table}.{column} row {row}: {old!r:.60} -> {new!r:.60}"


@given(data=st.data())
@MANY
def test_any_changed_cell_is_found(job: Path, data: st.DataObject) -> None:
    database = job / DATABASE_NAME
    sound = database.read_bytes()
    try:
        done = _change_a_cell(database, data)
        report = verify(job, judge=judge)
        assert not report.ok, done
        assert not {f.code for f in report.findings if f.code.startswith("schema_")} - {"schema_revision"}
    except sqlite3.IntegrityError:
        pass  # the change would have made two rows with one key: the database itself refuses it
    finally:
        database.write_bytes(sound)


@given(data=st.data())
@MANY
def test_any_changed_byte_of_an_artifact_is_found(job: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted((job / ARTIFACTS_NAME).glob("??/*"))))
    sound = path.read_bytes()
    place = data.draw(st.integers(0, len(sound) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != sound[place]))
    try:
        path.write_bytes(sound[:place] + bytes([other]) + sound[place + 1 :])
        report = verify(job, judge=None)
        assert report.codes == {"artifact_damaged"}
        assert path.name in report.errors[0].row
    finally:
        path.write_bytes(sound)


@pytest.mark.parametrize("table", TABLES)
def test_every_column_of_every_row_is_covered(job: Path, table: str) -> None:
    """The same, one byte in each cell there is, so that none is left to chance."""
    database = job / DATABASE_NAME
    sound = database.read_bytes()
    with closing(sqlite3.connect(database)) as connection:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        rows = [row[0] for row in connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid")][-1:]
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for column in columns:
        for row in rows:
            with closing(sqlite3.connect(database)) as connection:
                for name, _ in triggers:
                    connection.execute(f"DROP TRIGGER {name}")
                connection.execute(
                    f"UPDATE {table} SET {column} = CASE WHEN typeof({column}) = 'integer' THEN {column} + 1 "
                    f"ELSE coalesce({column}, '') || 'x' END WHERE rowid = ?",
                    (row,),
                )
                for _, sql in triggers:
                    connection.execute(sql)
                connection.commit()
            assert not verify(job, judge=judge).ok, f"{table}.{column} of row {row}"
            database.write_bytes(sound)
