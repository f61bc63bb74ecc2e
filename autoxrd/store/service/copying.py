"""How does a job of the service become a directory that can be verified? Row by row, for whoever reads directories."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy import insert, select

from autoxrd.errors import NotFound, StorageError
from autoxrd.store import migrate
from autoxrd.store.models import EdgeRow, EventRow, JobRow, StateRow, table_of
from autoxrd.store.service.database import Database
from autoxrd.store.session import ARTIFACTS_NAME, DATABASE_NAME, sqlite_engine

__all__ = ["lay_out"]


def lay_out(database: Database, job_id: str, directory: Path) -> None:
    """Write the graph of a job as `autoxrd.store.graph.Graph` keeps it; hashes and chains come along unchanged.

    Artifacts are linked, not copied: the directory is for reading, and for no longer than the job is kept. One that is
    missing or damaged is so here too, and `autoxrd.store.verify` says it.

    Args:
        database: the service's database.
        job_id: whose graph.
        directory: made here.

    Raises:
        NotFound: ``graph_not_begun``.
        StorageError: ``job_not_writable``; ``database_unreachable``.
    """
    tables = (table_of(JobRow), *(table_of(row) for row in (StateRow, EdgeRow, EventRow)))
    with database.reading() as session:
        found = [
            [dict(row) for row in session.execute(select(t).where(t.c.job_id == job_id)).mappings()] for t in tables
        ]
    if not found[0]:
        raise NotFound("graph_not_begun", "This job has no graph yet: its input is still to be read.")
    for rows in found[1:]:
        rows.sort(key=lambda row: int(row["ordinal"]))  # a state after the one that it came from
    try:
        directory.mkdir(parents=True)
        for artifact in {a for rows in found for row in rows for a in json.loads(row["artifacts"])}:
            source = database.artifacts.path(artifact)
            place = directory / ARTIFACTS_NAME / source.parent.name / source.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(source.resolve())
    except OSError as error:
        raise StorageError("job_not_writable", f"A job cannot be laid out for reading: {error.strerror}.") from error
    engine = sqlite_engine(directory / DATABASE_NAME)
    try:
        migrate.upgrade(engine)
        with engine.begin() as connection:
            for table, rows in zip(tables, found, strict=True):
                if rows:
                    connection.execute(insert(table), rows)
    finally:
        engine.dispose()
