"""All tables, once, for both dialects. `migrations/` builds them; a test holds the two equal."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from core.store.clock import UtcDateTime

# Names are fixed so that later migrations can drop or alter a constraint on either dialect.
metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

Json = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

blob = sa.Table(
    "blob",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("chunks", sa.Integer, nullable=False),
)

blob_chunk = sa.Table(
    "blob_chunk",
    metadata,
    sa.Column("blob_id", sa.ForeignKey("blob.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

corpus = sa.Table(
    "corpus",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("format", sa.String(32), nullable=False),
    sa.Column("options", Json, nullable=False, server_default="{}"),
    sa.Column("sentences", sa.BigInteger, nullable=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
    sa.Column("columns", Json, nullable=False),
    sa.Column("labels", Json, nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("report", Json, nullable=False),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Column("blob_id", sa.ForeignKey("blob.id"), nullable=False, unique=True),
    sa.Index(None, "created_at", "id"),
)

# The id is made from the content, so that the same lexicon is stored once.
lexicon = sa.Table(
    "lexicon",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("entries", sa.BigInteger, nullable=False),
    sa.Column("classes", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Column("blob_id", sa.ForeignKey("blob.id"), nullable=False, unique=True),
    sa.Index(None, "created_at", "id"),
)

job = sa.Table(
    "job",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("model", sa.String(64)),
    sa.Column("spec", Json, nullable=False),
    sa.Column("progress", Json),
    sa.Column("result", Json),
    sa.Column("error", Json),
    sa.Column("attempt", sa.Integer, nullable=False),
    # Leases that ran out. Apart from `attempt`, so that orderly restarts never use up a job's chances.
    sa.Column("losses", sa.Integer, nullable=False),
    sa.Column("last_seq", sa.Integer, nullable=False),
    sa.Column("cancel_requested", sa.Boolean, nullable=False),
    # The job that failed or was cancelled, of which this is another try.
    sa.Column("retry_of", sa.String(64)),
    sa.Column("queue", sa.String(16), nullable=False, server_default="slow"),
    sa.Column("worked_seconds", sa.Double, nullable=False, server_default="0"),
    sa.Column("lease_owner", sa.String(128)),
    sa.Column("lease_until", UtcDateTime()),
    sa.Column("request_id", sa.Text),
    # The span of that request (W3C trace context), where requests are traced.
    sa.Column("traceparent", sa.String(64)),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Column("queued_at", UtcDateTime(), nullable=False),
    sa.Column("sent_at", UtcDateTime()),
    sa.Column("started_at", UtcDateTime()),
    sa.Column("finished_at", UtcDateTime()),
    sa.Index(None, "created_at", "id"),
    sa.Index(None, "state", "queued_at"),
    sa.Index(None, "model", "created_at"),
)

# Which corpora a job reads: what keeps one from being deleted under a job that still needs it.
job_corpus = sa.Table(
    "job_corpus",
    metadata,
    sa.Column("job_id", sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("corpus_id", sa.ForeignKey("corpus.id", ondelete="CASCADE"), primary_key=True, index=True),
)

# Which lexicons a job reads: likewise. Versions carry what they need of theirs.
job_lexicon = sa.Table(
    "job_lexicon",
    metadata,
    sa.Column("job_id", sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("lexicon_id", sa.ForeignKey("lexicon.id", ondelete="CASCADE"), primary_key=True, index=True),
)

# Which versions a job starts from: likewise. Goes with the version, once no job needs that any more.
job_version = sa.Table(
    "job_version",
    metadata,
    sa.Column("job_id", sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("model", sa.String(64), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.ForeignKeyConstraint(
        ["model", "version"], ["model_version.model", "model_version.version"], ondelete="CASCADE"
    ),
    sa.Index(None, "model", "version"),
)

# Where a job that has not ended can go on from. A table of its own: `job` is read and written all the time.
job_checkpoint = sa.Table(
    "job_checkpoint",
    metadata,
    sa.Column("job_id", sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("blob_id", sa.ForeignKey("blob.id"), nullable=False, unique=True),
    sa.Column("pass_number", sa.Integer, nullable=False),
    sa.Column("created_at", UtcDateTime(), nullable=False),
)

event = sa.Table(
    "event",
    metadata,
    sa.Column("job_id", sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("type", sa.String(32), nullable=False),
    sa.Column("level", sa.String(8), nullable=False),
    sa.Column("at", UtcDateTime(), nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("data", Json, nullable=False),
)

model = sa.Table(
    "model",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    # The highest number ever given, so that a deleted version's number never comes back as another model.
    sa.Column("last_version", sa.Integer, nullable=False),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Index(None, "created_at", "name"),
)

model_version = sa.Table(
    "model_version",
    metadata,
    sa.Column("model", sa.ForeignKey("model.name"), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("objective", sa.Double),
    sa.Column("active_features", sa.BigInteger, nullable=False),
    sa.Column("train_seconds", sa.Double, nullable=False),
    sa.Column("metrics", Json, nullable=False),
    sa.Column("trainer", Json, nullable=False),
    sa.Column("spec", Json, nullable=False),
    # No foreign key: the record of what a version was trained on outlives the corpus.
    sa.Column("corpus", sa.String(64)),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("code_version", sa.Text, nullable=False),
    sa.Column("job_id", sa.String(64)),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Column("blob_id", sa.ForeignKey("blob.id"), nullable=False, unique=True),
)

alias = sa.Table(
    "alias",
    metadata,
    sa.Column("model", sa.ForeignKey("model.name"), primary_key=True),
    sa.Column("alias", sa.String(64), primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("updated_at", UtcDateTime(), nullable=False),
    # Without a cascade: the database itself refuses to delete a version that an alias serves.
    sa.ForeignKeyConstraint(["model", "version"], ["model_version.model", "model_version.version"]),
)

alias_move = sa.Table(
    "alias_move",
    metadata,
    sa.Column("model", sa.String(64), primary_key=True),
    sa.Column("alias", sa.String(64), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("action", sa.String(16), nullable=False),
    sa.Column("from_version", sa.Integer),
    sa.Column("to_version", sa.Integer, nullable=False),
    # Of a rollback: the move after which the alias stood as it does again.
    sa.Column("to_seq", sa.Integer),
    sa.Column("actor", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("request_id", sa.Text),
    # Of a move that was forced: what the policy has against it.
    sa.Column("forced", sa.Text),
    sa.Column("at", UtcDateTime(), nullable=False),
    sa.ForeignKeyConstraint(["model", "alias"], ["alias.model", "alias.alias"], ondelete="CASCADE"),
)

# Rows stay, emptied, when a policy is removed: a number that comes back would make an old ETag fit again.
model_policy = sa.Table(
    "model_policy",
    metadata,
    sa.Column("model", sa.ForeignKey("model.name"), primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("promotion", Json),
    # Part of `promotion`, with a column of its own so that the database refuses to delete the corpus.
    sa.Column("corpus", sa.ForeignKey("corpus.id"), index=True),
    sa.Column("retention", Json),
    sa.Column("updated_at", UtcDateTime(), nullable=False),
)

# Rows stay when a key is revoked: what it did is recorded under its id.
api_key = sa.Table(
    "api_key",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    # Of the whole token. A random secret of 256 bits needs no salt and no slow hash.
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("scopes", Json, nullable=False),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Column("created_by", sa.Text),
    sa.Column("expires_at", UtcDateTime()),
    sa.Column("revoked_at", UtcDateTime()),
    sa.Column("last_used_at", UtcDateTime()),
    sa.Index(None, "created_at", "id"),
)

# Answers to requests with an Idempotency-Key, given again when the same request comes again.
kept_answer = sa.Table(
    "kept_answer",
    metadata,
    # Made from the caller, the route and the Idempotency-Key.
    sa.Column("id", sa.String(64), primary_key=True),
    # Tells the request that is being answered from one that took over after it was lost.
    sa.Column("attempt", sa.String(64), nullable=False),
    # Null until the request is answered.
    sa.Column("fingerprint", sa.String(64)),
    sa.Column("status", sa.Integer),
    sa.Column("headers", Json),
    sa.Column("body", sa.LargeBinary),
    sa.Column("expires_at", UtcDateTime(), nullable=False, index=True),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("at", UtcDateTime(), nullable=False),
    sa.Column("actor", sa.Text),
    sa.Column("key_id", sa.String(64)),
    sa.Column("method", sa.String(8), nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    # Of what a request created.
    sa.Column("location", sa.Text),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("request_id", sa.Text, nullable=False),
    # What else is worth knowing, such as that a rule was overridden, and why.
    sa.Column("note", sa.Text),
    sa.Index(None, "at", "id"),
)

# One row. Its number rises with every change that serving must see.
registry = sa.Table(
    "registry",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("generation", sa.BigInteger, nullable=False),
)
