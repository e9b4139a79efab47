"""Checkpoints of jobs, and the versions that jobs start from."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the two tables."""
    op.create_table(
        "job_checkpoint",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("blob_id", sa.String(64), nullable=False),
        sa.Column("pass_number", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_checkpoint_job_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["blob_id"], ["blob.id"], name="fk_job_checkpoint_blob_id"),
        sa.PrimaryKeyConstraint("job_id", name="pk_job_checkpoint"),
        sa.UniqueConstraint("blob_id", name="uq_job_checkpoint_blob_id"),
    )
    op.create_table(
        "job_version",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("model", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_version_job_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["model", "version"],
            ["model_version.model", "model_version.version"],
            name="fk_job_version_model_version",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("job_id", "model", "version", name="pk_job_version"),
    )
    op.create_index("ix_job_version_model_version", "job_version", ["model", "version"])


def downgrade() -> None:
    """Drop them, with the bytes of the checkpoints."""
    blob, kept = sa.table("blob", sa.column("id")), sa.table("job_checkpoint", sa.column("blob_id"))
    ids = list(op.get_bind().scalars(sa.select(kept.c.blob_id)))
    op.drop_table("job_version")
    op.drop_table("job_checkpoint")
    # Foreign keys are off while SQLite alters tables, so nothing cascades.
    chunk = sa.table("blob_chunk", sa.column("blob_id"))
    op.execute(chunk.delete().where(chunk.c.blob_id.in_(ids)))
    op.execute(blob.delete().where(blob.c.id.in_(ids)))
