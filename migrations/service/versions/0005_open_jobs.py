"""Find an owner's open jobs without looking through all that are over."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_service_jobs_owner_state", "service_jobs", ["owner_id", "state"])


def downgrade() -> None:
    op.drop_index("ix_service_jobs_owner_state", "service_jobs")
