"""Lexicons, and the jobs that read them."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the two tables."""
    op.create_table(
        "lexicon",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.Column("classes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("blob_id", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(["blob_id"], ["blob.id"], name="fk_lexicon_blob_id"),
        sa.PrimaryKeyConstraint("id", name="pk_lexicon"),
        sa.UniqueConstraint("blob_id", name="uq_lexicon_blob_id"),
    )
    op.create_index("ix_lexicon_created_at_id", "lexicon", ["created_at", "id"])
    op.create_table(
        "job_lexicon",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("lexicon_id", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_lexicon_job_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["lexicon_id"], ["lexicon.id"], name="fk_job_lexicon_lexicon_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "lexicon_id", name="pk_job_lexicon"),
    )
    op.create_index("ix_job_lexicon_lexicon_id", "job_lexicon", ["lexicon_id"])


def downgrade() -> None:
    """Drop them, with the bytes of the lexicons."""
    blob, kept = sa.table("blob", sa.column("id")), sa.table("lexicon", sa.column("blob_id"))
    ids = list(op.get_bind().scalars(sa.select(kept.c.blob_id)))
    op.drop_table("job_lexicon")
    op.drop_table("lexicon")
    # Foreign keys are off while SQLite alters tables, so nothing cascades.
    chunk = sa.table("blob_chunk", sa.column("blob_id"))
    op.execute(chunk.delete().where(chunk.c.blob_id.in_(ids)))
    op.execute(blob.delete().where(blob.c.id.in_(ids)))
