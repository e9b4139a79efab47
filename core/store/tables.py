"""All tables, for both dialects. `migrations/` creates them; a test checks that both are equal."""

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from tagsmith.core.store.clock import UtcDateTime

# Fixed names allow later migrations to drop or alter a constraint on either dialect.
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

# The highest number ever assigned under a name, so that the number of a deleted upload is never reused.
corpus_name = sa.Table(
    "corpus_name",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("last_number", sa.Integer, nullable=False),
)

corpus = sa.Table(
    "corpus",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    # Counts the uploads under one name, from 1.
    sa.Column("number", sa.Integer, nullable=False),
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
    # Uploads of the same bytes share a blob.
    sa.Column("blob_id", sa.ForeignKey("blob.id"), nullable=False, index=True),
    sa.UniqueConstraint("name", "number"),
    sa.Index(None, "created_at", "id"),
    sa.Index(None, "sha256"),
)

# The id is derived from the content, so that equal lexicons are stored once.
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
    # The last six characters of the id, by which people refer to a job.
    sa.Column("suffix", sa.String(6), nullable=False, index=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("model", sa.String(64)),
    sa.Column("spec", Json, nullable=False),
    sa.Column("progress", Json),
    sa.Column("result", Json),
    sa.Column("error", Json),
    sa.Column("attempt", sa.Integer, nullable=False),
    # Expired leases. Separate from `attempt`, so that orderly restarts do not use up the retries of a job.
    sa.Column("losses", sa.Integer, nullable=False),
    sa.Column("last_seq", sa.Integer, nullable=False),
    sa.Column("cancel_requested", sa.Boolean, nullable=False),
    # The failed or cancelled job that this job retries.
    sa.Column("retry_of", sa.String(64)),
    sa.Column("queue", sa.String(16), nullable=False, server_default="slow"),
    sa.Column("worked_seconds", sa.Double, nullable=False, server_default="0"),
    sa.Column("lease_owner", sa.String(128)),
    sa.Column("lease_until", UtcDateTime()),
    sa.Column("request_id", sa.Text),
    # The span of that request (W3C trace context), if tracing is enabled.
    sa.Column("traceparent", sa.String(64)),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Column("queued_at", UtcDateTime(), nullable=False),
    sa.Column("sent_at", UtcDateTime()),
    sa.Column("started_at", UtcDateTime()),
    sa.Column("finished_at", UtcDateTime()),
    sa.Index(None, "created_at", "id"),
    sa.Index(None, "state", "queued_at"),
    sa.Index(None, "model", "created_at"),
    sa.Index(None, "finished_at"),
)

# The jobs that ended, by kind and state, so that nobody counts rows.
job_total = sa.Table(
    "job_total",
    metadata,
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("state", sa.String(16), primary_key=True),
    # Those that are not deleted.
    sa.Column("count", sa.BigInteger, nullable=False),
    # Those that ever started and ended, and the sum of their run times.
    sa.Column("ended", sa.BigInteger, nullable=False),
    sa.Column("seconds", sa.Double, nullable=False),
)

