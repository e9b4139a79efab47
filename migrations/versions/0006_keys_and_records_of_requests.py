"""Keys, the answers that are given again, and who changed what."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Create the three tables."""
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("scopes", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.Text()),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.Column("last_used_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
    )
    op.create_index("ix_api_key_created_at_id", "api_key", ["created_at", "id"])
    op.create_table(
        "kept_answer",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("attempt", sa.String(64), nullable=False),
        sa.Column("fingerprint", sa.String(64)),
        sa.Column("status", sa.Integer()),
        sa.Column("headers", JSON),
        sa.Column("body", sa.LargeBinary()),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_kept_answer"),
    )
    op.create_index("ix_kept_answer_expires_at", "kept_answer", ["expires_at"])
    op.create_table(
        "audit",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.Text()),
        sa.Column("key_id", sa.String(64)),
        sa.Column("method", sa.String(8), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("location", sa.Text()),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_at_id", "audit", ["at", "id"])


def downgrade() -> None:
    """Drop them."""
    for table in ("audit", "kept_answer", "api_key"):
        op.drop_table(table)
