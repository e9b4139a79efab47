"""How many versions of a model are kept."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Add the column; policies of before keep everything."""
    op.add_column("model_policy", sa.Column("retention", JSON))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("model_policy", "retention")
