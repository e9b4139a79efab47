"""Numbers of corpora, shared blobs, suffixes of job ids, deleted models, evaluations of versions."""

import re
from collections import Counter
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
TIME = sa.DateTime(timezone=True)

#: Longer names, from the file names of multipart bodies, do not fit into an index of PostgreSQL.
MAX_NAME = 200

#: Labels that encode chunks, as in IOB2 and BIOES, or words: versions are compared by F1. All others: by accuracy.
CHUNK_LABEL = re.compile(r"[BIELUSM][0-9]?(-.*)?$")

_corpus = sa.table(
    "corpus",
    *map(sa.column, ("id", "name", "number", "created_at", "blob_id")),
    sa.column("labels", JSON),
)
_version = sa.table(
    "model_version",
    *map(sa.column, ("model", "version", "corpus", "corpus_name", "corpus_number", "job_id")),
    sa.column("spec", JSON),
    sa.column("metrics", JSON),
    sa.column("created_at", TIME),
)
_job = sa.table(
    "job",
    *map(sa.column, ("id", "suffix", "kind", "state")),
    sa.column("spec", JSON),
    sa.column("result", JSON),
    sa.column("finished_at", TIME),
)
_evaluation = sa.table(
    "evaluation",
    *map(sa.column, ("id", "model", "version", "corpus", "corpus_name", "corpus_number", "held_out")),
    *map(sa.column, ("sentences", "metric", "score", "job_id")),
    sa.column("metrics", JSON),
    sa.column("at", TIME),
)


