"""Audit log (append-only), stored bytes of jobs and owners, deletion of jobs, and the key that signs links."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("at", sa.String(length=32), nullable=False),
        sa.Column("owner_id", sa.String(length=36), nullable=False),
        sa.Column("key_id", sa.String(length=36), nullable=True),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=64), nullable=False),
        sa.Column("request_id", sa.String(length=64), nullable=True),
        sa.Column("details", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_owner", "audit", ["owner_id", "id"], unique=False)
    op.create_table(
        "service_secrets",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("secret", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_service_secrets")),
    )
    for table in ("owners", "service_jobs"):
        op.add_column(table, sa.Column("stored_bytes", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("service_jobs", sa.Column("deleted_at", sa.String(length=32), nullable=True))
    _guard()


def _guard() -> None:
    """Make the database itself refuse to change or remove an entry of the audit log."""
    if op.get_context().dialect.name == "postgresql":
        op.execute(
            "CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON audit "
            "FOR EACH ROW EXECUTE FUNCTION autoxrd_append_only()"
        )
        op.execute(
            "CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit "
            "FOR EACH STATEMENT EXECUTE FUNCTION autoxrd_append_only()"
        )
        return
    for verb in ("update", "delete"):
        op.execute(
            f"CREATE TRIGGER audit_no_{verb} BEFORE {verb.upper()} ON audit "
            f"BEGIN SELECT RAISE(ABORT, 'append_only: {verb} on audit'); END"
        )
    op.execute(
        "CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit "
        "WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) "
        "BEGIN SELECT RAISE(ABORT, 'append_only: replace on audit'); END"
    )


def downgrade() -> None:
    op.drop_column("service_jobs", "deleted_at")
    for table in ("service_jobs", "owners"):
        op.drop_column(table, "stored_bytes")
    op.drop_table("service_secrets")
    op.drop_table("audit")
