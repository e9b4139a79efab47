"""Run by Alembic with the connection that `tagsmith.core.store.migrate` opened; the caller commits."""

from alembic import context

from tagsmith.core.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    # SQLite cannot alter a table in place: Alembic copies it into a new one.
    render_as_batch=True,
)
context.run_migrations()
