"""Alembic environment. The caller gives a connection, or `alembic -x url=...` names a database."""

from __future__ import annotations

from alembic import context
from sqlalchemy import create_engine, pool

from autoxrd.store.models import Base

config = context.config


def _url() -> str:
    url = context.get_x_argument(as_dictionary=True).get("url") or config.get_main_option("sqlalchemy.url")
    if not url:
        raise SystemExit("Name the database: alembic -x url=postgresql+psycopg://... upgrade head")
    return url


if context.is_offline_mode():
    context.configure(url=_url(), target_metadata=Base.metadata, literal_binds=True)
    with context.begin_transaction():
        context.run_migrations()
elif (connection := config.attributes.get("connection")) is not None:
    context.configure(connection=connection, target_metadata=Base.metadata)
    context.run_migrations()
else:
    engine = create_engine(_url(), poolclass=pool.NullPool)
    with engine.begin() as connection:
        context.configure(connection=connection, target_metadata=Base.metadata)
        context.run_migrations()
