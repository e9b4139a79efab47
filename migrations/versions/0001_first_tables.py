"""First tables: blobs, corpora, jobs with their events, models, aliases with their history."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Spelt out here, not imported: a migration must go on meaning what it meant when it was written.
JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the tables, and the one row of the registry."""
    _blobs_and_corpora()
    _jobs()
    _models()
    registry = op.create_table(
        "registry",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_registry"),
    )
    op.bulk_insert(registry, [{"id": 1, "generation": 0}])


def downgrade() -> None:
    """Drop everything."""
    for table in ("registry", "alias_move", "alias", "model_version", "model", "event", "job_corpus", "job"):
        op.drop_table(table)
    for table in ("corpus", "blob_chunk", "blob"):
        op.drop_table(table)


def _blobs_and_corpora() -> None:
    op.create_table(
        "blob",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_blob"),
    )
    op.create_table(
        "blob_chunk",
        sa.Column("blob_id", sa.String(64), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["blob_id"], ["blob.id"], name="fk_blob_chunk_blob_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("blob_id", "seq", name="pk_blob_chunk"),
    )
    if op.get_context().dialect.name == "postgresql":
        # The bytes are compressed already: trying again would cost time and gain nothing.
        op.execute("ALTER TABLE blob_chunk ALTER COLUMN data SET STORAGE EXTERNAL")
    op.create_table(
        "corpus",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("format", sa.String(32), nullable=False),
        sa.Column("sentences", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("columns", JSON, nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("report", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("blob_id", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(["blob_id"], ["blob.id"], name="fk_corpus_blob_id"),
        sa.PrimaryKeyConstraint("id", name="pk_corpus"),
        sa.UniqueConstraint("blob_id", name="uq_corpus_blob_id"),
    )
    op.create_index("ix_corpus_created_at_id", "corpus", ["created_at", "id"])


def _jobs() -> None:
    op.create_table(
        "job",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("model", sa.String(64)),
        sa.Column("spec", JSON, nullable=False),
        sa.Column("progress", JSON),
        sa.Column("result", JSON),
        sa.Column("error", JSON),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("lease_owner", sa.String(128)),
        sa.Column("lease_until", TIME),
        sa.Column("request_id", sa.Text()),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("queued_at", TIME, nullable=False),
        sa.Column("sent_at", TIME),
        sa.Column("started_at", TIME),
        sa.Column("finished_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_job"),
    )
    op.create_index("ix_job_created_at_id", "job", ["created_at", "id"])
    op.create_index("ix_job_state_queued_at", "job", ["state", "queued_at"])
    op.create_index("ix_job_model_created_at", "job", ["model", "created_at"])
    op.create_table(
        "job_corpus",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("corpus_id", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_corpus_job_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["corpus_id"], ["corpus.id"], name="fk_job_corpus_corpus_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "corpus_id", name="pk_job_corpus"),
    )
    op.create_index("ix_job_corpus_corpus_id", "job_corpus", ["corpus_id"])
    op.create_table(
        "event",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("level", sa.String(8), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_event_job_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "seq", name="pk_event"),
    )


def _models() -> None:
    op.create_table(
        "model",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("last_version", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_model"),
    )
    op.create_index("ix_model_created_at_name", "model", ["created_at", "name"])
    op.create_table(
        "model_version",
        sa.Column("model", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("objective", sa.Double()),
        sa.Column("active_features", sa.BigInteger(), nullable=False),
        sa.Column("train_seconds", sa.Double(), nullable=False),
        sa.Column("metrics", JSON, nullable=False),
        sa.Column("trainer", JSON, nullable=False),
        sa.Column("spec", JSON, nullable=False),
        sa.Column("corpus", sa.String(64)),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("code_version", sa.Text(), nullable=False),
        sa.Column("job_id", sa.String(64)),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("blob_id", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(["model"], ["model.name"], name="fk_model_version_model"),
        sa.ForeignKeyConstraint(["blob_id"], ["blob.id"], name="fk_model_version_blob_id"),
        sa.PrimaryKeyConstraint("model", "version", name="pk_model_version"),
        sa.UniqueConstraint("blob_id", name="uq_model_version_blob_id"),
    )
    op.create_table(
        "alias",
        sa.Column("model", sa.String(64), nullable=False),
        sa.Column("alias", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(["model"], ["model.name"], name="fk_alias_model"),
        sa.ForeignKeyConstraint(
            ["model", "version"],
            ["model_version.model", "model_version.version"],
            name="fk_alias_model_version",
        ),
        sa.PrimaryKeyConstraint("model", "alias", name="pk_alias"),
    )
    op.create_table(
        "alias_move",
        sa.Column("model", sa.String(64), nullable=False),
        sa.Column("alias", sa.String(64), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("from_version", sa.Integer()),
        sa.Column("to_version", sa.Integer(), nullable=False),
        sa.Column("actor", sa.Text()),
        sa.Column("reason", sa.Text()),
        sa.Column("request_id", sa.Text()),
        sa.Column("at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["model", "alias"],
            ["alias.model", "alias.alias"],
            name="fk_alias_move_model_alias",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model", "alias", "seq", name="pk_alias_move"),
    )
