"""How a corpus is read: the options of its format."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Add the column; corpora of before have no options."""
    op.add_column("corpus", sa.Column("options", JSON, nullable=False, server_default="{}"))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("corpus", "options")
