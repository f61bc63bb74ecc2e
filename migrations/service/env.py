"""Alembic environment of the service's own tables. The caller gives a connection, or `-x url=...` names a database."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, create_engine, pool

from autoxrd.store.migrate import SERVICE
from autoxrd.store.service.models import ServiceBase

config = context.config


def _url() -> str:
    url = context.get_x_argument(as_dictionary=True).get("url") or config.get_main_option("sqlalchemy.url")
    if not url:
        raise SystemExit("Name the database: alembic -x url=postgresql+psycopg://... upgrade head")
    return url


def _run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=ServiceBase.metadata, version_table=SERVICE.version_table)
    context.run_migrations()


if context.is_offline_mode():
    context.configure(
        url=_url(), target_metadata=ServiceBase.metadata, version_table=SERVICE.version_table, literal_binds=True
    )
    with context.begin_transaction():
        context.run_migrations()
elif (given := config.attributes.get("connection")) is not None:
    _run(given)
else:
    with create_engine(_url(), poolclass=pool.NullPool).begin() as opened:
        _run(opened)
