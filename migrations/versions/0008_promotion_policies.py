"""What a version must show before an alias may stand for it, and where somebody overrode that."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Create the table, and add what histories and the audit tell of it."""
    op.create_table(
        "model_policy",
        sa.Column("model", sa.String(64), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("promotion", JSON),
        sa.Column("corpus", sa.String(64)),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("model", name="pk_model_policy"),
        sa.ForeignKeyConstraint(["model"], ["model.name"], name="fk_model_policy_model"),
        sa.ForeignKeyConstraint(["corpus"], ["corpus.id"], name="fk_model_policy_corpus"),
    )
    op.create_index("ix_model_policy_corpus", "model_policy", ["corpus"])
    op.add_column("alias_move", sa.Column("forced", sa.Text()))
    op.add_column("audit", sa.Column("note", sa.Text()))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("audit", "note")
    op.drop_column("alias_move", "forced")
    op.drop_table("model_policy")