def upgrade() -> None:
    """Add the columns and tables, and fill them from what is stored."""
    _number_corpora()
    op.add_column("job", sa.Column("suffix", sa.String(6)))
    op.execute("UPDATE job SET suffix = substr(id, length(id) - 5)")
    with op.batch_alter_table("job") as batch:
        batch.alter_column("suffix", existing_type=sa.String(6), nullable=False)
    op.create_index("ix_job_suffix", "job", ["suffix"])
    op.add_column("model", sa.Column("deleted_at", TIME))
    op.add_column("model", sa.Column("last_move", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("model_version", sa.Column("corpus_name", sa.Text()))
    op.add_column("model_version", sa.Column("corpus_number", sa.Integer()))
    _create_evaluations()
    _fill_evaluations()


def downgrade() -> None:
    """Drop them. Corpora that share a blob get a copy each; deleted models disappear."""
    op.drop_table("evaluation")
    op.drop_column("model_version", "corpus_number")
    op.drop_column("model_version", "corpus_name")
    op.execute(
        "DELETE FROM model_policy WHERE model IN (SELECT name FROM model WHERE deleted_at IS NOT NULL)"
    )
    op.execute("DELETE FROM model WHERE deleted_at IS NOT NULL")
    op.drop_column("model", "last_move")
    op.drop_column("model", "deleted_at")
    op.drop_index("ix_job_suffix", "job")
    op.drop_column("job", "suffix")
    _copy_shared_blobs()
    op.drop_index("ix_corpus_sha256", "corpus")
    op.drop_index("ix_corpus_blob_id", "corpus")
    with op.batch_alter_table("corpus") as batch:
        batch.drop_constraint("uq_corpus_name_number", type_="unique")
        batch.drop_column("number")
        batch.create_unique_constraint("uq_corpus_blob_id", ["blob_id"])
    op.drop_table("corpus_name")


def _number_corpora() -> None:
    bind = op.get_bind()
    op.add_column("corpus", sa.Column("number", sa.Integer()))
    op.execute(f"UPDATE corpus SET name = substr(name, 1, {MAX_NAME}) WHERE length(name) > {MAX_NAME}")  # noqa: S608  # a constant
    last: Counter[str] = Counter()
    for row in bind.execute(sa.select(_corpus).order_by(_corpus.c.created_at, _corpus.c.id)).all():
        last[row.name] += 1
        bind.execute(_corpus.update().where(_corpus.c.id == row.id).values(number=last[row.name]))
    names = op.create_table(
        "corpus_name",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("last_number", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_corpus_name"),
    )
    op.bulk_insert(names, [{"name": name, "last_number": number} for name, number in last.items()])
    with op.batch_alter_table("corpus") as batch:
        batch.alter_column("number", existing_type=sa.Integer(), nullable=False)
        batch.drop_constraint("uq_corpus_blob_id", type_="unique")
        batch.create_unique_constraint("uq_corpus_name_number", ["name", "number"])
    op.create_index("ix_corpus_blob_id", "corpus", ["blob_id"])
    op.create_index("ix_corpus_sha256", "corpus", ["sha256"])


def _create_evaluations() -> None:
    op.create_table(
        "evaluation",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("model", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("corpus", sa.String(64)),
        sa.Column("corpus_name", sa.Text()),
        sa.Column("corpus_number", sa.Integer()),
        sa.Column("held_out", sa.Double()),
        sa.Column("sentences", sa.BigInteger(), nullable=False),
        sa.Column("metric", sa.String(16), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("metrics", JSON, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("job_id", sa.String(64)),
        sa.PrimaryKeyConstraint("id", name="pk_evaluation"),
        sa.ForeignKeyConstraint(
            ["model", "version"],
            ["model_version.model", "model_version.version"],
            name="fk_evaluation_model_version",
            ondelete="CASCADE",
        ),
        sa.UniqueConstraint("model", "version", "corpus", name="uq_evaluation_model_version_corpus"),
    )


def _fill_evaluations() -> None:
    """Copy the scores of training and of evaluate jobs; of several on one corpus, the newest."""
    bind = op.get_bind()
    stored = bind.execute(sa.select(_corpus)).all()
    corpora = {row.id: (row.name, row.number) for row in stored}
    plain = {row.id for row in stored if not any(CHUNK_LABEL.match(label) for label in row.labels)}
    found: dict[tuple[str, int, str | None], dict[str, Any]] = {}
    versions = {(row.model, row.version): row for row in bind.execute(sa.select(_version)).all()}
    for key, row in versions.items():
        if row.corpus in corpora:
            name, number = corpora[row.corpus]
            at = sa.and_(_version.c.model == row.model, _version.c.version == row.version)
            bind.execute(_version.update().where(at).values(corpus_name=name, corpus_number=number))
        dev, metrics = row.spec.get("dev") or {}, row.metrics.get("dev")
        if metrics and dev:
            metric = "accuracy" if row.corpus in plain else "f1"
            made = _entry(metrics, metric, row.created_at, row.job_id)
            found[(*key, dev.get("corpus"))] = {**made, "held_out": dev.get("fraction")}
    jobs = sa.select(_job).where(_job.c.kind == "evaluate", _job.c.state == "succeeded")
    for row in bind.execute(jobs.order_by(_job.c.finished_at, _job.c.id)).all():
        for each in row.result["models"]:
            key = (each["model"], each["version"])
            if key in versions:
                metric = "accuracy" if row.spec["corpus"] in plain else "f1"
                found[(*key, row.spec["corpus"])] = _entry(each["metrics"], metric, row.finished_at, row.id)
    for place, ((model, version, corpus), values) in enumerate(found.items()):
        name, number = corpora.get(corpus or "", (None, None))
        own = {"id": f"evl_{place:026d}", "model": model, "version": version, "corpus": corpus}
        bind.execute(_evaluation.insert().values(**own, corpus_name=name, corpus_number=number, **values))


def _entry(metrics: dict[str, Any], metric: str, at: Any, job_id: str | None) -> dict[str, Any]:
    kept = {"metrics": metrics, "metric": metric, "score": metrics[metric], "sentences": metrics["sentences"]}
    return {**kept, "at": at, "job_id": job_id}


def _copy_shared_blobs() -> None:
    bind = op.get_bind()
    seen: set[str] = set()
    for row in bind.execute(sa.select(_corpus).order_by(_corpus.c.created_at, _corpus.c.id)).all():
        if row.blob_id not in seen:
            seen.add(row.blob_id)
            continue
        ids = {"new": f"blb_{row.id}", "old": row.blob_id}
        bind.execute(
            sa.text("INSERT INTO blob SELECT :new, size_bytes, sha256, chunks FROM blob WHERE id = :old"), ids
        )
        bind.execute(
            sa.text(
                "INSERT INTO blob_chunk SELECT :new, seq, sha256, data FROM blob_chunk WHERE blob_id = :old"
            ),
            ids,
        )
        bind.execute(_corpus.update().where(_corpus.c.id == row.id).values(blob_id=ids["new"]))
