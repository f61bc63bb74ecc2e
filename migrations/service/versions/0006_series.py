"""Series: which jobs belong together."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("service_jobs", sa.Column("series", sa.String(length=100), nullable=True))
    op.create_index("ix_service_jobs_series", "service_jobs", ["owner_id", "series"])


def downgrade() -> None:
    op.drop_index("ix_service_jobs_series", "service_jobs")
    op.drop_column("service_jobs", "series")