# The corpora that a job reads. They cannot be deleted while the job is active.
job_corpus = sa.Table(
    "job_corpus",
    metadata,
    sa.Column("job_id", sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("corpus_id", sa.ForeignKey("corpus.id", ondelete="CASCADE"), primary_key=True, index=True),
)

# The lexicons that a job reads. They cannot be deleted while the job is active.
job_lexicon = sa.Table(
    "job_lexicon",
    metadata,
    sa.Column("job_id", sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("lexicon_id", sa.ForeignKey("lexicon.id", ondelete="CASCADE"), primary_key=True, index=True),
)

# The versions that a job uses. They cannot be deleted while the job is active.
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

# The checkpoint of an active job. A separate table, because `job` is read and written often.
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
    # The highest number ever assigned, so that the number of a deleted version is never reused.
    sa.Column("last_version", sa.Integer, nullable=False),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    # The row of a deleted model stays: if the name is used again, the numbers of its versions and of the moves of its
    # aliases continue, so that old references and ETags do not become valid again.
    sa.Column("deleted_at", UtcDateTime()),
    sa.Column("last_move", sa.Integer, nullable=False, server_default="0"),
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
    # No foreign key: the record of the training corpus outlives the corpus.
    sa.Column("corpus", sa.String(64)),
    sa.Column("corpus_name", sa.Text),
    sa.Column("corpus_number", sa.Integer),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("code_version", sa.Text, nullable=False),
    sa.Column("job_id", sa.String(64)),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Column("blob_id", sa.ForeignKey("blob.id"), nullable=False, unique=True),
)

# The newest scores of a version on each corpus. They stay when the job or the corpus is deleted.
evaluation = sa.Table(
    "evaluation",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("model", sa.String(64), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    # Null for a part of the training corpus that was held out; `held_out` is then its fraction.
    sa.Column("corpus", sa.String(64)),
    sa.Column("corpus_name", sa.Text),
    sa.Column("corpus_number", sa.Integer),
    sa.Column("held_out", sa.Double),
    sa.Column("sentences", sa.BigInteger, nullable=False),
    # The metric that versions are compared by, and its value.
    sa.Column("metric", sa.String(16), nullable=False),
    sa.Column("score", sa.Double, nullable=False),
    sa.Column("metrics", Json, nullable=False),
    sa.Column("at", UtcDateTime(), nullable=False),
    sa.Column("job_id", sa.String(64)),
    sa.ForeignKeyConstraint(
        ["model", "version"], ["model_version.model", "model_version.version"], ondelete="CASCADE"
    ),
    sa.UniqueConstraint("model", "version", "corpus"),
)

alias = sa.Table(
    "alias",
    metadata,
    sa.Column("model", sa.ForeignKey("model.name"), primary_key=True),
    sa.Column("alias", sa.String(64), primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("updated_at", UtcDateTime(), nullable=False),
    # Without a cascade, so that the database refuses to delete a version that an alias points to.
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
    # For a rollback: the move whose result was restored.
    sa.Column("to_seq", sa.Integer),
    sa.Column("actor", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("request_id", sa.Text),
    # For a forced move: the objections of the policy.
    sa.Column("forced", sa.Text),
    sa.Column("at", UtcDateTime(), nullable=False),
    sa.ForeignKeyConstraint(["model", "alias"], ["alias.model", "alias.alias"], ondelete="CASCADE"),
)

# Rows stay, without rules, when a policy is deleted: a reused number would make an old ETag valid again.
model_policy = sa.Table(
    "model_policy",
    metadata,
    sa.Column("model", sa.ForeignKey("model.name"), primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("promotion", Json),
    # Part of `promotion`. A separate column, so that the database refuses to delete the corpus.
    sa.Column("corpus", sa.ForeignKey("corpus.id"), index=True),
    sa.Column("retention", Json),
    sa.Column("updated_at", UtcDateTime(), nullable=False),
)

# Rows stay when a key is revoked, because the audit log refers to them.
api_key = sa.Table(
    "api_key",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    # Hash of the whole token. A random secret of 256 bits needs neither salt nor a slow hash.
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("scopes", Json, nullable=False),
    sa.Column("created_at", UtcDateTime(), nullable=False),
    sa.Column("created_by", sa.Text),
    sa.Column("expires_at", UtcDateTime()),
    sa.Column("revoked_at", UtcDateTime()),
    sa.Column("last_used_at", UtcDateTime()),
    sa.Index(None, "created_at", "id"),
)

# Responses to requests with an Idempotency-Key, replayed when the request is repeated.
kept_answer = sa.Table(
    "kept_answer",
    metadata,
    # Derived from the caller, the route and the Idempotency-Key.
    sa.Column("id", sa.String(64), primary_key=True),
    # Distinguishes the request in progress from one that took over after it was lost.
    sa.Column("attempt", sa.String(64), nullable=False),
    # Null until the response is stored.
    sa.Column("fingerprint", sa.String(64)),
    sa.Column("status", sa.Integer),
    sa.Column("headers", Json),
    sa.Column("body", sa.LargeBinary),
    sa.Column("expires_at", UtcDateTime(), nullable=False, index=True),
)

# SQLite only: the monotonic clock of the machine, from which leases are counted.
lease_clock = sa.Table(
    "lease_clock",
    metadata,
    sa.Column("boot_id", sa.String(64), primary_key=True),
    # Added to the clock of the machine: microseconds since 1970.
    sa.Column("offset_us", sa.BigInteger, nullable=False),
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
    # Location of the created resource.
    sa.Column("location", sa.Text),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("request_id", sa.Text, nullable=False),
    # Further remarks, such as an overridden rule and the reason.
    sa.Column("note", sa.Text),
    sa.Index(None, "at", "id"),
)

# One row. Its generation rises with every change that serving must see.
registry = sa.Table(
    "registry",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("generation", sa.BigInteger, nullable=False),
)
