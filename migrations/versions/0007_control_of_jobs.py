"""What jobs are another try of, which queue they wait in, and how long workers had them."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("job", sa.Column("retry_of", sa.String(64)))
    op.add_column("job", sa.Column("queue", sa.String(16), nullable=False, server_default="slow"))
    op.add_column("job", sa.Column("worked_seconds", sa.Double(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop them; jobs that stand still go on."""
    job = sa.table("job", sa.column("state"))
    op.execute(job.update().where(job.c.state == "paused").values(state="queued"))
    for name in ("worked_seconds", "queue", "retry_of"):
        op.drop_column("job", name)
