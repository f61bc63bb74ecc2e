"""Which revision does a database have, and how does it get the newest? Alembic, from the first revision on.

There are two linear histories: `GRAPH` makes the tables of a decision graph, in every job directory and in the
service's database; `SERVICE` makes the tables that only the service has. They are apart so that a change of the
service never makes the graph of a finished job directory an old one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from autoxrd.errors import NotFound, StorageError
from autoxrd.resources import resource_path

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = [
    "GRAPH",
    "HEAD",
    "SERVICE",
    "History",
    "current_revision",
    "downgrade",
    "ensure_current",
    "migrations_path",
    "upgrade",
]

HEAD = "0001"
"""The newest revision of a graph."""


@dataclass(frozen=True, slots=True)
class History:
    """A line of revisions.

    Args:
        folder: where its Alembic environment lies.
        version_table: table in which a database keeps its revision.
        head: the newest revision, kept here so that opening a database need not import Alembic (a test holds it true).
    """

    folder: str
    version_table: str
    head: str


GRAPH = History("migrations", "alembic_version", HEAD)
SERVICE = History("migrations/service", "service_version", "0006")


def migrations_path(history: History = GRAPH) -> Path:
    """Return the directory of the Alembic environment, in a checkout or in an installed wheel.

    Raises:
        StorageError: ``migrations_missing``, the installation is incomplete.
    """
    try:
        return resource_path(history.folder)
    except NotFound as error:
        raise StorageError(
            "migrations_missing", "The database migrations are not installed: reinstall autoxrd-agent."
        ) from error


def current_revision(connection: Connection, history: History = GRAPH) -> str | None:
    """Return the revision that a database says it has, None where it has no schema."""
    if not inspect(connection).has_table(history.version_table):
        return None
    query = text(f"SELECT version_num FROM {history.version_table}")  # noqa: S608 (our own constant)
    rows = connection.execute(query).scalars().all()
    return str(rows[0]) if len(rows) == 1 else None


def upgrade(engine: Engine, revision: str = "head", *, history: History = GRAPH) -> None:
    """Bring a database to a revision, in one transaction."""
    from alembic import command  # a fifth of a second: only when there is something to migrate

    with engine.begin() as connection:
        command.upgrade(_config(connection, history), revision)


def downgrade(engine: Engine, revision: str, *, history: History = GRAPH) -> None:
    """Bring a database back to an older revision, in one transaction."""
    from alembic import command

    with engine.begin() as connection:
        command.downgrade(_config(connection, history), revision)


def ensure_current(engine: Engine, *, read_only: bool) -> None:
    """Check the revision of an existing database and upgrade an older one.

    Raises:
        StorageError: ``schema_unknown`` (no or a newer revision) or ``schema_old`` (read-only, upgrade needed).
    """
    with engine.connect() as connection:
        found = current_revision(connection)
    if found == HEAD:
        return
    if found not in known_revisions():
        raise StorageError(
            "schema_unknown",
            f"The graph has database revision {found or 'none'}, which this version does not know: "
            "use the version of AutoXRD that wrote it, or a newer one.",
            context={"revision": found},
        )
    if read_only:
        raise StorageError(
            "schema_old", "The graph was written by an older version: open it once for writing (`autoxrd resume`)."
        )
    upgrade(engine)


def known_revisions(history: History = GRAPH) -> tuple[str, ...]:
    """Return all revisions, oldest first."""
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(migrations_path(history)))
    return tuple(reversed([r.revision for r in script.walk_revisions()]))


def _config(connection: Connection, history: History) -> Config:
    from alembic.config import Config

    config = Config()
    # ConfigParser reads % as the start of a placeholder.
    config.set_main_option("script_location", str(migrations_path(history)).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
