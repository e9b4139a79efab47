"""In which trace a job was posted."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("job", sa.Column("traceparent", sa.String(64)))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("job", "traceparent")
