"""The decision graph: jobs, states, edges, events, all append-only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = ("jobs", "states", "edges", "events")
KEYS = {
    "jobs": ("job_id = NEW.job_id",),
    "states": ("id = NEW.id", "ordinal = NEW.ordinal"),
    "edges": ("id = NEW.id", "ordinal = NEW.ordinal"),
    "events": ("ordinal = NEW.ordinal",),
}


def _sealed() -> list[sa.Column]:
    return [
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.String(64), nullable=False),
        sa.Column("artifacts", sa.Text(), nullable=False),
        sa.Column("chain_hash", sa.String(64), nullable=False),
        sa.Column("telemetry", sa.Text(), nullable=False),
        sa.Column("row_hash", sa.String(64), nullable=False),
    ]


def _job_id() -> sa.Column:
    return sa.Column("job_id", sa.String(64), nullable=False)


def upgrade() -> None:
    op.create_table("jobs", _job_id(), *_sealed(), sa.PrimaryKeyConstraint("job_id", name="pk_jobs"))
    op.create_table(
        "states",
        _job_id(),
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("parent_id", sa.String(16), nullable=True),
        sa.Column("stage", sa.String(32), nullable=False),
        *_sealed(),
        sa.PrimaryKeyConstraint("job_id", "id", name="pk_states"),
        sa.UniqueConstraint("job_id", "ordinal", name="uq_states_job_id_ordinal"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name="fk_states_job_id"),
        sa.ForeignKeyConstraint(
            ["job_id", "parent_id"], ["states.job_id", "states.id"], name="fk_states_job_id_parent_id"
        ),
    )
    op.create_table(
        "edges",
        _job_id(),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("parent_id", sa.String(16), nullable=False),
        sa.Column("candidate_id", sa.String(16), nullable=True),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("planner", sa.String(64), nullable=False),
        *_sealed(),
        sa.PrimaryKeyConstraint("job_id", "ordinal", name="pk_edges"),
        sa.UniqueConstraint("job_id", "id", name="uq_edges_job_id_id"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name="fk_edges_job_id"),
        sa.ForeignKeyConstraint(
            ["job_id", "parent_id"], ["states.job_id", "states.id"], name="fk_edges_job_id_parent_id"
        ),
        sa.ForeignKeyConstraint(
            ["job_id", "candidate_id"], ["states.job_id", "states.id"], name="fk_edges_job_id_candidate_id"
        ),
    )
    op.create_index("ix_edges_job_id_parent_id", "edges", ["job_id", "parent_id"])
    op.create_index("ix_edges_job_id_candidate_id", "edges", ["job_id", "candidate_id"])
    op.create_table(
        "events",
        _job_id(),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        *_sealed(),
        sa.PrimaryKeyConstraint("job_id", "ordinal", name="pk_events"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name="fk_events_job_id"),
    )
    _guard()


def _guard() -> None:
    """Make the database itself refuse to change, remove or replace a row."""
    dialect = op.get_context().dialect.name
    if dialect == "postgresql":
        op.execute(
            "CREATE FUNCTION autoxrd_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ "
            "BEGIN RAISE EXCEPTION USING MESSAGE = 'append_only: ' || lower(TG_OP) || ' on ' || TG_TABLE_NAME; END $$"
        )
    for table in TABLES:
        if dialect == "postgresql":
            op.execute(
                f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION autoxrd_append_only()"
            )
            op.execute(
                f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION autoxrd_append_only()"
            )
        elif dialect == "sqlite":
            for verb in ("update", "delete"):
                op.execute(
                    f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb.upper()} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, 'append_only: {verb} on {table}'); END"
                )
            # INSERT OR REPLACE deletes without firing the trigger above, unless the connection asks for it.
            same = " OR ".join(KEYS[table])
            op.execute(
                f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "  # noqa: S608 (our own constants)
                f"WHEN EXISTS (SELECT 1 FROM {table} WHERE job_id = NEW.job_id AND ({same})) "
                f"BEGIN SELECT RAISE(ABORT, 'append_only: replace on {table}'); END"
            )
        else:
            raise NotImplementedError(f"no append-only guard for {dialect}")


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    if op.get_context().dialect.name == "postgresql":
        op.execute("DROP FUNCTION autoxrd_append_only()")
