"""Totals of ended jobs, and an index to find the oldest."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

#: Run times in seconds, never negative: the clock may have been set back.
SECONDS = {
    "sqlite": "max(0, (julianday(finished_at) - julianday(started_at)) * 86400)",
    "postgresql": "greatest(0, extract(epoch FROM finished_at - started_at))",
}
FILL = """
INSERT INTO job_total (kind, state, count, ended, seconds)
SELECT kind, state, count(*), count({seconds}), coalesce(sum({seconds}), 0)
FROM job WHERE state IN ('succeeded', 'failed', 'cancelled') GROUP BY kind, state
"""


def upgrade() -> None:
    """Create the table and count the jobs that have ended."""
    op.create_table(
        "job_total",
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.Column("ended", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("kind", "state", name="pk_job_total"),
    )
    measured = "CASE WHEN started_at IS NULL OR finished_at IS NULL THEN NULL ELSE {} END"
    op.execute(FILL.format(seconds=measured.format(SECONDS[op.get_bind().dialect.name])))
    op.create_index("ix_job_finished_at", "job", ["finished_at"])


def downgrade() -> None:
    """Drop both."""
    op.drop_index("ix_job_finished_at", "job")
    op.drop_table("job_total")
