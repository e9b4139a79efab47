"""The clock of leases on SQLite."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "lease_clock",
        sa.Column("boot_id", sa.String(64), nullable=False),
        sa.Column("offset_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("boot_id", name="pk_lease_clock"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("lease_clock")
