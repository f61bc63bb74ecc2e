"""The service: owners, keys, jobs, their feed, steps and files; feed and steps are append-only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = ("owners", "api_keys", "idempotency", "service_jobs", "uploads", "feed", "job_files", "steps")
APPEND_ONLY = {"feed": "number", "steps": "ordinal"}


def upgrade() -> None:
    op.create_table(
        "owners",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("served", sa.Float(), nullable=False),
        sa.Column("limits", sa.Text(), nullable=False),
        sa.Column("steps_used", sa.Integer(), nullable=False),
        sa.Column("engine_seconds_used", sa.Float(), nullable=False),
        sa.Column("tokens_used", sa.Integer(), nullable=False),
        sa.Column("money_used", sa.Float(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_owners")),
        sa.UniqueConstraint("name", name=op.f("uq_owners_name")),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("owner_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("expires_at", sa.String(length=32), nullable=True),
        sa.Column("revoked_at", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["owner_id"], ["owners.id"], name=op.f("fk_api_keys_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
    )
    op.create_index(op.f("ix_api_keys_owner_id"), "api_keys", ["owner_id"], unique=False)
    op.create_table(
        "idempotency",
        sa.Column("owner_id", sa.String(length=36), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("request_hash", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["owners.id"], name=op.f("fk_idempotency_owner_id")),
        sa.PrimaryKeyConstraint("owner_id", "key", name=op.f("pk_idempotency")),
    )
    op.create_table(
        "service_jobs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("owner_id", sa.String(length=36), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("queue", sa.String(length=16), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("engine", sa.String(length=64), nullable=False),
        sa.Column("planner", sa.String(length=64), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.String(length=32), nullable=False),
        sa.Column("finished_at", sa.String(length=32), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("heartbeat", sa.Integer(), nullable=False),
        sa.Column("lease_holder", sa.String(length=100), nullable=True),
        sa.Column("last_holder", sa.String(length=100), nullable=True),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("steps_used", sa.Integer(), nullable=False),
        sa.Column("wall_seconds_used", sa.Float(), nullable=False),
        sa.Column("engine_seconds_used", sa.Float(), nullable=False),
        sa.Column("tokens_used", sa.Integer(), nullable=False),
        sa.Column("money_used", sa.Float(), nullable=False),
        sa.Column("feed_last", sa.Integer(), nullable=False),
        sa.Column("rwp", sa.Float(), nullable=True),
        sa.Column("gof", sa.Float(), nullable=True),
        sa.Column("current_state", sa.String(length=16), nullable=True),
        sa.Column("verdict", sa.String(length=32), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["owner_id"], ["owners.id"], name=op.f("fk_service_jobs_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_service_jobs")),
    )
    op.create_index(
        "ix_service_jobs_claim", "service_jobs", ["queue", "state", "lease_holder", "owner_id"], unique=False
    )
    op.create_index("ix_service_jobs_lease", "service_jobs", ["lease_holder"], unique=False)
    op.create_index("ix_service_jobs_owner", "service_jobs", ["owner_id", "id"], unique=False)
    op.create_table(
        "uploads",
        sa.Column("owner_id", sa.String(length=36), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["owners.id"], name=op.f("fk_uploads_owner_id")),
        sa.PrimaryKeyConstraint("owner_id", "sha256", name=op.f("pk_uploads")),
    )
    op.create_table(
        "feed",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["service_jobs.id"], name=op.f("fk_feed_job_id")),
        sa.PrimaryKeyConstraint("job_id", "number", name=op.f("pk_feed")),
    )
    op.create_table(
        "job_files",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("media_type", sa.String(length=100), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["service_jobs.id"], name=op.f("fk_job_files_job_id")),
        sa.PrimaryKeyConstraint("job_id", "role", "name", name=op.f("pk_job_files")),
    )
    op.create_index("ix_job_files_sha256", "job_files", ["sha256"], unique=False)
    op.create_table(
        "steps",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("parent_id", sa.String(length=16), nullable=True),
        sa.Column("candidate_id", sa.String(length=16), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("stage", sa.String(length=32), nullable=False),
        sa.Column("planner", sa.String(length=64), nullable=False),
        sa.Column("rationale", sa.Text(), nullable=False),
        sa.Column("reasons", sa.Text(), nullable=False),
        sa.Column("rwp", sa.Float(), nullable=True),
        sa.Column("gof", sa.Float(), nullable=True),
        sa.Column("n_free", sa.Integer(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["service_jobs.id"], name=op.f("fk_steps_job_id")),
        sa.PrimaryKeyConstraint("job_id", "ordinal", name=op.f("pk_steps")),
    )
    op.create_index("ix_steps_candidate", "steps", ["job_id", "candidate_id"], unique=False)
    for table, number in APPEND_ONLY.items():
        _guard(table, number)


def _guard(table: str, number: str) -> None:
    """Make the database itself refuse to change, remove or replace a row."""
    dialect = op.get_context().dialect.name
    if dialect == "postgresql":
        # the function is the graph's: its history comes first
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
        op.execute(
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "  # noqa: S608 (our own constants)
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE job_id = NEW.job_id AND {number} = NEW.{number}) "
            f"BEGIN SELECT RAISE(ABORT, 'append_only: replace on {table}'); END"
        )
    else:
        raise NotImplementedError(f"no append-only guard for {dialect}")


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
