"""The point of its history that a rollback returned an alias to."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; rollbacks of before have none."""
    op.add_column("alias_move", sa.Column("to_seq", sa.Integer(), nullable=True))


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("alias_move") as table:
        table.drop_column("to_seq")
